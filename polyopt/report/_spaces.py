"""Pictures of iteration spaces: instances as points, dependences as arrows, a violated one in red."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from polyopt.report._pictures import COLOURS, new_figure, save_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["KIND_COLOURS", "Arrow", "PointSet", "SpacePicture", "draw_space", "save_space"]

KIND_COLOURS = {"flow": "#4c72b0", "anti": "#55a868", "output": "#8172b3"}
"""Write then read, read then write, write then write."""

VIOLATED = "#d00000"

BENDS = {"flow": 0.12, "anti": -0.12, "output": 0.25}
"""Arrows of different kinds between the same places are bent apart."""

Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class PointSet:
    """The instances of one statement."""

    label: str
    points: tuple[Point, ...]


@dataclass(frozen=True, slots=True)
class Arrow:
    """A dependence between two places.

    violated: drawn in bold red with `label`; `label` is shown for no other.
    """

    kind: str
    source: Point
    sink: Point
    violated: bool = False
    label: str = ""


@dataclass(frozen=True, slots=True)
class SpacePicture:
    """What is drawn.  x_name, y_name: iterators along the axes; y_ticks: names of places on y instead of numbers."""

    title: str
    x_name: str
    y_name: str
    statements: tuple[PointSet, ...]
    arrows: tuple[Arrow, ...]
    y_ticks: tuple[str, ...] = ()


def save_space(path: Path, picture: SpacePicture) -> None:
    """Write one picture; the suffix of `path` names the format.  The same picture gives the same bytes.

    Raises MissingExtraError without matplotlib, InputError on a suffix that is no picture's.
    """
    figure = new_figure(8.0, 6.5)
    draw_space(figure.subplots(), picture)
    save_figure(figure, path)


def draw_space(axes: Axes, picture: SpacePicture) -> None:
    """Points of one colour for each statement; one arrow for each dependence, its `gid` the kind, or `violated`."""
    for k, s in enumerate(picture.statements):
        xs, ys = [x for x, _ in s.points], [y for _, y in s.points]
        axes.scatter(xs, ys, s=36, color=COLOURS[k % len(COLOURS)], label=s.label, zorder=3)
    for arrow in sorted(picture.arrows, key=lambda a: a.violated):
        _draw_arrow(axes, arrow)
    _label_axes(axes, picture)
    _draw_legend(axes, picture.arrows)


def _draw_arrow(axes: Axes, arrow: Arrow) -> None:
    from matplotlib.patches import FancyArrowPatch

    begin, end = arrow.source, arrow.sink
    colour = VIOLATED if arrow.violated else KIND_COLOURS[arrow.kind]
    bend = f"arc3,rad={BENDS[arrow.kind]}"
    patch = FancyArrowPatch(
        begin,
        end,
        arrowstyle="-|>",
        mutation_scale=18.0 if arrow.violated else 10.0,
        connectionstyle=bend,
        color=colour,
        linewidth=2.8 if arrow.violated else 0.9,
        shrinkA=4.0,
        shrinkB=4.0,
        zorder=4 if arrow.violated else 2,
        alpha=1.0 if arrow.violated else 0.7,
    )
    patch.set_gid("violated" if arrow.violated else arrow.kind)
    axes.add_patch(patch)
    if arrow.violated and arrow.label:
        middle = ((begin[0] + end[0]) / 2, (begin[1] + end[1]) / 2)
        axes.annotate(
            arrow.label,
            middle,
            xytext=(14, 0),
            textcoords="offset points",
            ha="left",
            va="center",
            color=VIOLATED,
            fontsize=9,
            fontweight="bold",
            zorder=5,
            bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.85, "pad": 1.0},
        )


def _label_axes(axes: Axes, picture: SpacePicture) -> None:
    from matplotlib.ticker import MaxNLocator

    places = [
        *(p for s in picture.statements for p in s.points),
        *(p for a in picture.arrows for p in (a.source, a.sink)),
    ]
    axes.set_xlim(*_limits([x for x, _ in places]))
    axes.set_ylim(*_limits([y for _, y in places]))
    for axis_line in (axes.xaxis, axes.yaxis):
        axis_line.set_major_locator(MaxNLocator(integer=True))
    if picture.y_ticks:
        axes.set_yticks(range(len(picture.y_ticks)), picture.y_ticks)
    axes.set_xlabel(picture.x_name)
    axes.set_ylabel(picture.y_name)
    axes.set_title(picture.title, fontsize=10, wrap=True)
    axes.grid(True, alpha=0.2)


def _limits(values: Sequence[float]) -> tuple[float, float]:
    return min(values, default=0.0) - 0.6, max(values, default=0.0) + 0.6


def _draw_legend(axes: Axes, arrows: Sequence[Arrow]) -> None:
    from matplotlib.lines import Line2D

    handles, labels = axes.get_legend_handles_labels()
    kinds = {a.kind for a in arrows if not a.violated}
    for kind, colour in KIND_COLOURS.items():
        if kind in kinds:
            handles.append(Line2D([], [], color=colour))
            labels.append(f"{kind} dependence")
    if any(a.violated for a in arrows):
        handles.append(Line2D([], [], color=VIOLATED, linewidth=2.8))
        labels.append("violated")
    axes.legend(handles, labels, loc="upper left", bbox_to_anchor=(1.0, 1.0), fontsize=8)
