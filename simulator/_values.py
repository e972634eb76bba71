"""Values of compute instructions and transfers, read from the specification's body.

A body is evaluated over the whole box of lanes at once: every operand is a numpy array with one axis per lane of the
instruction, of extent 1 where its view does not move.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from polyopt.machine import IndexRef, MaskRef, OperandRef, OpRef, Pattern, ScalarRef
from polyopt.simulator._affine import grid_holds, grid_value
from polyopt.simulator._functions import Arithmetic
from polyopt.simulator._hazards import WriteCheck
from polyopt.simulator._memory import Region, Store, View
from polyopt.simulator._plan import SitePlan
from polyopt.simulator._result import Array

__all__ = ["Runner", "index_views", "is_sum_of_products", "lane_grid", "mask_grid", "reduced_axes"]

Record = Callable[[Region, bool], None]
"""Called with every region that an instance touches and whether it is written."""


def reduced_axes(site: SitePlan) -> tuple[int, ...]:
    """The instruction's lanes that the target of the body lacks; none when the body is no reduction."""
    if not site.body.combine:
        return ()
    return tuple(k for k, role in enumerate(site.roles) if role not in site.body.target.lanes)


def is_sum_of_products(site: SitePlan) -> bool:
    """Whether the body sums up products of two operands: its lane points are multiply-adds."""
    value = site.body.value
    return (
        site.spec.kind == "compute"
        and site.body.combine == ("+",)
        and isinstance(value, OpRef)
        and value.op == "*"
        and all(isinstance(a, OperandRef) for a in value.args)
    )


def lane_grid(site: SitePlan, extents: Sequence[int], at: Mapping[str, int]) -> dict[str, Any]:
    """Loop variables as integers and lanes as index arrays that broadcast to the box."""
    env: dict[str, Any] = dict(at)
    for k, (name, n) in enumerate(zip(site.lanes, extents, strict=True)):
        shape = [1] * len(extents)
        shape[k] = n
        env[name] = np.arange(n).reshape(shape)
    return env


def mask_grid(site: SitePlan, extents: Sequence[int], at: Mapping[str, int]) -> Array:
    """Where the mask holds, over the whole box."""
    holds = np.asarray(grid_holds(site.mask, lane_grid(site, extents, at)))
    return np.broadcast_to(holds, tuple(extents))


class Runner:
    """Executes the instances of one compute or transfer site."""

    def __init__(self, site: SitePlan, store: Store | None, arithmetic: Arithmetic) -> None:
        self.site = site
        self.maybe_store = store
        self.arithmetic = arithmetic
        self.views = {o.name: View(o) for o in site.operands}
        self.output = self.views[site.output.name]
        self.inputs = {o.name: self.views[o.name] for o in site.operands[1:]}
        self.reduced = reduced_axes(site)
        self.accumulates = bool(site.body.combine) and self.starts_from_old()
        self.writes = WriteCheck(site, self.output, self.inputs, self.reduced)
        self.is_plain_copy = site.spec.kind == "transfer" and site.operands[1].array.dtype == site.output.array.dtype

    @property
    def store(self) -> Store:
        assert self.maybe_store is not None
        return self.maybe_store

    def touch(self, extents: Sequence[int], numbers: Sequence[int], at: Mapping[str, int], record: Record) -> None:
        """Report what an instance may touch, without values; ProgramError when a view leaves its array."""
        points: Sequence[Array] | None = None
        if self.site.masks_operands:
            holds = mask_grid(self.site, extents, at)
            box = bounding_box(holds)
            if box is None:
                return
            if holds[tuple(slice(a, b) for a, b in box)].all():
                numbers, extents = self.shifted(numbers, [a for a, _ in box]), [b - a for a, b in box]
            else:
                points = np.nonzero(holds)
        for view in self.inputs.values():
            for v in (view, *index_views(view)):
                record(self.possible(v, extents, numbers, at, points), False)
        target = self.possible(self.output, extents, numbers, at, points)
        for v in index_views(self.output):
            record(self.possible(v, extents, numbers, at, points), False)
        if self.accumulates:
            record(target, False)
        record(target, True)

    def possible(
        self,
        view: View,
        extents: Sequence[int],
        numbers: Sequence[int],
        at: Mapping[str, int],
        points: Sequence[Array] | None,
    ) -> Region:
        if view.indices:
            return view.everywhere()
        if points is None:
            return view.strided(self.site, extents, numbers, at)
        return view.indexed(self.site, view.coordinates(numbers, points), view.base(numbers)[1], at)

    def starts_from_old(self) -> bool:
        chosen = self.site.instr.attr("accumulate", True)
        return self.site.spec.accumulate == "flag" and bool(chosen)

    def run(self, extents: Sequence[int], numbers: Sequence[int], at: Mapping[str, int], record: Record | None) -> None:
        """Execute one instance: extents of the lanes (all >= 1), evaluated bases of the views, loop variables."""
        if self.site.masks_operands:
            self.run_masked(extents, numbers, at, record)
            return
        regions = {n: self.region(v, extents, numbers, at, record) for n, v in self.inputs.items()}
        target = self.region(self.output, extents, numbers, at, record)
        self.writes.check(target, regions, extents, at)
        self.execute(target, regions, extents, at, record)

    def region(
        self, view: View, extents: Sequence[int], numbers: Sequence[int], at: Mapping[str, int], record: Record | None
    ) -> Region:
        if not view.indices:
            return view.strided(self.site, extents, numbers, at)
        points = np.indices(tuple(extents), sparse=True)
        return self.gathered(view, points, numbers, at, record)

    def gathered(
        self, view: View, points: Sequence[Array], numbers: Sequence[int], at: Mapping[str, int], record: Record | None
    ) -> Region:
        """The region at explicit lane points, with data-dependent subscripts read from memory."""
        coordinates = view.coordinates(numbers, points)
        for axis, inner in view.indices:
            index = self.gathered(inner, points, numbers, at, record)
            if record:
                record(index, False)
            values = self.store.read(index, self.site, at).astype(np.int64)
            coordinates[axis] = coordinates[axis] + values
        _, copy = view.base(numbers)
        return view.indexed(self.site, coordinates, copy, at)

    def run_masked(
        self, extents: Sequence[int], numbers: Sequence[int], at: Mapping[str, int], record: Record | None
    ) -> None:
        """Only the lane points inside the mask; a box inside the box stays strided."""
        holds = mask_grid(self.site, extents, at)
        box = bounding_box(holds)
        if box is None:
            return
        if holds[tuple(slice(a, b) for a, b in box)].all() and not self.indirect:
            moved = self.shifted(numbers, [a for a, _ in box])
            inside = [b - a for a, b in box]
            regions = {n: v.strided(self.site, inside, moved, at) for n, v in self.inputs.items()}
            target = self.output.strided(self.site, inside, moved, at)
            self.writes.check(target, regions, inside, at)
            offset = {**at, **{n: a for n, (a, _) in zip(self.site.lanes, box, strict=True)}}
            self.execute(target, regions, inside, offset, record)
            return
        points = np.nonzero(holds) if extents else ()
        regions = {n: self.gathered(v, points, numbers, at, record) for n, v in self.inputs.items()}
        target = self.gathered(self.output, points, numbers, at, record)
        if self.site.body.combine:
            self.execute_points(target, regions, points, at, record)
        else:
            self.writes.check(target, regions, extents, at, points)
            self.execute(target, regions, extents, at, record, points)

    @property
    def indirect(self) -> bool:
        return any(v.indices for v in self.views.values())

    def shifted(self, numbers: Sequence[int], start: Sequence[int]) -> list[int]:
        """The bases of all views when the lanes begin at `start`."""
        moved = list(numbers)
        for view in self.views.values():
            for v in (view, *index_views(view)):
                self.shift_view(v, moved, start)
        return moved

    def shift_view(self, view: View, moved: list[int], start: Sequence[int]) -> None:
        for axis, moving in enumerate(view.moving):
            moved[view.first + axis] += sum(step * start[lane] for lane, step in moving)

    # -- the body -------------------------------------------------------------------------------------------------
    def execute(
        self,
        target: Region,
        regions: Mapping[str, Region],
        extents: Sequence[int],
        at: Mapping[str, int],
        record: Record | None,
        points: Sequence[Array] | None = None,
    ) -> None:
        if self.is_plain_copy:
            (source,) = regions.values()
            if record:
                record(source, False)
            raw = self.store.read(source, self.site, at)
        else:
            value = self.reduce(self.load(regions, at, record), extents, at, points)
            if self.accumulates:
                value = self.arithmetic.apply(self.combine(), self.old(target, at, record), value)
            raw = self.arithmetic.store(value, self.output.plan.array.dtype)
        if record:
            record(target, True)
        shape = target.extents if target.value_index is None else target.value_index.shape
        self.store.write(target, np.broadcast_to(raw, shape))

    def old(self, target: Region, at: Mapping[str, int], record: Record | None) -> Array:
        """What an accumulating instruction finds in its output."""
        if record:
            record(target, False)
        return self.arithmetic.load(self.store.read(target, self.site, at), self.output.plan.array.dtype)

    def load(self, regions: Mapping[str, Region], at: Mapping[str, int], record: Record | None) -> dict[str, Array]:
        loaded = {}
        for name, region in regions.items():
            if record:
                record(region, False)
            raw = self.store.read(region, self.site, at)
            loaded[name] = self.arithmetic.load(raw, region.view.plan.array.dtype)
        return loaded

    def reduce(
        self, loaded: Mapping[str, Array], extents: Sequence[int], at: Mapping[str, int], points: Sequence[Array] | None
    ) -> Any:
        """The right-hand side, folded over the reduced lanes (which stay with extent 1)."""
        reduced = tuple(k for k in self.reduced if extents[k] > 1)
        if not reduced:
            return self.evaluate(self.site.body.value, loaded, extents, at, points)
        if self.combine() == "+" and is_sum_of_products(self.site):
            product = self.site.body.value
            assert isinstance(product, OpRef)
            a, b = self.arithmetic.promote([self.evaluate(x, loaded, extents, at, points) for x in product.args])
            repeats = math.prod(extents[k] for k in reduced if a.shape[k] == 1 and b.shape[k] == 1)
            return self.arithmetic.sum_of_products(a, b, reduced, repeats)
        (value,) = self.arithmetic.promote([self.evaluate(self.site.body.value, loaded, extents, at, points)])
        full = [extents[k] if k in reduced else n for k, n in enumerate(value.shape)]
        return self.arithmetic.fold(self.combine(), np.broadcast_to(value, full), reduced)

    def combine(self) -> str:
        body = self.site.body
        return str(self.site.instr.attr(body.combine_slot)) if body.combine_slot else body.combine[0]

    def evaluate(
        self,
        pattern: Pattern,
        loaded: Mapping[str, Array],
        extents: Sequence[int],
        at: Mapping[str, int],
        points: Sequence[Array] | None,
    ) -> Any:
        if isinstance(pattern, OperandRef):
            return loaded[pattern.name]
        if isinstance(pattern, ScalarRef):
            if pattern.name in loaded:
                return loaded[pattern.name]
            return self.arithmetic.constant(self.immediate(pattern.name))
        if isinstance(pattern, MaskRef):
            return mask_grid(self.site, extents, at) if self.site.mask else np.ones([1] * len(extents), np.bool_)
        if isinstance(pattern, IndexRef):
            assert self.site.index is not None
            return self.index_values(extents, at, points)
        args = [self.evaluate(a, loaded, extents, at, points) for a in pattern.args]
        op = str(self.site.instr.attr(pattern.slot)) if pattern.slot else pattern.op
        return self.arithmetic.apply(op, *args)

    def index_values(self, extents: Sequence[int], at: Mapping[str, int], points: Sequence[Array] | None) -> Array:
        assert self.site.index is not None
        if points is not None:
            env: dict[str, Any] = {**at, **dict(zip(self.site.lanes, points, strict=True))}
        else:
            env = lane_grid(self.site, extents, at)
            for name in self.site.lanes:
                env[name] = env[name] + at.get(name, 0)
        shape = () if points is None else points[0].shape if points else ()
        value = np.asarray(grid_value(self.site.index, env), np.int64)
        return (
            value.reshape([1] * len(extents))
            if points is None and value.ndim == 0
            else value + np.zeros(shape, np.int64)
        )

    def immediate(self, name: str) -> float | int | bool:
        value = self.site.instr.attr(name)
        assert isinstance(value, (int, float))
        return value

    def execute_points(
        self,
        target: Region,
        regions: Mapping[str, Region],
        points: Sequence[Array],
        at: Mapping[str, int],
        record: Record | None,
    ) -> None:
        """A masked reduction: the selected points are folded into the cells that they name, in lane order."""
        loaded = self.load(regions, at, record)
        value = np.asarray(self.evaluate(self.site.body.value, loaded, (), at, points))
        (value,) = self.arithmetic.promote([np.broadcast_to(value, points[0].shape)])
        assert target.value_index is not None
        _, first, group = np.unique(target.value_index, return_index=True, return_inverse=True)
        cells = target.subset(first)
        rest = np.ones(len(value), np.bool_)
        rest[first] = False
        total = self.arithmetic.fold_groups(self.combine(), value[first], group.reshape(-1)[rest], value[rest])
        if self.accumulates:
            total = self.arithmetic.apply(self.combine(), self.old(cells, at, record), total)
        if record:
            record(cells, True)
        self.store.write(cells, self.arithmetic.store(total, self.output.plan.array.dtype))


def index_views(view: View) -> list[View]:
    """The views of a view's data-dependent subscripts."""
    return [v for _, index in view.indices for v in (index, *index_views(index))]


def bounding_box(holds: Array) -> list[tuple[int, int]] | None:
    """The smallest box (begin, end per axis) around the true points; None when there are none."""
    if not holds.any():
        return None
    box = []
    for axis in range(holds.ndim):
        others = tuple(k for k in range(holds.ndim) if k != axis)
        hit = np.flatnonzero(holds.any(axis=others) if others else holds)
        box.append((int(hit[0]), int(hit[-1]) + 1))
    return box
