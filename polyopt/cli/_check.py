"""`polyopt check`: is a schedule legal?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from polyopt.cli._options import (
    at_option,
    json_option,
    load_source,
    output_path,
    parse_sizes,
    reassociate_option,
    source_argument,
)
from polyopt.cli._output import print_json, print_remarks, write_file, writing
from polyopt.errors import Diagnostic

if TYPE_CHECKING:
    from polyopt.ir import Scop
    from polyopt.schedule import Verdict

__all__ = ["check"]

LONGEST_TITLE = 80
"""Longer schedules are not shown above a picture."""

STATUS = {"legal": 0, "illegal": 1, "unknown": 3}


@click.command()
@source_argument
@click.option("--schedule", required=True, metavar="TEXT", help="isl union map, or @file with an isl schedule tree.")
@click.option("--parallel", type=int, multiple=True, metavar="D", help="A dimension that may carry no dependence.")
@at_option
@click.option("--replay", is_flag=True, help="Run the witness in both orders and show the two values.")
@click.option("--certificate", metavar="FILE", help="Write a certificate of a legal schedule that was checked.")
@click.option("--plot", metavar="FILE.png", callback=output_path, help="Draw the violated dependence (.png or .svg).")
@reassociate_option
@json_option
def check(
    source: str,
    schedule: str,
    parallel: tuple[int, ...],
    at: str,
    replay: bool,
    certificate: str | None,
    plot: Path | None,
    reassociate: bool,
    as_json: bool,
) -> int:
    """Judge a schedule of SOURCE: legal, illegal with the smallest witness, or unknown with the access that blocks."""
    from polyopt.schedule import check as judge
    from polyopt.schedule import replay as replay_witness

    scop = load_source(source, reassociate=reassociate)
    sizes = parse_sizes(at)
    if certificate is None:
        verdict = judge(scop, schedule, parallel=parallel, at=sizes or None)
    else:
        verdict = _certified(scop, schedule, parallel, sizes, certificate)
    answer = verdict.to_json()
    if replay and verdict.witness is not None:
        replayed = replay_witness(scop, verdict, schedule, parallel=parallel)
        answer["replayed"] = replayed.to_json() if replayed is not None else None
    if plot is not None:
        _draw(plot, scop.at(sizes), schedule, verdict)
    if as_json:
        print_json(answer)
    else:
        print(_text(answer))
    return STATUS[verdict.verdict]


def _certified(scop: Scop, schedule: str, parallel: tuple[int, ...], sizes: dict[str, int], path: str) -> Verdict:
    """The verdict; the certificate is written when the checker accepted it, and otherwise a remark says why not."""
    from polyopt.verify import certify

    found = certify(scop, schedule, parallel=parallel, at=sizes or None)
    if found:
        write_file(Path(path), found.text)
    else:
        print_remarks([Diagnostic("remark", "not-certified", found.why_not)])
    return found.verdict


def _draw(path: Path, scop: Scop, schedule: str, verdict: Verdict) -> None:
    """The violated dependence as a picture; a remark when there is none."""
    from polyopt.explain import draw_witness

    if verdict.witness is None:
        message = f"nothing to draw: the schedule is {verdict.verdict}, no dependence is violated"
        print_remarks([Diagnostic("remark", "plot", message)])
        return
    with writing(path) as temporary:
        order = schedule if len(schedule) <= LONGEST_TITLE else "order"
        draw_witness(temporary, scop, verdict.witness, f"{scop.name}: illegal {order}")


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
