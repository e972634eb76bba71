"""Where every workload of a suite stands under the roofline: a table as CSV and a picture.

    python examples/experiments/roofline.py --suite main --target trn2 --out roofline

writes roofline.csv (one row per workload) and roofline.png (needs `pip install 'polyopt[plot]'`).
"""

from __future__ import annotations

import argparse
import csv
import sys
from pathlib import Path

from polyopt.bench import Workload, run_workload, select_workloads
from polyopt.machine import machine
from polyopt.report import RooflinePoint, RunReport, save_roofline

COLUMNS = (
    *("name", "target", "dtype", "ok", "time_us", "flops", "hbm_bytes", "hbm_compulsory_bytes"),
    *("peak_fraction", "roofline_fraction", "bottleneck"),
)


def measure(workload: Workload, target: str, dtype: str | None) -> RunReport | None:
    """The report of one workload; None, with the reason on stderr, when it does not run."""
    print(f"{workload.name} ...", file=sys.stderr, flush=True)
    report = run_workload(workload, target, dtype=dtype)
    if isinstance(report, str):
        print(report, file=sys.stderr)
        return None
    return report


def write_table(path: Path, reports: list[RunReport]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        writer.writerows([getattr(r, column) for column in COLUMNS] for r in reports)


def point(report: RunReport) -> RooflinePoint:
    return RooflinePoint(report.name, report.flops, report.hbm_bytes, report.time_us * 1e3, report.dtype)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Roofline of a suite: CSV and picture.")
    parser.add_argument("--suite", default="main")
    parser.add_argument("--target", default="trn2")
    parser.add_argument("--dtype", default=None, help="element type of every floating tensor")
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="only this workload")
    parser.add_argument("--out", type=Path, default=Path("roofline"), metavar="NAME", help="NAME.csv and NAME.png")
    options = parser.parse_args(arguments)
    workloads = select_workloads(options.suite, options.only)
    reports = [r for w in workloads if (r := measure(w, options.target, options.dtype)) is not None]
    write_table(options.out.with_suffix(".csv"), reports)
    title = f"{options.suite} on {options.target}"
    save_roofline(options.out.with_suffix(".png"), title, [point(r) for r in reports], machine(options.target))
    return 0 if len(reports) == len(workloads) else 1


if __name__ == "__main__":
    sys.exit(main())
