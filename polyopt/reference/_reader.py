"""Right-hand sides over a region, and what is known about the cells that they read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from polyopt.errors import InternalError
from polyopt.ir import Access
from polyopt.reference._affine import affine_array
from polyopt.reference._algebra import Algebra, Value
from polyopt.reference._cells import Array, CellError, Cells
from polyopt.reference._node import Node
from polyopt.reference._region import BoolArray, Region, frame_indices
from polyopt.reference._views import (
    LinearAccess,
    PointError,
    geometry,
    instance_at,
    plan_access,
    raise_at,
    strided,
    view_positions,
)
from polyopt.sets import Affine

__all__ = ["Frame", "LocatedError", "PointFrame", "Reader", "Store", "SuspiciousError"]


class SuspiciousError(Exception):
    """A factor of a masked contraction touches cells that some mask might exclude; the exact path decides."""


class Store:
    """All tensors while the evaluator runs."""

    def __init__(self, cells: Mapping[str, Cells]) -> None:
        self.cells = cells
        self.pending = {n: c.written.size for n, c in cells.items() if c.written is not None}

    def mark(self, name: str, count: int) -> None:
        """Note that `count` cells were written; find out now and then whether all are."""
        cells = self.cells[name]
        if cells.written is None or name not in self.pending:
            return
        self.pending[name] -= count
        if self.pending[name] <= 0:
            missing = cells.written.size - int(np.count_nonzero(cells.written))
            if missing:
                self.pending[name] = missing
            else:
                del self.pending[name]

    def complete(self, name: str) -> bool:
        """Whether every cell is known to hold a value."""
        return name not in self.pending


class Frame:
    """A region with its dimensions as index arrays."""

    def __init__(self, region: Region) -> None:
        self.region = region
        self.sizes = region.sizes
        self._indices: dict[str, Any] | None = None

    @property
    def indices(self) -> dict[str, Any]:
        if self._indices is None:
            self._indices = frame_indices(self.region)
        return self._indices

    def instance(self, point: Sequence[int]) -> Mapping[str, int]:
        """Levels and dimensions at a point of the arrays; () is the region's only point."""
        return instance_at(point, self.region)


class PointFrame(Frame):
    """Listed points instead of a region: every level and dimension has an array of values along one axis."""

    def __init__(self, indices: Mapping[str, Array], count: int) -> None:
        super().__init__(Region(("point",), {"point": 0}, {"point": count}, (), (), (), {}))
        self._indices = dict(indices)

    def instance(self, point: Sequence[int]) -> Mapping[str, int]:
        return {n: int(a[point[0] if point else 0]) for n, a in self.indices.items()}


class Reader:
    """Evaluates right-hand sides over a frame."""

    def __init__(self, algebra: Algebra, store: Store, dims: Sequence[str], *, listed: bool = False) -> None:
        self.algebra, self.store, self.dims, self.listed = algebra, store, tuple(dims), listed
        self.plans: dict[Access, LinearAccess | None] = {}

    def plan(self, access: Access) -> LinearAccess | None:
        """How the access moves along the dimensions, None when it has to be gathered; `listed` points always are."""
        if self.listed:
            return None
        if access not in self.plans:
            self.plans[access] = plan_access(access, self.dims)
        return self.plans[access]

    def value(self, node: Node, frame: Frame, active: BoolArray | None, strict: bool = True) -> Value:
        """The value of `node`; reads where `active` is false give any value.

        Raises PointError, or SuspiciousError unless `strict`, where an active read has no value.
        """
        if node.op == "const":
            return self.algebra.const(node)
        if node.op == "index":
            return self.algebra.index(np.asarray(affine_array(node.payload, frame.indices), np.int64))
        if node.op == "read":
            cells = self.store.cells[node.payload.tensor]
            return self.algebra.read(cells, self.fetch(node.payload, frame, active, strict))
        if node.op == "select":
            return self.select(node, frame, active, strict)
        if node.op in ("and", "or"):
            left = self.value(node.args[0], frame, active, strict)
            true, false = self.algebra.branches(left)
            right = self.value(node.args[1], frame, _both(active, true if node.op == "and" else false), strict)
            return self.algebra.apply(node, (left, right))
        return self.algebra.apply(node, [self.value(a, frame, active, strict) for a in node.args])

    def select(self, node: Node, frame: Frame, active: BoolArray | None, strict: bool) -> Value:
        test = self.value(node.args[0], frame, active, strict)
        true, false = self.algebra.branches(test)
        if not false.any():
            return self.value(node.args[1], frame, active, strict)
        if not true.any():
            return self.value(node.args[2], frame, active, strict)
        then = self.value(node.args[1], frame, _both(active, true), strict)
        other = self.value(node.args[2], frame, _both(active, false), strict)
        return self.algebra.apply(node, (test, then, other))

    def fetch(self, access: Access, frame: Frame, active: BoolArray | None, strict: bool) -> list[Array]:
        """The parts of the cells read, as views or copies with one axis per dimension (or none)."""
        cells = self.store.cells[access.tensor]
        plan = self.plan(access)
        if plan is not None:
            place = geometry(plan, cells.shape, frame.region)
            if place.inside:
                parts = [strided(p, place, frame.sizes) for p in cells.parts]
                if not self.store.complete(access.tensor):
                    self.check_written(access, strided(self.written(cells), place, frame.sizes), frame, active, strict)
                return parts
        return self.gather(access, cells, frame, active, strict)

    def gather(self, access: Access, cells: Cells, frame: Frame, active: BoolArray | None, strict: bool) -> list[Array]:
        subscripts, doubtful = self.subscripts(access, frame, active, strict)
        try:
            index = view_positions(subscripts, cells.shape, active, access.tensor)
        except PointError:
            if strict:
                raise
            raise SuspiciousError from None
        if 0 in cells.shape:
            return [np.zeros((1,) * len(frame.sizes), p.dtype) for p in cells.parts]
        if not self.store.complete(access.tensor):
            self.check_written(access, np.asarray(self.written(cells)[index]), frame, active, strict)
        parts = [np.asarray(p[index]) for p in cells.parts]
        return parts if doubtful is None else self.algebra.spoil(parts, doubtful)

    def subscripts(
        self, access: Access, frame: Frame, active: BoolArray | None, strict: bool
    ) -> tuple[list[Array], BoolArray | None]:
        """Subscripts as index arrays, and where they are in doubt."""
        found: list[Array] = []
        doubtful: BoolArray | None = None
        for s in access.subscripts:
            if isinstance(s, Affine):
                found.append(np.asarray(affine_array(s, frame.indices)))
            else:
                inner = self.fetch(s.access, frame, active, strict)
                found.append(np.asarray(inner[0].astype(np.int64) + affine_array(s.offset, frame.indices)))
                doubt = self.algebra.doubtful(inner)
                doubtful = doubtful if doubt is None else doubt if doubtful is None else np.asarray(doubtful | doubt)
        return found, doubtful

    @staticmethod
    def written(cells: Cells) -> BoolArray:
        if cells.written is None:
            raise InternalError(f"{cells.tensor.name} has no mask of written cells")
        return cells.written

    def check_written(
        self, access: Access, written: BoolArray, frame: Frame, active: BoolArray | None, strict: bool
    ) -> None:
        if written.all():
            return
        missing = ~written
        if not strict:
            if (missing if active is None else missing & active).any():
                raise SuspiciousError
            return
        raise_at(missing, active, access.tensor, self.subscripts(access, frame, active, True)[0], outside=False)


def _both(active: BoolArray | None, mask: BoolArray) -> BoolArray | None:
    if mask.all():
        return active
    return mask if active is None else active & mask


class LocatedError(CellError):
    """A CellError with levels and dimensions of the instance."""

    def __init__(self, error: CellError, env: Mapping[str, int]) -> None:
        super().__init__(error.tensor, error.cell, error.outside)
        self.env = env
