"""Memories: values of arrays, who owns each cell, and the cells that a view touches.

Values lie in one numpy array per buffer or tensor; ownership lies in one array per address space, by physical address.
A write makes its buffer the owner of the cells; reading a cell of another owner, or of none, is an error.  So buffers
may share bytes at different times, and a value that was overwritten through another buffer is never seen.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np
from numpy.lib.stride_tricks import as_strided

from polyopt.errors import InputError
from polyopt.simulator._plan import ArrayPlan, OperandPlan, Plan, SitePlan, fail
from polyopt.simulator._result import Array

__all__ = ["Region", "Store", "View", "cell_of_index", "common_cells"]


class Region:
    """The cells of one view at one instance.

    Strided: `extents` has one entry per lane, 1 where the view does not move.  Indexed: `value_index` and `cell_index`
    hold one flat index per lane point, either with one axis per lane (broadcast) or, for selected points, with a single
    axis. low, high: first and last touched coordinate, copy first; dense: the region is that whole box.  certain: False
    when the region only bounds what a data-dependent subscript touches.
    """

    __slots__ = (
        "cell_index",
        "cell_offset",
        "certain",
        "dense",
        "extents",
        "high",
        "low",
        "value_index",
        "value_offset",
        "view",
    )

    def __init__(self, view: View, low: tuple[int, ...], high: tuple[int, ...]) -> None:
        self.view = view
        self.low = low
        self.high = high
        self.dense = False
        self.certain = True
        self.extents: tuple[int, ...] = ()
        self.value_offset = 0
        self.cell_offset = 0
        self.value_index: Array | None = None
        self.cell_index: Array | None = None

    def cells(self) -> Array:
        """Every touched cell as a flat index in its space, elements in lane order (one row per element)."""
        if self.cell_index is not None:
            first = self.cell_index.reshape(-1)
        else:
            first = np.full(self.extents, self.cell_offset, np.int64)
            for axis, (n, step) in enumerate(zip(self.extents, self.view.cell_steps, strict=True)):
                if n > 1 and step:
                    shape = [1] * len(self.extents)
                    shape[axis] = n
                    first = first + (np.arange(n) * step).reshape(shape)
            first = first.reshape(-1)
        each = self.view.plan.array.cells_per_element
        return first[:, None] + np.arange(each)

    def subset(self, keep: Array) -> Region:
        """Only the listed points of an indexed region with a single axis."""
        part = Region(self.view, self.low, self.high)
        if self.value_index is not None and self.cell_index is not None:
            part.value_index, part.cell_index = self.value_index[keep], self.cell_index[keep]
        return part


def common_cells(a: Region, b: Region) -> Array:
    """The flat indices of cells that both touch, ascending."""
    return np.intersect1d(a.cells(), b.cells())


def cell_of_index(array: ArrayPlan, cell: int) -> tuple[int, ...]:
    """The coordinates, without the copy, of the element that holds a cell of its space."""
    rest = cell - array.cell_offset
    if array.is_tensor or not array.has_partitions:
        copy_step = array.cell_strides[0]
        rest = rest % copy_step if copy_step else rest
        return tuple(rest // s % n if s else 0 for s, n in zip(array.cell_strides[1:], array.shape, strict=True))
    row_step = array.cell_strides[1]
    row, rest = divmod(rest, row_step)
    rest = rest % array.cell_strides[0] if array.cell_strides[0] else rest
    inner = tuple(rest // s % n for s, n in zip(array.cell_strides[2:], array.shape[1:], strict=True))
    return (row, *inner)


def copy_of_cell(array: ArrayPlan, cell: int) -> int:
    """The rotating copy that holds a cell of the array's space."""
    rest = cell - array.cell_offset
    rest = rest % array.cell_strides[1] if array.has_partitions else rest
    return rest // array.cell_strides[0] if array.cell_strides[0] else 0


class View:
    """One operand with everything precomputed that does not depend on loop variables."""

    __slots__ = ("cell_steps", "copies", "first", "indices", "moves", "moving", "plan", "rank", "shape", "value_steps")

    def __init__(self, plan: OperandPlan) -> None:
        array = plan.array
        self.plan = plan
        self.rank = len(plan.base)
        self.first = plan.first
        self.shape = array.shape
        self.copies = array.copies
        self.value_steps = tuple(_dot(s, array.value_strides[1:]) for s in plan.steps)
        self.cell_steps = tuple(_dot(s, array.cell_strides[1:]) for s in plan.steps)
        self.moves = tuple(any(s) for s in plan.steps)
        self.moving = tuple(
            tuple((lane, s[axis]) for lane, s in enumerate(plan.steps) if s[axis]) for axis in range(self.rank)
        )
        self.indices = tuple((axis, View(index)) for axis, index in plan.indices)

    def base(self, numbers: Sequence[int]) -> tuple[Sequence[int], int]:
        """The evaluated subscripts of lane point 0, and the copy."""
        after = self.first + self.rank
        return numbers[self.first : after], numbers[after] % self.copies

    def strided(self, site: SitePlan, extents: Sequence[int], numbers: Sequence[int], at: Mapping[str, int]) -> Region:
        """The region of a view without a data-dependent subscript; ProgramError when it leaves the array."""
        base, copy = self.base(numbers)
        low, high = list(base), list(base)
        for axis, moving in enumerate(self.moving):
            for lane, step in moving:
                if step > 0:
                    high[axis] += step * (extents[lane] - 1)
                else:
                    low[axis] += step * (extents[lane] - 1)
            if low[axis] < 0 or high[axis] >= self.shape[axis]:
                self.outside(site, at, axis, low[axis], high[axis])
        region = Region(self, (copy, *low), (copy, *high))
        region.extents = tuple(n if m else 1 for n, m in zip(extents, self.moves, strict=True))
        strides = self.plan.array.value_strides
        region.value_offset = copy * strides[0] + _dot(base, strides[1:])
        strides = self.plan.array.cell_strides
        region.cell_offset = self.plan.array.cell_offset + copy * strides[0] + _dot(base, strides[1:])
        region.dense = math.prod(region.extents) == math.prod(h - b + 1 for h, b in zip(high, low, strict=True))
        return region

    def indexed(self, site: SitePlan, coordinates: Sequence[Any], copy: Any, at: Mapping[str, int]) -> Region:
        """The region of explicit coordinates, one integer array per axis (they broadcast), in one or several copies."""
        low, high = [], []
        for axis, c in enumerate((copy, *coordinates)):
            values = np.asarray(c)
            first, last = (int(values.min()), int(values.max())) if values.size else (0, -1)
            if axis and values.size and (first < 0 or last >= self.shape[axis - 1]):
                self.outside(site, at, axis - 1, first, last)
            low.append(first)
            high.append(last)
        region = Region(self, tuple(low), tuple(high))
        array = self.plan.array
        region.value_index = np.asarray(_flat((copy, *coordinates), array.value_strides))
        region.cell_index = np.asarray(_flat((copy, *coordinates), array.cell_strides) + array.cell_offset)
        return region

    def coordinates(self, numbers: Sequence[int], points: Sequence[Array]) -> list[Any]:
        """Subscripts per axis at lane points (one index array per lane), without a data-dependent part."""
        base, _ = self.base(numbers)
        found: list[Any] = []
        for axis, moving in enumerate(self.moving):
            value: Any = np.int64(base[axis])
            for lane, step in moving:
                value = value + points[lane] * step
            found.append(value)
        return found

    def everywhere(self) -> Region:
        """A region that stands for any cells of the array."""
        region = Region(self, (0,) * (self.rank + 1), (self.copies - 1, *(n - 1 for n in self.shape)))
        region.certain = False
        return region

    def outside(self, site: SitePlan, at: Mapping[str, int], axis: int, low: int, high: int) -> NoReturn:
        name, shape = self.plan.array.name, self.shape
        fail(
            site,
            at,
            f"operand {self.plan.name} touches {low} to {high} along axis {axis} of {name}, whose shape is {shape}",
            help="shorten the lanes at the edge, or guard or mask the instruction",
            id="out-of-bounds",
        )


def _dot(a: Sequence[int], b: Sequence[int]) -> int:
    return sum(x * y for x, y in zip(a, b, strict=True))


def _flat(coordinates: Sequence[Any], strides: Sequence[int]) -> Any:
    total: Any = np.int64(0)
    for c, s in zip(coordinates, strides, strict=True):
        total = total + np.asarray(c, np.int64) * s
    return total


class Store:
    """Values and owners of all arrays of a plan.  element_type: what holds the values of an element type."""

    def __init__(self, plan: Plan, element_type: Callable[[str], Any]) -> None:
        self.plan = plan
        self.element_type = element_type
        self.values: dict[str, Array] = {}
        self.raw: dict[str, Array] = {}
        self.owners: dict[str, Array] = {}
        for name, array in plan.arrays.items():
            flat = np.zeros(array.elements, self.element_type(array.dtype))
            self.values[name] = flat
            self.raw[name] = flat if flat.dtype == object else flat.view(np.uint8)
        on_chip = np.int16 if len(plan.program.buffers) < 2**15 else np.int32
        for space, cells in plan.spaces.items():
            kind = np.uint8 if plan.arrays.get(space) and plan.arrays[space].is_tensor else on_chip
            self.owners[space] = np.zeros(cells, kind)

    def load(self, name: str, value: Array) -> None:
        """Initialise a whole tensor."""
        array = self.plan.arrays[name]
        if value.shape != array.shape:
            raise InputError(
                f"input {name} has shape {value.shape}, expected {array.shape}", help="check the sizes", id="inputs"
            )
        kind = self.element_type(array.dtype)
        self.values[name][...] = (
            (value.astype(np.int64) if np.dtype(kind).kind == "O" else value).astype(kind).reshape(-1)
        )
        self.owners[name][...] = array.owner

    def tensor(self, name: str) -> Array:
        """A copy of a whole tensor; cells that were never written are 0."""
        array = self.plan.arrays[name]
        return np.array(self.values[name].reshape(array.shape))

    def read(self, region: Region, site: SitePlan, at: Mapping[str, int]) -> Array:
        """The values of a region (a view or a copy); ProgramError on a cell that holds none of this array's values."""
        self.check_owned(region, site, at)
        return self.peek(region)

    def peek(self, region: Region) -> Array:
        """The values of a region, unchecked."""
        array = region.view.plan.array
        if region.value_index is not None:
            return np.asarray(self.values[array.name][region.value_index])
        flat = self.values[array.name]
        item = flat.dtype.itemsize
        steps = tuple(s * item for s in region.view.value_steps)
        if flat.dtype == object:
            return as_strided(flat[region.value_offset :], region.extents, steps)
        strided: Array = np.ndarray(region.extents, flat.dtype, self.raw[array.name], region.value_offset * item, steps)
        return strided

    def write(self, region: Region, values: Array) -> None:
        """Store values (already of the element type) and take ownership."""
        array = region.view.plan.array
        if region.value_index is not None:
            self.values[array.name][region.value_index] = values
        else:
            self.peek(region)[...] = values
        owners, index = self.owned(region)
        owners[index] = array.owner

    def owned(self, region: Region) -> tuple[Array, Any]:
        """(owners, index): `owners[index]` are the owners of a region's cells; a strided region's lie in a view."""
        array = region.view.plan.array
        each = array.cells_per_element
        owners = self.owners[array.space]
        if region.cell_index is not None:
            index = region.cell_index
            return owners, index if each == 1 else index[..., None] + np.arange(each)
        item = owners.dtype.itemsize
        steps = tuple(s * item for s in region.view.cell_steps)
        extents = region.extents
        if each > 1:
            extents, steps = (*extents, each), (*steps, item)
        return np.ndarray(extents, owners.dtype, owners, region.cell_offset * item, steps), ...

    def check_owned(self, region: Region, site: SitePlan, at: Mapping[str, int]) -> None:
        array = region.view.plan.array
        owners, index = self.owned(region)
        good = owners[index] == array.owner
        if good.all():
            return
        position = int(np.argmax(~good.reshape(-1)))
        cell = int(region.cells().reshape(-1)[position])
        other = int(self.owners[array.space][cell])
        where = f"{array.name}[{', '.join(map(str, cell_of_index(array, cell)))}]"
        if array.copies > 1:
            where += f" of copy {copy_of_cell(array, cell)}"
        if other:
            taken = next(a.name for a in self.plan.arrays.values() if a.space == array.space and a.owner == other)
            cause = f"whose bytes were overwritten through {taken}"
        else:
            cause = "which was never written"
        fail(
            site,
            at,
            f"operand {region.view.plan.name} reads {where}, {cause}",
            help="write the cell first, or leave it out by lanes, guard or mask",
            id="uninitialised",
        )
