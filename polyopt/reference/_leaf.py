"""One statement over a region: whole arrays, chunked so that no temporary grows beyond a limit."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from itertools import product
from math import prod
from typing import Any

import numpy as np

from polyopt.errors import InternalError
from polyopt.ir import Access, Tensor
from polyopt.reference._affine import Env
from polyopt.reference._algebra import Algebra, Value
from polyopt.reference._cells import Array, CellError
from polyopt.reference._node import Node, build_node, promote
from polyopt.reference._part import Part
from polyopt.reference._reader import Frame, LocatedError, PointFrame, Reader, Store, SuspiciousError
from polyopt.reference._region import (
    BoolArray,
    Region,
    cut_dim,
    dims_to_loop,
    enter,
    fix_dim,
    frame_indices,
    masks,
    plan_region,
)
from polyopt.reference._views import (
    Geometry,
    PointError,
    geometry,
    is_injective,
    strided,
    view_positions,
)
from polyopt.sets import Affine

__all__ = ["LeafRunner"]

CHUNK = 2**20
"""Points of an elementwise temporary."""
OPERAND = 2**24
"""Elements of an operand of a contraction, which may be copied."""
POINTS = 12
"""Regions up to this many points run one point after the other when the algebra allows."""
SPLITS = 256
"""Python iterations that are worth making a target injective."""


class LeafRunner:
    """Runs one leaf of a plan at one value of every sequential level."""

    def __init__(
        self,
        part: Part,
        dims: Sequence[str],
        sequential: Sequence[str],
        algebra: Algebra,
        store: Store,
        tensors: Mapping[str, Tensor],
        scalar: Callable[[Env], None] | None,
        *,
        listed: bool = False,
    ) -> None:
        self.part, self.algebra, self.store, self.scalar = part, algebra, store, scalar
        self.plan = plan_region(part.domain, dims, sequential)
        self.repeated = bool(sequential)
        self.reader = Reader(algebra, store, dims, listed=listed)
        self.cells = store.cells[part.target.tensor]
        (self.node,) = promote((build_node(part.value, tensors),), self.cells.kind)
        self.target_names = frozenset().union(
            *(
                s.variables() if isinstance(s, Affine) else _names(s.access) | s.offset.variables()
                for s in part.target.subscripts
            )
        )
        self.terms = product_terms(self.node) if part.combine == "+" else []

    def run(self, env: Mapping[str, int]) -> None:
        """Raises InputError for a cell outside its tensor or without a value."""
        region = enter(self.plan, env)
        if region is not None:
            self.guarded(region)

    def guarded(self, region: Region) -> None:
        try:
            self.region(region)
        except CellError as error:
            raise self.explain(error, error.env if isinstance(error, LocatedError) else region.env) from None

    def run_listed(self, indices: Mapping[str, Array], count: int) -> None:
        """Run `count` instances of which none writes a cell that another one touches.

        indices: an array for every level and dimension.  The runner was made with `listed`.
        """
        frame = PointFrame(indices, count)
        try:
            if self.part.combine is None:
                self.assign(frame, [], None)
            else:
                self.scatter(frame, [])
        except LocatedError as error:
            raise self.explain(error, error.env) from None

    def explain(self, error: CellError, env: Mapping[str, int]) -> Exception:
        cells = self.store.cells[error.tensor]
        instance = {i: e.evaluate(env) for i, e in self.part.values}
        return error.explain(self.part.name, instance, cells.tensor, cells.shape)

    # -- dividing a region ----------------------------------------------------------------------------------------
    def region(self, region: Region) -> None:
        """Small regions point by point; loops over small dimensions that tie others together; boxes with masks."""
        if self.scalar is not None and region.volume <= POINTS:
            self.points(region, self.scalar)
            return
        loops = dims_to_loop(region) or self.loops_for_target(region)
        if loops:
            self.loop(region, loops)
        else:
            self.box(region)

    def loop(self, region: Region, dims: Sequence[str]) -> None:
        first, rest = dims[0], dims[1:]
        for value in range(region.low[first], region.low[first] + region.size[first]):
            part = fix_dim(region, first, value)
            if part is not None:
                left = [d for d in rest if d in part.dims]
                if left:
                    self.loop(part, left)
                else:
                    self.region(part)

    def points(self, region: Region, scalar: Callable[[Env], None]) -> None:
        ranges = [range(region.low[d], region.low[d] + region.size[d]) for d in region.dims]
        keep = _all(masks(region, frame_indices(region)))
        inside = np.broadcast_to(True if keep is None else keep, region.sizes).ravel().tolist()
        for point, active in zip(product(*ranges), inside, strict=True):
            if active:
                env = {**region.env, **dict(zip(region.dims, point, strict=True))}
                try:
                    scalar(env)
                except CellError as error:
                    raise LocatedError(error, env) from None

    def loops_for_target(self, region: Region) -> tuple[str, ...]:
        """Dimensions to fix so that a combined target becomes injective, when few iterations do."""
        if self.part.combine is None:
            return ()
        plan = self.reader.plan(self.part.target)
        if plan is None:
            return ()
        place = geometry(plan, self.cells.shape, region)
        moving = [d for d, s in zip(region.dims, place.strides, strict=True) if s]
        chosen: list[str] = []
        sizes = dict(region.size)
        while not is_injective(place, [sizes[d] for d in region.dims]):
            smallest = min((d for d in moving if sizes[d] > 1), key=lambda d: sizes[d])
            chosen.append(smallest)
            sizes[smallest] = 1
        return tuple(chosen) if prod(region.size[d] for d in chosen) <= SPLITS else ()

    # -- one box --------------------------------------------------------------------------------------------------
    def box(self, region: Region) -> None:
        frame = Frame(region)
        cuts = masks(region, frame.indices) if not region.is_box else []
        place = self.target_place(frame)
        if self.part.combine is None:
            self.assign(frame, cuts, place)
        elif place is None:
            self.scatter(frame, cuts)
        elif not self.contracted(frame, cuts, place):
            self.reduced(frame, cuts, place)

    def target_place(self, frame: Frame) -> Geometry | None:
        """Where the target lies when it can be written through a view."""
        plan = self.reader.plan(self.part.target)
        if plan is None:
            return None
        place = geometry(plan, self.cells.shape, frame.region)
        if self.part.combine is None and any(n > 1 and not s for n, s in zip(frame.sizes, place.strides, strict=True)):
            return None  # dimensions that others determine: only some of the points are instances
        return place if place.inside and is_injective(place, frame.sizes) else None

    def split(self, frame: Frame, dims: Sequence[str], again: Callable[[Region], None]) -> None:
        """Run the two halves along the largest of `dims`."""
        region = frame.region
        dim = max(dims, key=lambda d: region.size[d])
        half = region.size[dim] // 2
        again(cut_dim(region, dim, region.low[dim], half))
        again(cut_dim(region, dim, region.low[dim] + half, region.size[dim] - half))

    def assign(self, frame: Frame, cuts: Sequence[BoolArray], place: Geometry | None) -> None:
        if frame.region.volume > CHUNK:
            self.split(frame, frame.region.dims, self.box)
            return
        mask = _all(cuts)
        value = self.located(frame, lambda: self.reader.value(self.node, frame, mask))
        parts = self.algebra.store(self.cells, self.node, value)
        if place is not None:
            self.write(place, frame, parts, mask)
        else:
            self.write_positions(self.positions(frame, mask), [_flat(p, frame, mask) for p in parts])

    def contracted(self, frame: Frame, cuts: Sequence[BoolArray], place: Geometry) -> bool:
        """Combine a sum of products through matrix products; False when that is not possible or not worth it."""
        if not self.terms or all(len(factors) < 2 for _, factors in self.terms):
            return False
        region = frame.region
        if 0 in frame.sizes:
            raise InternalError("an empty region")
        reduced = [a for a, s in enumerate(place.strides) if not s]
        if all(region.size[region.dims[a]] == 1 for a in reduced):
            return False
        big = self.large_operand(region, cuts)
        if big:
            self.split(frame, big, self.box)
            return True
        keep = [a for a, s in enumerate(place.strides) if s]
        try:
            values = [self.contract_term(frame, cuts, keep, sign, factors) for sign, factors in self.terms]
        except SuspiciousError:
            return False
        total = reduce(self.algebra.add, values)
        if cuts and not all(np.isfinite(v).all() for v in total if v.dtype == np.float64):
            return False
        self.accumulate(frame, place, total, self.touched(frame, cuts, keep))
        return True

    def large_operand(self, region: Region, cuts: Sequence[BoolArray]) -> list[str]:
        """The dimensions of a factor or mask that is too large to be copied, else none."""
        shapes = [[d for d in region.dims if d in f.names and region.size[d] > 1] for _, fs in self.terms for f in fs]
        shapes += [[d for a, d in enumerate(region.dims) if c.shape[a] > 1] for c in cuts]
        large = [dims for dims in shapes if prod(region.size[d] for d in dims) > OPERAND]
        return large[0] if large else []

    def contract_term(
        self, frame: Frame, cuts: Sequence[BoolArray], keep: Sequence[int], sign: int, factors: Sequence[Node]
    ) -> Value:
        """One sum of products; every mask goes into a factor that has its dimensions, or becomes a factor."""
        values: list[Value] = []
        left = list(range(len(cuts)))
        for node in factors:
            axes = {a for a, d in enumerate(frame.region.dims) if d in node.names}
            own = [k for k, c in enumerate(cuts) if {a for a, n in enumerate(c.shape) if n > 1} <= axes]
            mask = _all([cuts[k] for k in own])
            value = self.factor(frame, node, mask, strict=not cuts)
            used = [k for k in own if k in left]
            if used:
                value = self.algebra.keep(value, _required(_all([cuts[k] for k in used])))
                left = [k for k in left if k not in used]
            values.append(value)
        if left:
            one = Node("const", "int", (), 1, frozenset())
            mask = _required(_all([cuts[k] for k in left]))
            values.append(self.algebra.keep(self.algebra.const(one), mask))
        return self.algebra.contract(self.node, values, keep, frame.sizes, sign < 0)

    def factor(self, frame: Frame, node: Node, mask: BoolArray | None, *, strict: bool) -> Value:
        value: Value = self.located(frame, lambda: self.reader.value(node, frame, mask, strict))
        return value

    def touched(self, frame: Frame, cuts: Sequence[BoolArray], keep: Sequence[int]) -> BoolArray | None:
        """Where a target cell has at least one instance; None for everywhere."""
        mask = _all(cuts)
        if mask is None:
            return None
        summed = tuple(a for a in range(len(frame.sizes)) if a not in keep)
        some: BoolArray = np.asarray(mask.any(axis=summed, keepdims=True))
        return None if some.all() else some

    def reduced(self, frame: Frame, cuts: Sequence[BoolArray], place: Geometry) -> None:
        """Combine over whole arrays, chunked."""
        region = frame.region
        names = self.node.names | self.target_names
        dims = [d for a, d in enumerate(region.dims) if d in names or any(c.shape[a] > 1 for c in cuts)]
        if prod(region.size[d] for d in dims) > CHUNK:
            self.split(frame, dims, self.box)
            return
        mask = _all(cuts)
        value = self.located(frame, lambda: self.reader.value(self.node, frame, mask))
        keep = [a for a, s in enumerate(place.strides) if s]
        axes = [a for a, s in enumerate(place.strides) if not s]
        combined = self.algebra.reduce(self.node, self.part.combine or "", value, mask, axes, frame.sizes)
        self.accumulate(frame, place, combined, self.touched(frame, cuts, keep))

    def accumulate(self, frame: Frame, place: Geometry, value: Value, touched: BoolArray | None) -> None:
        target = self.part.target
        if not self.store.complete(target.tensor):
            written = strided(self.reader.written(self.cells), place, frame.sizes)
            self.located(frame, lambda: self.reader.check_written(target, written, frame, touched, True))
        old = [strided(p, place, frame.sizes) for p in self.cells.parts]
        self.write(place, frame, self.combined(old, value), touched)

    def combined(self, old: Sequence[Array], value: Value) -> tuple[Array, ...]:
        return self.algebra.accumulate(self.cells, self.part.combine or "", old, value, repeated=self.repeated)

    def scatter(self, frame: Frame, cuts: Sequence[BoolArray]) -> None:
        """Combine into cells that several points share in no regular way."""
        if frame.region.volume > CHUNK:
            self.split(frame, frame.region.dims, self.box)
            return
        mask = _all(cuts)
        value = self.located(frame, lambda: self.reader.value(self.node, frame, mask))
        positions = self.positions(frame, mask)
        if not positions.size:
            return
        order = np.argsort(positions, kind="stable")
        cells, starts = np.unique(positions[order], return_index=True)
        flat = tuple(_flat(v, frame, mask)[order] for v in value)
        combined = self.algebra.segments(self.node, self.part.combine or "", flat, starts)
        if not self.store.complete(self.part.target.tensor):
            self.check_positions(frame, mask)
        old = [p.reshape(-1)[cells] for p in self.cells.parts]
        self.write_positions(cells, self.combined(old, combined))

    def check_positions(self, frame: Frame, mask: BoolArray | None) -> None:
        target = self.part.target
        self.located(frame, lambda: self.reader.fetch(target, frame, mask, True))

    # -- writing --------------------------------------------------------------------------------------------------
    def positions(self, frame: Frame, mask: BoolArray | None) -> Array:
        """Flat positions of the target at the active points, in the order of the points."""

        def find() -> Array:
            subscripts, doubtful = self.reader.subscripts(self.part.target, frame, mask, True)
            if doubtful is not None:
                self.cells.parts[:] = self.algebra.spoil(self.cells.parts, np.ones(self.cells.shape, np.bool_))
            index = view_positions(subscripts, self.cells.shape, mask, self.part.target.tensor)
            flat: Any = np.zeros((1,) * len(frame.sizes), np.int64)
            for s, extent in zip(index, self.cells.shape, strict=True):
                flat = flat * extent + s
            return _flat(np.asarray(flat), frame, mask)

        found: Array = self.located(frame, find)
        return found

    def write(self, place: Geometry, frame: Frame, parts: Sequence[Array], mask: BoolArray | None) -> None:
        for held, new in zip(self.cells.parts, parts, strict=True):
            view = strided(held, place, frame.sizes)
            if mask is None:
                view[...] = new
            else:
                np.copyto(view, new, where=np.broadcast_to(mask, view.shape))
        if self.cells.written is not None:
            view = strided(self.cells.written, place, frame.sizes)
            view[...] = True if mask is None else view | mask
            self.store.mark(self.part.target.tensor, view.size)

    def write_positions(self, positions: Array, parts: Sequence[Array]) -> None:
        for held, new in zip(self.cells.parts, parts, strict=True):
            held.reshape(-1)[positions] = new
        if self.cells.written is not None:
            self.cells.written.reshape(-1)[positions] = True
            self.store.mark(self.part.target.tensor, positions.size)

    def located(self, frame: Frame, compute: Callable[[], Any]) -> Any:
        """Run `compute`; a PointError in it gets the instance it belongs to."""
        try:
            return compute()
        except PointError as error:
            raise LocatedError(error, frame.instance(error.point)) from None


def _names(access: Access) -> frozenset[str]:
    found: frozenset[str] = frozenset()
    for s in access.subscripts:
        found |= s.variables() if isinstance(s, Affine) else _names(s.access) | s.offset.variables()
    return found


def _all(cuts: Sequence[BoolArray]) -> BoolArray | None:
    return np.asarray(reduce(np.logical_and, cuts)) if cuts else None


def _required(mask: BoolArray | None) -> BoolArray:
    if mask is None:
        raise InternalError("a mask is missing")
    return mask


def _flat(array: Array, frame: Frame, mask: BoolArray | None) -> Array:
    """The elements of an array at the active points of a frame."""
    full = np.broadcast_to(array, frame.sizes)
    return full.reshape(-1) if mask is None else full[np.broadcast_to(mask, frame.sizes)]


def product_terms(node: Node) -> list[tuple[int, list[Node]]]:
    """`node` as a sum of signed products, for arithmetic that is no bool arithmetic."""
    if node.op in ("+", "-"):
        left, right = (product_terms(a) for a in node.args)
        return left + [(-sign if node.op == "-" else sign, factors) for sign, factors in right]
    if node.op == "neg":
        return [(-sign, factors) for sign, factors in product_terms(node.args[0])]
    if node.op == "*":
        left, right = (product_terms(a) for a in node.args)
        if len(left) == len(right) == 1:
            return [(left[0][0] * right[0][0], left[0][1] + right[0][1])]
    return [(1, [node])]
