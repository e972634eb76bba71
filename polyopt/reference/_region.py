"""Boxes of instances with the constraints that are no bound of a single dimension."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import combinations
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from polyopt.reference._affine import Env, IntArray, compile_affine, constraint_array
from polyopt.sets import Affine, Constraint, Set

__all__ = [
    "Region",
    "RegionPlan",
    "Row",
    "cut_dim",
    "dims_to_loop",
    "enter",
    "fix_dim",
    "frame_indices",
    "list_points",
    "masks",
    "plan_region",
]

BoolArray = npt.NDArray[np.bool_]
LIST_LIMIT = 2**22
"""Points of a box that are looked at together."""
LOOP_LIMIT = 64
"""Python iterations that are worth getting rid of a constraint between dimensions."""


@dataclass(frozen=True, slots=True)
class Row:
    """sum(coefficient * dim) + const >= 0, or == 0."""

    terms: tuple[tuple[str, int], ...]
    const: int
    equality: bool


@dataclass(frozen=True, slots=True, eq=False)
class RegionPlan:
    """Bounds of every dimension and the constraints of a domain, as functions of the sequential levels.

    odd: constraints that are not linear in the dimensions.  pieces: the conjunctions of a domain that is no single one.
    """

    dims: tuple[str, ...]
    bounds: tuple[tuple[Callable[[Env], int], Callable[[Env], int]], ...]
    rows: tuple[tuple[tuple[tuple[str, int], ...], Callable[[Env], int], bool], ...]
    odd: tuple[Constraint, ...]
    pieces: tuple[tuple[Constraint, ...], ...]


@dataclass(frozen=True, slots=True, eq=False)
class Region:
    """A box with the rows, odd constraints and pieces that cut it; `env` holds levels and dimensions with one value."""

    dims: tuple[str, ...]
    low: Mapping[str, int]
    size: Mapping[str, int]
    rows: tuple[Row, ...]
    odd: tuple[Constraint, ...]
    pieces: tuple[tuple[Constraint, ...], ...]
    env: Mapping[str, int]

    @property
    def is_box(self) -> bool:
        return not (self.rows or self.odd or self.pieces)

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(self.size[d] for d in self.dims)

    @property
    def volume(self) -> int:
        return prod(self.size[d] for d in self.dims)


def plan_region(domain: Set, dims: Sequence[str], sequential: Sequence[str]) -> RegionPlan:
    """Compile a domain over dims and sequential levels."""
    bounds = [domain.bounds(d, sequential) for d in dims]
    pieces = domain.basic()
    rows: list[tuple[tuple[tuple[str, int], ...], Callable[[Env], int], bool]] = []
    odd: list[Constraint] = []
    for c in pieces[0] if len(pieces) == 1 else []:
        if c.expr.is_linear_in(dims):
            terms = tuple((d, c.expr.coefficient(d)) for d in dims if c.expr.coefficient(d))
            rest = Affine(tuple((a, k) for a, k in c.expr.terms if a not in dims), c.expr.const)
            rows.append((terms, compile_affine(rest), c.equality))
        else:
            odd.append(c)
    return RegionPlan(
        tuple(dims),
        tuple((compile_affine(low), compile_affine(high)) for low, high in bounds),
        tuple(rows),
        tuple(odd),
        tuple(tuple(p) for p in pieces) if len(pieces) > 1 else (),
    )


def enter(plan: RegionPlan, env: Mapping[str, int]) -> Region | None:
    """The region at one value of every sequential level; None when it is empty."""
    low = {d: lower(env) for d, (lower, _) in zip(plan.dims, plan.bounds, strict=True)}
    high = {d: upper(env) for d, (_, upper) in zip(plan.dims, plan.bounds, strict=True)}
    rows = [Row(terms, const(env), equality) for terms, const, equality in plan.rows]
    return _narrow(plan.dims, low, high, rows, plan.odd, plan.pieces, env)


def fix_dim(region: Region, dim: str, value: int) -> Region | None:
    """The part of the region where `dim` has one value; None when it is empty."""
    rows = []
    for row in region.rows:
        c = dict(row.terms).get(dim, 0)
        rows.append(Row(tuple(t for t in row.terms if t[0] != dim), row.const + c * value, row.equality))
    dims = tuple(d for d in region.dims if d != dim)
    high = {d: region.low[d] + region.size[d] - 1 for d in dims}
    low = {d: region.low[d] for d in dims}
    return _narrow(dims, low, high, rows, region.odd, region.pieces, {**region.env, dim: value})


def cut_dim(region: Region, dim: str, low: int, size: int) -> Region:
    """The part of the region where low <= dim < low + size, constraints kept."""
    return replace(region, low={**region.low, dim: low}, size={**region.size, dim: size})


def _narrow(
    dims: tuple[str, ...],
    low: dict[str, int],
    high: dict[str, int],
    rows: Sequence[Row],
    odd: tuple[Constraint, ...],
    pieces: tuple[tuple[Constraint, ...], ...],
    env: Mapping[str, int],
) -> Region | None:
    """Use rows on one dimension as bounds and drop rows that hold everywhere in the box, until nothing changes."""
    changed = True
    while changed:
        changed = False
        if any(low[d] > high[d] for d in dims):
            return None
        kept = []
        for row in rows:
            least = row.const + sum(c * (low[d] if c > 0 else high[d]) for d, c in row.terms)
            most = row.const + sum(c * (high[d] if c > 0 else low[d]) for d, c in row.terms)
            if most < 0 or (row.equality and least > 0):
                return None
            if (least == most == 0) if row.equality else least >= 0:
                continue
            if len(row.terms) == 1:
                if not _tighten(row, low, high):
                    return None
                changed = True
            else:
                kept.append(row)
        rows = kept
    size = {d: high[d] - low[d] + 1 for d in dims}
    return Region(dims, low, size, tuple(rows), odd, pieces, env)


def _tighten(row: Row, low: dict[str, int], high: dict[str, int]) -> bool:
    """Bound the dimension of a row that has one; False when nothing is left."""
    ((d, c),) = row.terms
    if row.equality:
        if row.const % c:
            return False
        value = -row.const // c
        possible = low[d] <= value <= high[d]
        low[d] = high[d] = value
        return possible
    if c > 0:
        low[d] = max(low[d], -(row.const // c))
    else:
        high[d] = min(high[d], row.const // -c)
    return low[d] <= high[d]


def list_points(region: Region) -> dict[str, IntArray]:
    """Every point of the region in lexicographic order, as one array of values per dimension."""
    if region.volume > LIST_LIMIT:
        dim = max(region.dims, key=lambda d: region.size[d])
        half = region.size[dim] // 2
        parts = [
            list_points(cut_dim(region, dim, region.low[dim], half)),
            list_points(cut_dim(region, dim, region.low[dim] + half, region.size[dim] - half)),
        ]
        return {d: np.concatenate([p[d] for p in parts]) for d in region.dims}
    cuts = masks(region, frame_indices(region))
    inside = np.broadcast_to(reduce(np.logical_and, cuts) if cuts else np.True_, region.sizes)
    return {d: k + region.low[d] for d, k in zip(region.dims, np.nonzero(inside), strict=True)}


def dims_to_loop(region: Region) -> tuple[str, ...]:
    """The cheapest dimensions to fix so that every row bounds a single one; none when that takes many iterations."""
    if region.odd or region.pieces or not region.rows:
        return ()
    involved = sorted({d for row in region.rows for d, _ in row.terms}, key=region.dims.index)
    best: tuple[int, tuple[str, ...]] | None = None
    for count in range(1, len(involved)):
        for chosen in combinations(involved, count):
            cost = prod(region.size[d] for d in chosen)
            fits = all(sum(d not in chosen for d, _ in row.terms) <= 1 for row in region.rows)
            if fits and cost <= LOOP_LIMIT and (best is None or cost < best[0]):
                best = cost, chosen
    return best[1] if best else ()


def frame_indices(region: Region) -> dict[str, Any]:
    """Every dimension as an int64 array along its own axis, every level as an integer."""
    indices: dict[str, Any] = dict(region.env)
    for axis, d in enumerate(region.dims):
        shape = [1] * len(region.dims)
        shape[axis] = region.size[d]
        indices[d] = np.arange(region.low[d], region.low[d] + region.size[d], dtype=np.int64).reshape(shape)
    return indices


def _row_mask(row: Row, indices: Mapping[str, Any]) -> BoolArray:
    """Where the row holds."""
    total: Any = row.const
    for d, c in row.terms:
        total = total + c * indices[d]
    held: BoolArray = np.asarray(total == 0 if row.equality else total >= 0)
    return held


def masks(region: Region, indices: Mapping[str, Any]) -> list[BoolArray]:
    """One mask for every constraint that cuts the box; a domain of several pieces gives one for all.

    Each has one axis for every dimension, of size 1 where it does not depend on it.
    """
    found = [_row_mask(row, indices) for row in region.rows]
    found += [np.asarray(constraint_array(c, indices)) for c in region.odd]
    if region.pieces:
        parts = [reduce(np.logical_and, [constraint_array(c, indices) for c in piece], True) for piece in region.pieces]
        found.append(np.asarray(reduce(np.logical_or, parts)))
    flat = (1,) * len(region.dims)
    return [m if m.ndim else m.reshape(flat) for m in found]
