"""The iteration space of one kernel: bounds of its dimensions inside any prefix of its tile loops, exactly and
symbolically.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from polyopt.errors import UnsupportedError
from polyopt.ir.mapping import Span, Window
from polyopt.sets import Affine, Constraint, Set, affine, maximum, minimum

__all__ = ["LoopShape", "Space", "hull"]


@dataclass(frozen=True, slots=True)
class LoopShape:
    """A tile loop before its bounds are known: `var` steps over starts of `step` points of `dim`."""

    dim: str
    var: str
    step: int


@dataclass(frozen=True, slots=True)
class Space:
    """domain: the statement's instances; outer: its iterators that surrounding sequential loops fix; sizes: hints.

    extents: number of points of every dimension at the hinted sizes, at most.  box: bounds (upper excluded) of every
    dimension when they depend on parameters and outer iterators only, else None.  reduced: dimensions that a reduction
    runs over: their loops do not tighten bounds, so that every iteration of a reduction works on the same box.
    loose: windows, whose projections may be taken without their strides.  steady: dimensions whose bounds no loop
    tightens.
    """

    domain: Set
    outer: tuple[str, ...]
    sizes: Mapping[str, int]
    extents: Mapping[str, int]
    box: Mapping[str, tuple[Affine, Affine]] | None = None
    reduced: tuple[str, ...] = ()
    loose: tuple[str, ...] = ()
    steady: tuple[str, ...] = ()

    @staticmethod
    def of(domain: Set, outer: Sequence[str], sizes: Mapping[str, int], reduced: Sequence[str] = ()) -> Space:
        """The space of `domain`, its box found when it is one."""
        box = _box(domain, outer)
        return Space(domain, tuple(outer), sizes, _extents(domain, outer, sizes), box, tuple(reduced))

    def for_loops(self, loops: Sequence[LoopShape]) -> Space:
        """The space as a kernel with these loops sees it: reduced dimensions that are one tile always begin at the same
        point, so that they may lie on the partitions.
        """
        looped = {loop.dim for loop in loops}
        return replace(self, steady=tuple(d for d in self.reduced if d not in looped))

    def with_windows(self, windows: Sequence[Window]) -> Space:
        """The same instances with one dimension more for the value of each window."""
        names = tuple(w.name for w in windows)
        rows = [Constraint(affine(w.name) - w.expr, equality=True) for w in windows]
        extents = dict(self.extents)
        box = None if self.box is None else dict(self.box)
        for w in windows:
            if box is not None:
                low, high = hull(w.expr, {d: box[d] for d in w.expr.variables() if d in box})
                box[w.name] = (low, high)
            extents[w.name] = 1 + sum(abs(w.expr.coefficient(d)) * (n - 1) for d, n in self.extents.items())
        domain = self.domain.add_dims(names).constrain(rows)
        return replace(self, domain=domain, extents=extents, box=box, loose=names)

    def inside(self, loops: Sequence[LoopShape]) -> Set:
        """Instances with one dimension more for each loop variable: var <= dim < var + step."""
        extended = self.domain.add_dims([loop.var for loop in loops])
        rows: list[Constraint] = []
        for loop in loops:
            offset = affine(loop.dim) - loop.var
            rows += [Constraint(offset), Constraint(affine(loop.step - 1) - offset)]
        return extended.constrain(rows)

    def around(self, loops: Sequence[LoopShape]) -> Set:
        """What the variables of `loops` run through, instances or not, behind the outer iterators."""
        rows: list[Constraint] = []
        for k, loop in enumerate(loops):
            low, high = self.bounds(loop.dim, loops[:k])
            rows += [Constraint(affine(loop.var) - low), Constraint(high - 1 - loop.var)]
        return self.domain.project_onto(self.outer).add_dims([loop.var for loop in loops]).constrain(rows)

    def bounds(self, dim: str, loops: Sequence[LoopShape]) -> tuple[Affine, Affine]:
        """(lower, upper excluded) of `dim` in terms of parameters, outer iterators and the variables of `loops`.

        A loop over `dim` itself clips to its step without making the expressions longer than needed.
        """
        own = [loop for loop in loops if loop.dim == dim]
        if self.box is not None:
            low, high = self.box[dim]
            return (affine(own[-1].var), minimum(high, affine(own[-1].var) + own[-1].step)) if own else (low, high)
        others = [loop for loop in loops if loop.dim != dim and loop.dim not in self.reduced]
        others = [] if dim in self.steady else others
        low, high = _bounds(self.inside(others), dim, (*self.outer, *(loop.var for loop in others)))
        if not own:
            return low, high
        start = affine(own[-1].var)
        stops = [affine(loop.var) + loop.step for loop in own[-1:]]
        return start, minimum(high, *stops)

    def span(self, dim: str, loops: Sequence[LoopShape], size: int) -> Span:
        """What a buffer inside `loops` covers of `dim`; `size` is the largest number of points."""
        low, high = self.bounds(dim, loops)
        return Span(dim, size, low, high, low, high)

    def window_span(self, window: Window, loops: Sequence[LoopShape], size: int) -> Span:
        """What a buffer inside `loops` covers of a window: the hull over the box of its dimensions, of which the values
        that instances really have are copied.
        """
        bounds = {d: self.bounds(d, loops) for d in window.expr.variables() if d in self.extents}
        low, high = hull(window.expr, bounds)
        if self.box is not None:
            return Span(window.name, size, low, high, low, high)
        first, last = self.bounds(window.name, loops)
        return Span(window.name, size, low, high, maximum(low, first), minimum(high, last))

    def residual(self, dims: Sequence[str], loops: Sequence[LoopShape]) -> tuple[Constraint, ...]:
        """Constraints of the projection on `dims` that the box of their bounds does not imply.

        Raises UnsupportedError when they are not one conjunction of inequalities without integer divisions.
        """
        if self.box is not None:
            return ()
        kept = [*self.outer, *(loop.var for loop in loops), *dims]
        whole = self.inside(loops)
        projected = whole.project_onto(kept)
        if self.loose:
            projected = projected.without_strides()
        rows: list[Constraint] = []
        for d in dims:
            low, high = self.bounds(d, loops)
            rows += [Constraint(affine(d) - low), Constraint(high - 1 - d)]
        box = self.around(loops).add_dims(dims).constrain(rows)
        if box.is_subset(projected):
            return ()
        parts = projected.gist(box).basic()
        if len(parts) != 1 or any(not c.expr.is_linear() for c in parts[0]):
            raise UnsupportedError("the domain is not a box with linear constraints", id="domain-shape")
        return tuple(parts[0])

    def hint(self, dim: str) -> int:
        """The number of points of `dim` at the hinted sizes, at most."""
        return self.extents[dim]


def hull(expr: Affine, bounds: Mapping[str, tuple[Affine, Affine]]) -> tuple[Affine, Affine]:
    """(lowest, highest + 1) value of a linear expression over a box of bounds (upper excluded)."""
    low, high = expr, expr
    for d, (first, stop) in bounds.items():
        c = expr.coefficient(d)
        near, far = (first, stop - 1) if c > 0 else (stop - 1, first)
        low = low + (near - affine(d)) * c
        high = high + (far - affine(d)) * c
    return low, high + 1


def _extents(domain: Set, outer: Sequence[str], sizes: Mapping[str, int]) -> dict[str, int]:
    fixed = domain.fix(sizes)
    inner = [d for d in domain.dims if d not in outer]
    if fixed.is_empty():
        return dict.fromkeys(inner, 0)
    found: dict[str, int] = {}
    for d in inner:
        low, high = fixed.bounds(d)
        found[d] = max(0, high.evaluate(sizes) - low.evaluate(sizes) + 1)
    return found


def _box(domain: Set, outer: Sequence[str]) -> dict[str, tuple[Affine, Affine]] | None:
    parts = domain.basic()
    dims = [d for d in domain.dims if d not in outer]
    if len(parts) != 1:
        return None
    for row in parts[0]:
        inner = [v for v in row.expr.variables() if v in dims]
        if not row.expr.is_linear() or len(inner) > 1 or (inner and abs(row.expr.coefficient(inner[0])) != 1):
            return None
    return {d: (low, high + 1) for d in dims for low, high in [domain.bounds(d, outer)]}


def _bounds(domain: Set, dim: str, known: Sequence[str]) -> tuple[Affine, Affine]:
    if domain.is_empty():
        return affine(0), affine(0)
    low, high = domain.bounds(dim, known)
    return low, high + 1
