"""`polyopt fuzz`: random programs against independent answers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from polyopt.cli._options import json_option
from polyopt.cli._output import print_json, print_rich, progress_bar
from polyopt.errors import InputError, MissingExtraError, nearest

if TYPE_CHECKING:
    from polyopt.fuzz import Campaign

__all__ = ["fuzz"]

DEFAULT_COUNT = 100


@click.command()
@click.option(
    "--seed", default=0, show_default=True, type=click.IntRange(min=0), help="The same seed, the same programs."
)
@click.option("--count", type=click.IntRange(min=1), metavar="N", help=f"Programs to try ({DEFAULT_COUNT}).")
@click.option("--seconds", type=click.FloatRange(min=0.0), metavar="S", help="Try programs for so long instead.")
@click.option("--out", default="fuzz-failures", show_default=True, help="Folder for files that reproduce a failure.")
@click.option("--only", metavar="ORACLE", multiple=True, help="Ask only this oracle (may be given several times).")
@click.option("--replay", metavar="FILE", help="Try the one case in FILE again.")
@json_option
def fuzz(
    seed: int,
    count: int | None,
    seconds: float | None,
    out: str,
    only: tuple[str, ...],
    replay: str | None,
    as_json: bool,
) -> int:
    """Try random programs and schedules: judge against enumeration, source against simulator, certificates, variants.

    Exit status 1 when some answer is wrong; each failure is made small and written to a file of its own.
    """
    try:
        from polyopt.fuzz import ORACLES, run_campaign
        from polyopt.fuzz import replay as replay_case
    except ModuleNotFoundError as error:
        if error.name != "hypothesis":
            raise
        raise MissingExtraError("polyopt fuzz needs hypothesis", help="pip install 'polyopt[fuzz]'") from error
    for name in only:
        if name not in ORACLES:
            raise InputError(
                f"there is no oracle {name!r}{nearest(name, ORACLES)}",
                help=f"oracles: {', '.join(ORACLES)}",
                id="usage",
            )
    oracles = {name: oracle for name, oracle in ORACLES.items() if not only or name in only}
    if replay is not None:
        return _replayed(replay_case(Path(replay), oracles), replay, as_json)
    if count is not None and seconds is not None:
        raise InputError("both --count and --seconds are given", help="give one of them", id="usage")
    with progress_bar() as progress:
        wanted = count if count is not None or seconds is not None else DEFAULT_COUNT
        progress.start("fuzz", wanted)
        done = [0]

        def step(programs: int) -> None:
            for _ in range(programs - done[0]):
                progress.step()
            done[0] = programs

        found = run_campaign(seed, count=wanted, seconds=seconds, out=Path(out), oracles=oracles, step=step)
    if as_json:
        print_json(found.to_json())
    else:
        _print(found)
    return 1 if found.failures else 0


def _replayed(failures: object, path: str, as_json: bool) -> int:
    assert isinstance(failures, list)
    if as_json:
        print_json({"file": path, "failures": [{"oracle": o, "message": m} for o, m in failures]})
    else:
        print("\n".join(f"{o}: {m}" for o, m in failures) or "every answer is right")
    return 1 if failures else 0


def _print(found: Campaign) -> None:
    from rich.table import Table

    table = Table("kind", "programs", "%", title=f"{found.programs} programs, seed {found.seed}")
    for name, number in found.features.items():
        table.add_row(name, str(number), f"{100 * number / max(found.programs, 1):.0f}")
    print_rich(table)
    print(f"{len(found.failures)} failures, {found.refused} refused, {found.took_s:.0f} s")
    for f in found.failures:
        print(f"{f.path}: {f.oracle}: {f.message}")
