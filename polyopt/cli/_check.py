"""`polyopt check`: is a schedule legal?"""

from __future__ import annotations

import click

from polyopt.cli._options import at_option, json_option, load_source, parse_sizes, reassociate_option, source_argument
from polyopt.cli._output import print_json

__all__ = ["check"]

STATUS = {"legal": 0, "illegal": 1, "unknown": 3}


@click.command()
@source_argument
@click.option("--schedule", required=True, metavar="TEXT", help="isl union map, or @file with an isl schedule tree.")
@click.option("--parallel", type=int, multiple=True, metavar="D", help="A dimension that may carry no dependence.")
@at_option
@click.option("--replay", is_flag=True, help="Run the witness in both orders and show the two values.")
@reassociate_option
@json_option
def check(
    source: str, schedule: str, parallel: tuple[int, ...], at: str, replay: bool, reassociate: bool, as_json: bool
) -> int:
    """Judge a schedule of SOURCE: legal, illegal with the smallest witness, or unknown with the access that blocks."""
    from polyopt.schedule import check as judge
    from polyopt.schedule import replay as replay_witness

    scop = load_source(source, reassociate=reassociate)
    sizes = parse_sizes(at)
    verdict = judge(scop, schedule, parallel=parallel, at=sizes or None)
    answer = verdict.to_json()
    if replay and verdict.witness is not None:
        replayed = replay_witness(scop, verdict, schedule, parallel=parallel)
        answer["replayed"] = replayed.to_json() if replayed is not None else None
    if as_json:
        print_json(answer)
    else:
        print(_text(answer))
    return STATUS[verdict.verdict]


def _text(answer: dict[str, object]) -> str:
    sure = "" if answer["verdict"] == "unknown" else f" ({answer['level']})"
    lines = [f"{answer['verdict']}{sure}: {answer['reason']}"]
    axioms = answer["axioms"]
    if isinstance(axioms, list) and axioms:
        lines.append(f"axioms: {', '.join(map(str, axioms))}")
    replayed = answer.get("replayed")
    if isinstance(replayed, dict):
        what = "the values differ" if replayed["differs"] else "order violated, value equal"
        lines.append(f"replayed: {what}: expected {replayed['expected']}, got {replayed['got']}")
    elif "replayed" in answer:
        lines.append("replayed: not possible, an uninterpreted call takes part")
    return "\n".join(lines)
