"""Sequential loops in waves of independent instances, found by looking at the cells that each instance touches.

For an algebra that has no scalar form, running a loop instance by instance would cost a whole-array operation each.
Inspector and executor: every instance gets the first wave after all earlier ones that it depends on; waves run as
listed points.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from polyopt.ir import Access
from polyopt.reference._affine import IntArray, affine_array
from polyopt.reference._cells import Cells
from polyopt.reference._leaf import CHUNK, LeafRunner
from polyopt.reference._part import Part
from polyopt.reference._region import RegionPlan, enter, list_points, plan_region
from polyopt.reference._repeat import list_instances
from polyopt.sets import Affine

__all__ = ["WAVE_LIMIT", "WaveRunner", "is_poor"]

WAVE_LIMIT = 2**22
"""Instances that are listed at once."""
SPARSE = 2**22
"""Points of a box of levels above which the instances are listed by their iterators."""
_POOR = 100
"""Instances per execution of a leaf below which waves are worth it."""
_ROWS = 2**16
"""Instances that are turned into Python numbers together."""


def is_poor(leaves: Sequence[tuple[Part, Sequence[str]]]) -> bool:
    """Whether leaves (with their sequential levels) run few instances at a time and not too many in all."""
    total = sum(part.domain.count() for part, _ in leaves)
    runs = sum(part.domain.project_onto(sequential).count() for part, sequential in leaves)
    return total <= WAVE_LIMIT and total < _POOR * runs


@dataclass(slots=True)
class _Listed:
    """The instances of one leaf in the order of the program, and the cells they touch."""

    runner: LeafRunner
    indices: dict[str, IntArray]
    keys: list[IntArray]
    reads: IntArray
    writes: IntArray


class WaveRunner:
    """Runs the leaves of a sequential loop; `fallback` runs the loop where cells are not known beforehand."""

    def __init__(
        self,
        runners: Sequence[LeafRunner],
        outer: Sequence[str],
        cells: Mapping[str, Cells],
        fallback: Callable[[dict[str, int]], None],
    ) -> None:
        self.runners, self.outer, self.cells, self.fallback = runners, tuple(outer), cells, fallback
        self.plans: list[RegionPlan] = []
        for r in runners:
            dims = [d for d in r.part.domain.dims if d not in outer]
            self.plans.append(plan_region(r.part.domain, dims, outer))
        self.written = sorted({r.part.target.tensor for r in runners})
        self.offsets: dict[str, int] = {}
        total = 0
        for name in self.written:
            self.offsets[name] = total
            total += prod(cells[name].shape)
        self.num_cells = total
        self.known = all(self.is_known(a) for r in runners for a, _ in r.part.accesses())

    def is_known(self, access: Access) -> bool:
        """Whether no statement of the loop changes the subscripts."""
        inner = [s.access for s in access.subscripts if not isinstance(s, Affine)]
        return all(a.tensor not in self.offsets and self.is_known(a) for a in inner)

    def run(self, env: dict[str, int]) -> None:
        if not self.known:
            self.fallback(env)
            return
        listed = [
            x for r, p in zip(self.runners, self.plans, strict=True) if (x := self.instances(r, p, env)) is not None
        ]
        if listed:
            self.execute(listed, *_merge(listed))

    def instances(self, runner: LeafRunner, plan: RegionPlan, env: Mapping[str, int]) -> _Listed | None:
        region = enter(plan, env)
        if region is None:
            return None
        if region.volume > SPARSE:
            indices, count = self.inside(list_instances(runner.part), env)
        else:
            points = list_points(region)
            count = next(iter(points.values())).size if points else 1
            indices = {n: np.full(count, v, np.int64) for n, v in region.env.items()}
            indices.update(points)
        iterators = {i: affine_array(e, indices) for i, e in runner.part.values}
        keys = [np.broadcast_to(affine_array(e, iterators), (count,)) for e in runner.part.whole_order]
        order = np.lexsort(keys[::-1]) if keys else np.arange(count)
        indices = {n: a[order] for n, a in indices.items()}
        keys = [k[order] for k in keys]
        uses = [a for a, use in runner.part.accesses() if use == "read" and a.tensor in self.offsets]
        reads = (
            np.stack([self.positions(a, indices, count) for a in uses], 1) if uses else np.zeros((count, 0), np.int64)
        )
        return _Listed(runner, indices, keys, reads, self.positions(runner.part.target, indices, count))

    def inside(
        self, listed: tuple[dict[str, IntArray], int], env: Mapping[str, int]
    ) -> tuple[dict[str, IntArray], int]:
        """The instances at the present values of the levels around the loop."""
        indices, count = listed
        kept = np.ones(count, np.bool_)
        for level in self.outer:
            kept &= indices[level] == env[level]
        return {n: a[kept] for n, a in indices.items()}, int(kept.sum())

    def positions(self, access: Access, indices: Mapping[str, IntArray], count: int) -> IntArray:
        """Numbers of the cells touched, among all cells that the loop writes; clipped into the tensor."""
        shape = self.cells[access.tensor].shape
        flat: Any = np.zeros(count, np.int64)
        for index, extent in zip(self.subscripts(access, indices), shape, strict=True):
            flat = flat * extent + np.clip(index, 0, max(extent - 1, 0))
        return np.asarray(flat + self.offsets[access.tensor])

    def subscripts(self, access: Access, indices: Mapping[str, IntArray]) -> list[Any]:
        found: list[Any] = []
        for s in access.subscripts:
            if isinstance(s, Affine):
                found.append(affine_array(s, indices))
            else:
                inner = self.cells[s.access.tensor]
                clipped = [
                    np.clip(k, 0, max(n - 1, 0))
                    for k, n in zip(self.subscripts(s.access, indices), inner.shape, strict=True)
                ]
                found.append(np.asarray(inner.parts[0][tuple(clipped)], np.int64) + affine_array(s.offset, indices))
        return found

    def execute(self, listed: Sequence[_Listed], owners: IntArray, rows: IntArray) -> None:
        """owners, rows: whose instance comes next, and which one of its own."""
        waves = self.number_waves(listed, owners)
        order = np.lexsort((rows, owners, waves))
        waves, owners, rows = waves[order], owners[order], rows[order]
        changes = np.flatnonzero((np.diff(waves) != 0) | (np.diff(owners) != 0)) + 1
        for low, high in zip([0, *changes.tolist()], [*changes.tolist(), len(rows)], strict=True):
            one = listed[int(owners[low])]
            for start in range(low, high, CHUNK):
                chosen = rows[start : min(high, start + CHUNK)]
                one.runner.run_listed({n: a[chosen] for n, a in one.indices.items()}, chosen.size)

    def number_waves(self, listed: Sequence[_Listed], owners: IntArray) -> IntArray:
        """The wave of every instance, counted from 1."""
        log = _Log(self.num_cells)
        touched = [_rows(x) for x in listed]
        combines = [x.runner.part.combine for x in listed]
        waves = [log.wave(next(touched[o]), combines[o]) for o in owners.tolist()]
        return np.array(waves, np.int64)


class _Log:
    """Per cell, the last wave in which it was read, written, and combined into (with which operator)."""

    def __init__(self, num_cells: int) -> None:
        self.read, self.written, self.combined = ([0] * num_cells for _ in range(3))
        self.operator: list[str | None] = [None] * num_cells

    def wave(self, touched: tuple[list[int], int], combine: str | None) -> int:
        """The first wave for the next instance; combinations with one operator need not wait for each other.

        touched: the cells it reads, and the one it writes or combines into.
        """
        reads, target = touched
        if combine is None or combine != self.operator[target]:
            self.written[target] = max(self.written[target], self.combined[target])
        wave = max(self.written[target], self.read[target])
        for cell in reads:
            wave = max(wave, self.written[cell], self.combined[cell])
        wave += 1
        for cell in reads:
            self.read[cell] = max(self.read[cell], wave)
        if combine is None:
            self.written[target] = wave
        else:
            self.combined[target] = max(self.combined[target], wave)
            self.operator[target] = combine
        return wave


def _rows(listed: _Listed) -> Iterator[tuple[list[int], int]]:
    """Cells read and cell written by every instance in turn."""
    for start in range(0, listed.writes.size, _ROWS):
        part = slice(start, start + _ROWS)
        yield from zip(listed.reads[part].tolist(), listed.writes[part].tolist(), strict=True)


def _merge(listed: Sequence[_Listed]) -> tuple[IntArray, IntArray]:
    """For every instance in the order of the program: whose it is, and its number there."""
    owners = np.concatenate([np.full(x.writes.size, k) for k, x in enumerate(listed)])
    rows = np.concatenate([np.arange(x.writes.size) for x in listed])
    positions = np.concatenate([np.full(x.writes.size, x.runner.part.position) for x in listed])
    keys = [np.concatenate([x.keys[k] for x in listed]) for k in range(len(listed[0].keys))]
    order = np.lexsort((rows, positions, *keys[::-1]))
    return owners[order], rows[order]
