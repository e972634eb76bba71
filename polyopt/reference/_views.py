"""Accesses over a whole region: strided views where subscripts are linear and inside, gathers elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from polyopt.ir import Access
from polyopt.reference._affine import Env, compile_affine
from polyopt.reference._cells import Array, CellError
from polyopt.reference._region import BoolArray, Region
from polyopt.sets import Affine

__all__ = ["Geometry", "LinearAccess", "geometry", "is_injective", "plan_access", "strided", "view_positions"]

Term = tuple[tuple[tuple[str, int], ...], Callable[[Env], int]]


@dataclass(frozen=True, slots=True, eq=False)
class LinearAccess:
    """An access whose subscripts are linear in the dimensions: per subscript its terms and the rest."""

    access: Access
    subscripts: tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class Geometry:
    """Where a linear access goes over a region, in elements: position = offset + sum(stride * (dim - low)).

    inside: no point of the box leaves the tensor.
    """

    offset: int
    strides: tuple[int, ...]
    inside: bool


def plan_access(access: Access, dims: Sequence[str]) -> LinearAccess | None:
    """None when a subscript is data-dependent or not linear in the dimensions."""
    found: list[Term] = []
    for s in access.subscripts:
        if not isinstance(s, Affine) or not s.is_linear_in(dims):
            return None
        terms = tuple((d, s.coefficient(d)) for d in dims if s.coefficient(d))
        rest = Affine(tuple((a, c) for a, c in s.terms if a not in dims), s.const)
        found.append((terms, compile_affine(rest)))
    return LinearAccess(access, tuple(found))


def geometry(plan: LinearAccess, shape: Sequence[int], region: Region) -> Geometry:
    """Offset and strides of the access over the box of a region; strides follow `region.dims`."""
    offset, inside = 0, True
    strides = dict.fromkeys(region.dims, 0)
    for (terms, rest), extent in zip(plan.subscripts, shape, strict=True):
        first = last = start = rest(region.env)
        offset *= extent
        for d in strides:
            strides[d] *= extent
        for d, c in terms:
            if d not in strides:  # fixed by a loop
                value = c * region.env[d]
                first, last, start = first + value, last + value, start + value
                continue
            low, span = c * region.low[d], c * (region.size[d] - 1)
            start += low
            first, last = first + low + min(span, 0), last + low + max(span, 0)
            strides[d] += c
        offset += start
        inside = inside and first >= 0 and last < extent
    return Geometry(offset, tuple(strides.values()), inside)


def strided(array: Array, place: Geometry, sizes: Sequence[int]) -> Array:
    """The cells of `array` at `place` as a view with one axis for every dimension, size 1 where it does not move."""
    item = array.itemsize
    shape = [n if s else 1 for n, s in zip(sizes, place.strides, strict=True)]
    steps = [s * item for s in place.strides]
    view: Array = np.ndarray(shape, array.dtype, array, place.offset * item, steps)
    return view


def is_injective(place: Geometry, sizes: Sequence[int]) -> bool:
    """Whether different points along the dimensions that move have different positions (sufficient test)."""
    reach = 0
    for step, n in sorted((abs(s), n) for s, n in zip(place.strides, sizes, strict=True) if s and n > 1):
        if step <= reach:
            return False
        reach += step * (n - 1)
    return True


def view_positions(
    subscripts: Sequence[Any], shape: Sequence[int], active: BoolArray | None, tensor: str
) -> tuple[Array, ...]:
    """Index arrays of one access, clipped into the tensor where `active` is false.

    Raises CellError, with the first offending point as `at`, where an active point leaves the tensor.
    """
    safe = []
    for s, extent in zip(subscripts, shape, strict=True):
        index = np.asarray(s, dtype=np.int64)
        if index.size and (index.min() < 0 or index.max() >= extent):
            outside = (index < 0) | (index >= extent)
            raise_at(outside, active, tensor, subscripts, outside=True)
            index = np.clip(index, 0, max(extent - 1, 0))
        safe.append(index)
    return tuple(safe)


def raise_at(
    bad: BoolArray, active: BoolArray | None, tensor: str, subscripts: Sequence[Any], *, outside: bool
) -> None:
    """Raise PointError for the first point that is bad and active; nothing when there is none."""
    wrong = np.asarray(bad if active is None else bad & active)
    if not wrong.any():
        return
    point = np.unravel_index(int(np.argmax(wrong)), wrong.shape) if wrong.ndim else ()
    cell = []
    for s in subscripts:
        index = np.asarray(s)
        cell.append(
            int(index[tuple(min(p, n - 1) for p, n in zip(point, index.shape, strict=True))])
            if index.ndim
            else int(index)
        )
    raise PointError(tensor, tuple(cell), outside, tuple(int(p) for p in point))


class PointError(CellError):
    """A CellError at one point of a region; `point` counts from the region's low corner, () for a single point."""

    def __init__(self, tensor: str, cell: tuple[int, ...], outside: bool, point: tuple[int, ...]) -> None:
        super().__init__(tensor, cell, outside)
        self.point = point


def instance_at(point: Sequence[int], region: Region) -> Mapping[str, int]:
    """Levels and dimensions at one point of a region."""
    if not point:
        return {**region.env, **region.low}
    return {**region.env, **{d: region.low[d] + p for d, p in zip(region.dims, point, strict=True)}}
