"""Print, for each of the thirty programs, what the judge and the simulated target say about it."""

from __future__ import annotations

import statistics
import sys

from rich.console import Console
from rich.progress import track
from rich.table import Table

from examples.polybench.suite import KERNELS, Case, Judged, judge, run
from polyopt.report import RunReport

COLUMNS = (
    *("kernel", "statements", "edges", "dependences ms", "judge ms", "judge isl ms", "rung", "isl", "tiled"),
    *("reversed", "replayed", "certified", "on target", "error/bound", "general engine"),
)


def main() -> int:
    """Exit status 0 when every order is legal, every variant refuted and every run right."""
    table = Table(*COLUMNS)
    times: list[float] = []
    pairs, certified, good = 0, 0, True
    console = Console(width=190 if not sys.stdout.isatty() else None)
    for case in track(KERNELS, "thirty programs", console=Console(stderr=True), transient=True):
        judged, report = judge(case), run(case)
        table.add_row(*_row(case, judged, report))
        times += [judged.original_ms, judged.isl_ms]
        pairs += judged.certificate.num_pairs
        certified += judged.certificate.num_certified_pairs
        good = good and bool(judged.isl) and bool(judged.tiled) and judged.refuted is not None and report.ok
    console.print(table)
    console.print(
        f"judge, dependences included: median {statistics.median(times):.1f} ms, worst {max(times):.1f} ms; "
        f"certified: {certified} of {pairs} pairs of accesses ({100 * certified / pairs:.1f} %)"
    )
    return 0 if good else 1


def _row(case: Case, j: Judged, report: RunReport) -> tuple[str, ...]:
    refuted = j.refuted
    replayed = refuted.replayed if refuted is not None else None
    return (
        case.name,
        str(j.statements),
        str(j.edges),
        f"{j.dependences_ms:.0f}",
        f"{j.original_ms:.0f}",
        f"{j.isl_ms:.0f}",
        j.rung,
        j.isl.verdict,
        f"{j.tiled.verdict} {'+'.join(map(str, j.tiles))}",
        "legal" if refuted is None else f"{refuted.verdict.verdict} (entry {refuted.dim})",
        "-" if replayed is None else "differs" if replayed.differs else "equal",
        f"{j.certificate.num_certified_pairs}/{j.certificate.num_pairs}",
        "ok" if report.ok else "wrong",
        "-" if report.error_ratio is None else f"{report.error_ratio:.2f}",
        f"{100 * report.general_engine_fraction:.0f} %",
    )


if __name__ == "__main__":
    sys.exit(main())
