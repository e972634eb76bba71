"""`polyopt bench`: a suite of workloads, one line each."""

from __future__ import annotations

import click

from polyopt.cli._options import dtype_option, json_option, target_option
from polyopt.cli._output import print_json, print_rich, progress_bar

__all__ = ["bench"]


@click.command()
@click.argument("suite")
@target_option
@dtype_option
@click.option("--seed", default=0, show_default=True, type=click.IntRange(min=0), help="Seed of the generated inputs.")
@click.option("--only", metavar="NAME", multiple=True, help="Run only this workload (may be given several times).")
@json_option
def bench(suite: str, target: str, dtype: str | None, seed: int, only: tuple[str, ...], as_json: bool) -> int:
    """Run every workload of SUITE (for example `main`).  Exit status 0 only if all are well."""
    from polyopt.bench import run_workload, select_workloads
    from polyopt.report import RunReport, bench_table

    workloads = select_workloads(suite, only)
    rows: list[tuple[str, RunReport | str]] = []
    with progress_bar() as progress:
        progress.start(suite, len(workloads))
        for workload in workloads:
            progress.start(workload.name)
            row = run_workload(workload, target, dtype=dtype, seed=seed)
            rows.append((workload.name, row))
            progress.step()
            if as_json:
                failed = {"name": workload.name, "target": target, "ok": False, "error": row}
                print_json(row.to_json() if isinstance(row, RunReport) else failed)
    if not as_json:
        print_rich(bench_table(f"{suite} on {target}", rows))
    return 0 if all(isinstance(row, RunReport) and row.ok for _, row in rows) else 1
