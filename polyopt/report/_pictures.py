"""Pictures: what every engine did when, and where a program stands under the machine's roof."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from polyopt.errors import InputError, MissingExtraError, nearest
from polyopt.machine import Machine

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "COLOURS",
    "RooflinePoint",
    "Span",
    "draw_roofline",
    "draw_run",
    "draw_timeline",
    "new_figure",
    "save_figure",
    "save_roofline",
]

COLOURS = ("#4c72b0", "#dd8452", "#55a868", "#c44e52", "#8172b3", "#937860", "#da8bc3", "#8c8c8c", "#ccb974", "#64b5cd")


@dataclass(frozen=True, slots=True)
class Span:
    """`stream` (an engine or a queue) was busy with instruction site `label` from `start_ns` to `end_ns`."""

    stream: str
    label: str
    start_ns: float
    end_ns: float


@dataclass(frozen=True, slots=True)
class RooflinePoint:
    """One run: operations, bytes moved from and to device memory, time, and the element type whose peak counts."""

    name: str
    flops: int
    hbm_bytes: int
    time_ns: float
    dtype: str


def draw_run(path: Path, title: str, spans: Sequence[Span], point: RooflinePoint, machine: Machine) -> None:
    """Write one picture with the timeline above and the roofline below.  The suffix of `path` names the format.

    Raises MissingExtraError without matplotlib.
    """
    figure = new_figure(11.0, 8.5)
    upper, lower = figure.subplots(2, 1, height_ratios=(1, 1.2))
    figure.suptitle(title)
    draw_timeline(upper, spans)
    draw_roofline(lower, [point], machine)
    save_figure(figure, path)


def save_roofline(path: Path, title: str, points: Sequence[RooflinePoint], machine: Machine) -> None:
    """Write one picture with all points under the machine's roofs.  Raises MissingExtraError without matplotlib."""
    figure = new_figure(11.0, 7.0)
    figure.suptitle(title)
    draw_roofline(figure.subplots(), points, machine)
    save_figure(figure, path)


def draw_timeline(axes: Axes, spans: Sequence[Span]) -> None:
    """One row per stream in order of first use, one bar per instruction, one colour per site (they repeat)."""
    streams = list(dict.fromkeys(s.stream for s in sorted(spans, key=lambda s: (s.start_ns, s.stream))))
    labels = sorted({s.label for s in spans})
    for row, stream in enumerate(streams):
        own = [s for s in spans if s.stream == stream]
        axes.broken_barh(
            [(s.start_ns / 1e3, max(s.end_ns - s.start_ns, 0.0) / 1e3) for s in own],
            (row - 0.4, 0.8),
            facecolors=[COLOURS[labels.index(s.label) % len(COLOURS)] for s in own],
        )
    axes.set_yticks(range(len(streams)), streams)
    axes.invert_yaxis()
    axes.set_xlabel("time, us")
    axes.set_xlim(left=0)


def draw_roofline(axes: Axes, points: Sequence[RooflinePoint], machine: Machine) -> None:
    """Achieved operations per second over operations per byte moved, one roof for each element type of the points."""
    bytes_per_ns = sum(m.bytes_per_ns for m in machine.memories if m.kind == "device")
    shown = [p for p in points if p.flops and p.hbm_bytes and p.time_ns > 0]
    intensities = [p.flops / p.hbm_bytes for p in shown]
    ridge = max(machine.peaks.values()) / bytes_per_ns
    low, high = min([*intensities, 0.1]) / 2, max([*intensities, ridge]) * 4
    for number, dtype in enumerate(sorted({p.dtype for p in shown})):
        peak = machine.peaks[dtype]
        xs = [low, peak / bytes_per_ns, high]
        axes.plot(xs, [min(x * bytes_per_ns, peak) / 1e3 for x in xs], color=COLOURS[number], label=f"{dtype} roof")
    for p, x in zip(shown, intensities, strict=True):
        axes.plot([x], [p.flops / p.time_ns / 1e3], "o", color="black", markersize=4)
        axes.annotate(p.name, (x, p.flops / p.time_ns / 1e3), xytext=(4, 4), textcoords="offset points", fontsize=8)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("operations per byte of device memory traffic")
    axes.set_ylabel("TFLOP/s")
    axes.grid(True, which="major", alpha=0.3)
    if shown:
        axes.legend(loc="lower right")


def new_figure(width: float, height: float) -> Figure:
    """A figure without any window system."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtraError(
            "a picture needs matplotlib, which is not installed", help="pip install 'polyopt[plot]'"
        ) from error
    return Figure(figsize=(width, height), layout="constrained")


def save_figure(figure: Figure, path: Path) -> None:
    """The bytes depend on the figure alone: no date, version or random name is written into the file.

    Raises InputError when the suffix of `path` names no format.
    """
    from matplotlib import rc_context

    suffix = path.suffix.lstrip(".").lower()
    known = figure.canvas.get_supported_filetypes()
    if suffix not in known:
        raise InputError(
            f"cannot draw a picture {path.name!r}{nearest(suffix, known)}", help="end its name in .png, .svg or .pdf"
        )
    metadata = {"png": {"Software": None}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(suffix)
    with rc_context({"svg.hashsalt": "polyopt"}):
        figure.savefig(path, dpi=120, metadata=metadata)
