"""From a violated dependence to a picture of the iteration space around it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from polyopt.explain._finding import Explanation, Finding, distance
from polyopt.explain._nest import loops_of
from polyopt.ir import Scop
from polyopt.report import Arrow, PointSet, SpacePicture, save_space
from polyopt.schedule import Dependence, Instance, Witness, reduced_dependences
from polyopt.sets import Constraint, Set, affine

__all__ = ["draw_findings", "draw_witness", "space_picture"]

MARGIN = 2
"""Iterations shown around the pair."""

MAX_WIDTH = 16
"""An axis that the pair spans further is cut out between source and sink."""

MAX_ARROWS = 400

OFFSET = 0.14
"""How far the points of each further statement are moved aside, so that all are seen."""

GROWTH = 2
"""How much larger than the smallest sizes the picture's sizes are, where the pair and the context allow it."""

Loops = Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class _View:
    """What is drawn: statements with the iterators on the axes (None: the statement has no such loop), the part of each
    axis that is shown, as (first, last) ranges, and the sizes.  rows: one axis only, a row for each statement.
    """

    scop: Scop
    axes: Mapping[str, tuple[str | None, ...]]
    ranges: tuple[tuple[tuple[int, int], ...], ...]
    sizes: Mapping[str, int]
    rows: bool

    def place(self, statement: str, at: Sequence[int]) -> tuple[float, float]:
        number = list(self.axes).index(statement)
        aside = OFFSET * number
        return (at[0] + (0 if self.rows else aside), number if self.rows else at[1] + aside)


def draw_findings(explanation: Explanation, written: Scop, chosen: Scop, folder: Path) -> dict[Finding, Path]:
    """Draw every finding that has a witness into `folder`; findings of one kind with the same witness share a picture.

    written, chosen: the programs whose loops the findings are about.  Returns the file of each finding.
    """
    made: dict[tuple[str, str, Witness], Path] = {}
    found: dict[Finding, Path] = {}
    for f in explanation.findings:
        if f.witness is None:
            continue
        key = (f.kind, f.order, f.witness)
        if key not in made:
            scop = written if f.order == "written" else chosen
            words = re.sub(r"\W+", "-", f.subject).strip("-")[:60]
            made[key] = folder / f"{len(made) + 1:02d}-{f.kind}-{words}.png"
            loops = {s.name: loops_of(s) for s in scop.statements}
            save_space(made[key], space_picture(scop, f.witness, f"{f.kind}: {f.subject}", loops))
        found[f] = made[key]
    return found


def draw_witness(path: Path, scop: Scop, witness: Witness, title: str) -> None:
    """Write the picture of one violated dependence of a program, all iterators counting as loops."""
    save_space(path, space_picture(scop, witness, title, {s.name: s.iterators for s in scop.statements}))


def space_picture(scop: Scop, witness: Witness, title: str, loops: Loops) -> SpacePicture:
    """The instances of the witness's statements around it, their dependences, and the witness as the violated one.

    loops: the iterators of each statement, outermost first.  Two of them are shown: those in which the pair differs, or
    the outermost ones.
    """
    view, shown = _view(scop, witness, loops)
    violated = _violated(view, witness)
    taken = (violated.source, violated.sink)
    arrows = [a for a in _arrows(view) if (a.source, a.sink) != taken][:MAX_ARROWS]
    names = [_axis_name(view, k) for k in range(1 if view.rows else 2)]
    sizes = ", ".join(f"{n} = {v}" for n, v in view.sizes.items())
    lines = [title, ", ".join(filter(None, (sizes, _projection(view, loops, shown))))]
    return SpacePicture(
        title="\n".join(filter(None, lines)),
        x_name=names[0],
        y_name="" if view.rows else names[1],
        statements=tuple(PointSet(n, tuple(_points(view, n))) for n in view.axes),
        arrows=(*arrows, violated),
        y_ticks=tuple(view.axes) if view.rows else (),
    )


def _view(scop: Scop, witness: Witness, loops: Loops) -> tuple[_View, tuple[int, ...]]:
    source, sink = witness.source.statement, witness.sink.statement
    names = tuple(s.name for s in scop.statements if s.name in (source, sink))
    depth = max(len(loops[n]) for n in names)
    steps = distance(witness, loops[source], loops[sink])
    ranked = sorted(range(depth), key=lambda k: (k >= len(steps), k < len(steps) and not steps[k], k))
    chosen = tuple(sorted(ranked[:2])) or (0,)
    axes: dict[str, tuple[str | None, ...]] = {
        n: tuple(loops[n][k] if k < len(loops[n]) else None for k in chosen) for n in names
    }
    pair = [_at(i, axes[i.statement]) for i in (witness.source, witness.sink)]
    ranges = tuple(_ranges(*sorted(p[k] for p in pair)) for k in range(len(chosen)))
    small = replace(scop, statements=tuple(scop.statement(n) for n in names))
    return _View(small, axes, ranges, _sizes(small, witness), len(chosen) == 1), chosen


def _ranges(low: int, high: int) -> tuple[tuple[int, int], ...]:
    """What is shown of an axis on which the pair lies at `low` and `high`."""
    if high - low > MAX_WIDTH:
        return (low - MARGIN, low + MARGIN), (high - MARGIN, high + MARGIN)
    return ((low - MARGIN, max(high, low + 1) + MARGIN),)


def _at(instance: Instance, axes: Sequence[str | None]) -> tuple[int, ...]:
    values = dict(instance.at)
    return tuple(values[i] if i is not None else 0 for i in axes)


def _sizes(scop: Scop, witness: Witness) -> dict[str, int]:
    """Somewhat larger sizes than the witness's where both of its instances still exist there."""
    smallest = dict(witness.params)
    larger = {n: v + GROWTH for n, v in smallest.items()}
    for i in (witness.source, witness.sink):
        domain = scop.statement(i.statement).domain.intersect_params(scop.context)
        if domain.fix({**larger, **dict(i.at)}).is_empty():
            return smallest
    return larger


def _points(view: _View, statement: str) -> Iterator[tuple[float, float]]:
    s = view.scop.statement(statement)
    axes = view.axes[statement]
    shown = [i for i in axes if i is not None]
    domain = s.domain.intersect_params(view.scop.context).fix(view.sizes)
    for part in _windows(domain, axes, view.ranges):
        for point in part.project_onto(shown).points(view.sizes):
            yield view.place(statement, _filled(axes, point))


def _filled(axes: Sequence[str | None], point: Sequence[int]) -> tuple[int, ...]:
    """The point with 0 on each axis that is no loop of the statement."""
    values = iter(point)
    return tuple(0 if i is None else next(values) for i in axes)


def _windows(
    points: Set, axes: Sequence[str | None], ranges: Sequence[tuple[tuple[int, int], ...]], start: int = 0
) -> Iterator[Set]:
    """The parts of a set inside each combination of the axes' ranges."""
    if start == len(axes):
        yield points
        return
    name = axes[start]
    if name is None:
        yield from _windows(points, axes, ranges, start + 1)
        return
    for low, high in ranges[start]:
        rows = [Constraint(affine(name) - low), Constraint(affine(high) - name)]
        yield from _windows(points.constrain(rows), axes, ranges, start + 1)


def _arrows(view: _View) -> list[Arrow]:
    """The dependences that imply all others, those between the same places once."""
    found: dict[Arrow, None] = {}
    for d in reduced_dependences(view.scop):
        for source, sink in _pairs(view, d):
            begin, end = view.place(d.source, source), view.place(d.sink, sink)
            if begin != end:
                found[Arrow(d.kind, begin, end)] = None
    return sorted(found, key=lambda a: (a.source, a.sink, a.kind))


def _pairs(view: _View, d: Dependence) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    source, sink = view.scop.statement(d.source), view.scop.statement(d.sink)
    primed = {i: f"{i}'" for i in sink.iterators}
    first = view.axes[d.source]
    second = tuple(None if i is None else primed[i] for i in view.axes[d.sink])
    pairs = d.relation.wrapped(source.iterators, primed.values()).intersect_params(view.scop.context).fix(view.sizes)
    shown = [i for i in (*first, *second) if i is not None]
    for part in _windows(pairs, first, view.ranges):
        for inside in _windows(part, second, view.ranges):
            for point in inside.project_onto(shown).points(view.sizes):
                values = _filled((*first, *second), point)
                yield values[: len(first)], values[len(first) :]


def _violated(view: _View, witness: Witness) -> Arrow:
    places = [view.place(i.statement, _at(i, view.axes[i.statement])) for i in (witness.source, witness.sink)]
    cell = ", ".join(map(str, witness.cell)) or "()"
    label = f"{witness.kind} on {witness.tensor}[{cell}]: {witness.source} -> {witness.sink}"
    return Arrow(witness.kind, places[0], places[1], violated=True, label=label)


def _axis_name(view: _View, k: int) -> str:
    names = {n: axes[k] for n, axes in view.axes.items() if axes[k] is not None}
    if len(set(names.values())) == 1:
        return next(iter(names.values())) or ""
    return ", ".join(f"{i} of {n}" for n, i in names.items())


def _projection(view: _View, loops: Loops, shown: tuple[int, ...]) -> str:
    """Says so when the statements have more loops than are shown."""
    largest = max((loops[n] for n in view.axes), key=len)
    if len(largest) <= len(shown):
        return ""
    return f"projected on ({', '.join(largest[k] for k in shown)}) of ({', '.join(largest)})"
