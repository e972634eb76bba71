"""Tables for people, made with rich."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from polyopt.machine import Machine
from polyopt.report._record import PROPERTIES, RunReport

__all__ = ["bench_table", "machine_table", "machines_table", "run_tables"]

_STYLES = {"certified": "green", "proved": "green", "tested": "cyan", "unknown": "yellow", "refuted": "bold red"}


def bench_table(title: str, rows: Sequence[tuple[str, RunReport | str]]) -> Table:
    """One line per workload: its report, or the message of what stopped it."""
    table = Table(title=title, box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("workload", no_wrap=True)
    table.add_column("ok")
    for head in ("time us", "peak %", "roof %", "HBM / compulsory"):
        table.add_column(head, justify="right")
    table.add_column("bottleneck")
    table.add_column("values")
    for name, row in rows:
        if isinstance(row, RunReport):
            table.add_row(name, *_bench_cells(row))
        else:
            table.add_row(name, _yes(False), "", "", "", "", Text(row.splitlines()[0], style="red"), "")
    return table


def _bench_cells(report: RunReport) -> list[Text | str]:
    return [
        _yes(report.ok),
        f"{report.time_us:.1f}",
        f"{100 * report.peak_fraction:.2f}",
        f"{100 * report.roofline_fraction:.1f}",
        f"{report.hbm_bytes / report.hbm_compulsory_bytes:.2f}" if report.hbm_compulsory_bytes else "-",
        report.bottleneck,
        Text(report.verdicts["equivalent"], style=_STYLES[report.verdicts["equivalent"]]),
    ]


def _yes(value: bool) -> Text:
    return Text("yes", style="green") if value else Text("NO", style="bold red")


def run_tables(report: RunReport) -> tuple[Table, Table]:
    """The figures of one run, and its verdicts."""
    sizes = ", ".join(f"{k}={v}" for k, v in report.params.items())
    figures = Table(title=f"{report.name} on {report.target}" + (f" at {sizes}" if sizes else ""), show_header=False)
    figures.add_column()
    figures.add_column(overflow="fold")
    for name, value in _figures(report):
        figures.add_row(name, value)
    verdicts = Table(title="verdicts")
    for head in ("property", "verdict", "reason"):
        verdicts.add_column(head, overflow="fold")
    for name in PROPERTIES:
        level = report.verdicts[name]
        verdicts.add_row(name, Text(level, style=_STYLES[level]), Text(report.reasons.get(name, "")))
    return figures, verdicts


def _figures(report: RunReport) -> Iterable[tuple[str, str | Text]]:
    yield "ok", _yes(report.ok)
    if report.max_abs_error is not None and report.error_bound is not None and report.error_ratio is not None:
        sampled = "sampled " if report.error_bound_kind == "sampled" else ""
        yield "largest error", f"{report.max_abs_error:.3g} ({sampled}bound {report.error_bound:.3g})"
        yield "largest error / bound", f"{report.error_ratio:.3g}"
    yield "time", f"{report.time_us:.2f} us ({report.cycles} cycles)"
    if report.estimated_time_us is not None:
        yield "estimated time", f"{report.estimated_time_us:.2f} us"
    yield "operations", f"{report.flops:,} ({100 * report.peak_fraction:.2f} % of the {report.dtype} peak)"
    yield "of the roofline", f"{100 * report.roofline_fraction:.1f} %"
    yield "HBM bytes", f"{report.hbm_bytes:,}"
    yield "compulsory HBM bytes", f"{report.hbm_compulsory_bytes:,} (lower bound {report.hbm_lower_bound_bytes:,})"
    yield "scratchpad peak", f"{report.scratchpad_peak_bytes:,} bytes"
    busy = ", ".join(f"{engine} {100 * part:.0f} %" for engine, part in report.engine_busy.items() if part)
    yield "engines busy", busy or "none"
    yield "bottleneck", report.bottleneck
    yield "on the general engine", f"{100 * report.general_engine_fraction:.1f} % of the time"
    yield "on the tensor engine", f"{100 * report.tensor_engine_fraction:.1f} % of the multiply-adds"
    if report.axioms:
        yield "axioms", ", ".join(report.axioms)
    yield "compiled in", f"{report.compile_s:.2f} s"
    yield "simulated in", f"{report.simulate_s:.2f} s"


def machines_table(machines: Iterable[Machine]) -> Table:
    """One line per machine."""
    table = Table(title="targets")
    for head in ("name", "title", "on-chip memories", "engines", "peaks, TFLOP/s"):
        table.add_column(head, overflow="fold")
    for m in machines:
        memories = ", ".join(f"{x.name} {x.capacity_bytes // 1024} KiB" for x in m.memories if x.kind != "device")
        peaks = ", ".join(f"{d} {p / 1e3:.1f}" for d, p in m.peaks.items())
        table.add_row(m.name, m.title, memories, ", ".join(e.name for e in m.engines), peaks)
    return table


def machine_table(machine: Machine) -> Table:
    """Every figure of one machine with its source and tag."""
    table = Table(title=f"{machine.name}: {machine.title}")
    for head in ("figure", "value", "unit", "tag", "source"):
        table.add_column(head, overflow="fold")
    for path, f in machine.figures:
        formula = path.endswith(".cycles") and f.value == 0.0
        table.add_row(Text(path), "formula" if formula else f"{f.value:g}", Text(f.unit), f.tag, Text(f.source))
    return table
