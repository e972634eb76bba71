"""Values of general instructions: a counted scalar loop over the lane points in lexicographic order.

Points that do not read what earlier points of the same instance write are evaluated together; `select`, `and` and `or`
evaluate only what is needed, so an operand may be out of bounds where it is not chosen.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from polyopt.ir import Apply, Cast, Const, Expr, Index, Read, Uninterpreted, walk
from polyopt.simulator._affine import grid_holds, grid_value
from polyopt.simulator._functions import REDUCERS, Arithmetic, truth
from polyopt.simulator._hazards import may_meet
from polyopt.simulator._memory import Region, Store, View
from polyopt.simulator._plan import SitePlan
from polyopt.simulator._result import Array
from polyopt.simulator._scalar import ScalarLoop, is_short
from polyopt.simulator._values import Record, index_views

__all__ = ["GeneralRunner", "general_points", "is_multiply_add"]

Points = dict[str, Any]
"""Loop variables as integers, lanes as arrays with one entry per point."""


def general_points(site: SitePlan, extents: Sequence[int], at: Mapping[str, int]) -> tuple[Points, int]:
    """The lane points inside the mask in lexicographic order, and their number."""
    count = math.prod(extents)
    grids = np.indices(tuple(extents), dtype=np.int64).reshape(len(extents), count)
    points: Points = {**at, **dict(zip(site.lanes, grids, strict=True))}
    if site.mask:
        holds = np.broadcast_to(np.asarray(grid_holds(site.mask, points)), (count,))
        if not holds.all():
            points = {**at, **{n: g[holds] for n, g in zip(site.lanes, grids, strict=True)}}
            count = int(np.count_nonzero(holds))
    return points, count


def is_multiply_add(site: SitePlan) -> bool:
    """Whether a general instruction adds a product to its output."""
    value = site.instr.value
    if not isinstance(value, Apply) or value.op != "+":
        return False
    reads_output = [is_output(site, a) for a in value.args]
    products = [isinstance(a, Apply) and a.op == "*" for a in value.args]
    return (reads_output[0] and products[1]) or (reads_output[1] and products[0])


def is_output(site: SitePlan, expr: Expr) -> bool:
    """Whether `expr` is the old value of the output cell."""
    if not isinstance(expr, Read):
        return False
    return site.instr.operand(expr.access.tensor) == site.instr.operands[0][1]


class GeneralRunner:
    """Executes the instances of one general site."""

    def __init__(self, site: SitePlan, store: Store | None, arithmetic: Arithmetic) -> None:
        assert site.instr.value is not None
        self.site = site
        self.maybe_store = store
        self.arithmetic = arithmetic
        self.value_of: Expr = site.instr.value
        self.views = {o.name: View(o) for o in site.operands}
        self.output = self.views[site.output.name]
        self.reads = list(dict.fromkeys(n.access.tensor for n in walk(self.value_of) if isinstance(n, Read)))
        self.close = [n for n in self.reads if any(may_meet(site.output, v) for v in self.views[n].plan.chain)]

    @cached_property
    def loop(self) -> ScalarLoop | None:
        """The compiled loop over single points; None for elements of several cells and for unbounded integers."""
        if self.arithmetic.unbounded or any(v.array.cells_per_element > 1 for v in self.site.all_views):
            return None
        return ScalarLoop(self.site, self.views, self.store, self.arithmetic)

    @property
    def store(self) -> Store:
        assert self.maybe_store is not None
        return self.maybe_store

    def run(self, extents: Sequence[int], at: Mapping[str, int], record: Record | None) -> None:
        """Execute one instance."""
        points, count = general_points(self.site, extents, at)
        if not count:
            return
        target = self.locate(self.output, points, count, at, record)
        term = self.folded_term()
        if term is not None:
            self.fold(*term, target, points, count, at, record)
            return
        stretches = self.runs(target, points, count)
        if self.loop is not None and is_short(stretches, count):
            self.run_scalars(self.loop, target, points, count, at, record)
            return
        for begin, end in stretches:
            part = points if end - begin == count else self.sliced(points, slice(begin, end))
            cells = target if end - begin == count else target.subset(np.arange(begin, end))
            self.assign(cells, part, end - begin, at, record)

    def run_scalars(
        self,
        loop: ScalarLoop,
        target: Region,
        points: Points,
        count: int,
        at: Mapping[str, int],
        record: Record | None,
    ) -> None:
        """Point after point."""
        loop.run(target, points, count, at)
        if record:
            for region in loop.regions(at):
                record(region, False)
            record(target, True)

    def touch(self, extents: Sequence[int], at: Mapping[str, int], record: Record) -> None:
        """Report what an instance may touch, without values."""
        points, count = general_points(self.site, extents, at)
        if not count:
            return
        for name in self.reads:
            for view in (self.views[name], *index_views(self.views[name])):
                record(self.possible(view, points, count, at), False)
        record(self.possible(self.output, points, count, at), True)

    def possible(self, view: View, points: Points, count: int, at: Mapping[str, int]) -> Region:
        if view.indices:
            return view.everywhere()
        coordinates = self.coordinates(view, points, count)
        inside = np.ones(count, np.bool_)
        for c, n in zip(coordinates, view.shape, strict=True):
            inside &= (c >= 0) & (c < n)
        return view.indexed(self.site, [c[inside] for c in coordinates], self.copy(view, points), at)

    # -- places ---------------------------------------------------------------------------------------------------
    def sliced(self, points: Points, chosen: Any) -> Points:
        lanes = {n: points[n][chosen] for n in self.site.lanes}
        return {**points, **lanes}

    def copy(self, view: View, points: Points) -> Any:
        return grid_value(view.plan.copy, points) % view.copies

    def coordinates(self, view: View, points: Points, count: int) -> list[Array]:
        found = []
        for axis, base in enumerate(view.plan.base):
            value = grid_value(base, points)
            for lane, step in view.moving[axis]:
                value = value + points[self.site.lanes[lane]] * step
            found.append(np.broadcast_to(np.asarray(value, np.int64), (count,)))
        return found

    def locate(self, view: View, points: Points, count: int, at: Mapping[str, int], record: Record | None) -> Region:
        coordinates = self.coordinates(view, points, count)
        for axis, inner in view.indices:
            index = self.locate(inner, points, count, at, record)
            if record:
                record(index, False)
            coordinates[axis] = coordinates[axis] + self.store.read(index, self.site, at).astype(np.int64)
        region = view.indexed(self.site, coordinates, self.copy(view, points), at)
        if region.value_index is not None and region.cell_index is not None and not coordinates:
            region.value_index = np.broadcast_to(region.value_index, (count,))
            region.cell_index = np.broadcast_to(region.cell_index, (count,))
        return region

    # -- order ----------------------------------------------------------------------------------------------------
    def runs(self, target: Region, points: Points, count: int) -> list[tuple[int, int]]:
        """Stretches of points in which no point reads what an earlier one of the stretch writes."""
        if not self.close or count == 1:
            return [(0, count)]
        after = np.full(count, -1)
        for name in self.close:
            view = self.views[name]
            if view.indices or view.plan.array.name != self.output.plan.array.name:
                return [(k, k + 1) for k in range(count)]
            after = np.maximum(after, self.latest_writer(view, target, points, count))
        stretches, begin = [], 0
        for k in np.flatnonzero(after >= 0):
            if after[k] >= begin:
                stretches.append((begin, int(k)))
                begin = int(k)
        return [*stretches, (begin, count)]

    def latest_writer(self, view: View, target: Region, points: Points, count: int) -> Array:
        """Per point the last earlier point that writes what it reads through `view`, -1 when none does."""
        assert target.value_index is not None
        strides = view.plan.array.value_strides
        read = np.asarray(self.copy(view, points) * strides[0])
        for c, s in zip(self.coordinates(view, points, count), strides[1:], strict=True):
            read = read + c * s
        keys = np.sort(target.value_index * count + np.arange(count))
        wanted = np.broadcast_to(read, (count,)) * count + np.arange(count)
        found = np.searchsorted(keys, wanted) - 1
        key = keys[np.maximum(found, 0)]
        hit = (found >= 0) & (key // count == wanted // count)
        return np.where(hit, key % count, -1)

    def assign(self, target: Region, points: Points, count: int, at: Mapping[str, int], record: Record | None) -> None:
        value = np.broadcast_to(np.asarray(self.evaluate(self.value_of, points, count, at, record)), (count,))
        stored = self.arithmetic.store(value, self.output.plan.array.dtype)
        self.put(target, stored, record)

    def put(self, target: Region, stored: Array, record: Record | None) -> None:
        """Write; of several points with one cell the last one counts."""
        assert target.value_index is not None
        if record:
            record(target, True)
        _, last = np.unique(target.value_index[::-1], return_index=True)
        if len(last) < len(stored):
            keep = len(stored) - 1 - last
            target, stored = target.subset(keep), stored[keep]
        self.store.write(target, stored)

    # -- reductions -----------------------------------------------------------------------------------------------
    def folded_term(self) -> tuple[str, Expr] | None:
        """(combiner, term) when the value is `output combine term` and the term does not read near the output."""
        value = self.value_of
        if not isinstance(value, Apply) or value.op not in REDUCERS:
            return None
        for old, term in (value.args, value.args[::-1]):
            if is_output(self.site, old):
                reads = {n.access.tensor for n in walk(term) if isinstance(n, Read)}
                if not reads & set(self.close):
                    return value.op, term
        return None

    def fold(
        self,
        op: str,
        term: Expr,
        target: Region,
        points: Points,
        count: int,
        at: Mapping[str, int],
        record: Record | None,
    ) -> None:
        """`cell = cell op term` point after point, rounded to the output's type each time."""
        assert target.value_index is not None
        name = self.output.plan.array.dtype
        terms = self.evaluate(term, points, count, at, record)
        _, first, group = np.unique(target.value_index, return_index=True, return_inverse=True)
        cells = target.subset(first)
        if record:
            record(cells, False)
        raw = self.store.read(cells, self.site, at)
        old, terms = self.arithmetic.promote([self.arithmetic.load(raw, name), terms])
        terms = np.broadcast_to(terms, (count,))
        if self.arithmetic.exact or old.dtype == raw.dtype or old.dtype.kind == "i":
            total = self.arithmetic.fold_groups(op, old, group.reshape(-1), terms)
        else:
            total = old.copy()
            for k, g in enumerate(group.reshape(-1)):
                total[g] = self.arithmetic.cast(REDUCERS[op](total[g], terms[k]), name)
        self.put(cells, self.arithmetic.store(total, name), record)

    # -- expressions ----------------------------------------------------------------------------------------------
    def evaluate(self, expr: Expr, points: Points, count: int, at: Mapping[str, int], record: Record | None) -> Any:
        if isinstance(expr, Const):
            return self.arithmetic.constant(expr.value)
        if isinstance(expr, Index):
            return np.broadcast_to(np.asarray(grid_value(expr.value, points), np.int64), (count,))
        if isinstance(expr, Read):
            view = self.views[expr.access.tensor]
            region = self.locate(view, points, count, at, record)
            if record:
                record(region, False)
            return self.arithmetic.load(self.store.read(region, self.site, at), view.plan.array.dtype)
        if isinstance(expr, Cast):
            return self.arithmetic.cast(self.evaluate(expr.arg, points, count, at, record), expr.dtype)
        if isinstance(expr, Apply) and expr.op in ("select", "and", "or"):
            return self.lazy(expr, points, count, at, record)
        args = [self.evaluate(a, points, count, at, record) for a in expr.args]
        if isinstance(expr, Uninterpreted):
            return self.arithmetic.call(expr.name, *args)
        return self.arithmetic.apply(expr.op, *args)

    def lazy(self, expr: Apply, points: Points, count: int, at: Mapping[str, int], record: Record | None) -> Any:
        """`select`, `and`, `or`: the second part only where the first one calls for it."""
        test = np.broadcast_to(truth(self.evaluate(expr.args[0], points, count, at, record)), (count,))
        if expr.op == "select":
            then, other = expr.args[1], expr.args[2]
        else:
            then, other = (expr.args[1], Const(False)) if expr.op == "and" else (Const(True), expr.args[1])
        if test.all() or not test.any():
            value = self.evaluate(then if test.all() else other, points, count, at, record)
            return value if expr.op == "select" else truth(value)
        chosen = np.flatnonzero(test), np.flatnonzero(~test)
        parts = [
            self.evaluate(e, self.sliced(points, k), len(k), at, record)
            for e, k in zip((then, other), chosen, strict=True)
        ]
        parts = [truth(p) for p in parts] if expr.op != "select" else self.arithmetic.promote(parts)
        result = np.empty(count, parts[0].dtype)
        for k, p in zip(chosen, parts, strict=True):
            result[k] = p
        return result
