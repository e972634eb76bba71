"""What one instance costs: engine time by the specification's formula, transfers by rows, traffic and multiply-adds."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from polyopt.machine import Machine, OperandKind
from polyopt.simulator._general import is_multiply_add
from polyopt.simulator._limits import check_limits, role_extents
from polyopt.simulator._memory import View
from polyopt.simulator._plan import OperandPlan, SitePlan
from polyopt.simulator._result import Array
from polyopt.simulator._values import is_sum_of_products, mask_grid

__all__ = ["Cost", "CostModel", "Pool", "row_lengths"]


@dataclass(slots=True, eq=False)
class Cost:
    """Of all instances that are alike.  ns: engine time, or the time that a transfer occupies the data movers.

    read_bytes, written_bytes: (tensor, bytes) moved to or from device memory.  count: how many instances there were.
    """

    ns: float
    points: int
    multiply_adds: int
    read_bytes: tuple[tuple[str, int], ...]
    written_bytes: tuple[tuple[str, int], ...]
    count: int = 0


class CostModel:
    """Costs of one site's instances; also checks the limits that depend on sizes."""

    def __init__(self, site: SitePlan, machine: Machine) -> None:
        self.site = site
        self.machine = machine
        self.views = [View(o) for o in site.operands]
        kinds = {o.name: OperandKind(o.array.dtype, o.array.memory.name) for o in site.operands}
        self.cycles = site.spec.cycles.bind(kinds)
        self.counts_products = is_sum_of_products(site) or (site.spec.kind == "general" and is_multiply_add(site))

    def cost(self, at: Mapping[str, int]) -> Cost:
        """The cost of the instance at loop variables `at`; ProgramError when it breaks a limit.  Extents are >= 1."""
        site = self.site
        extents = [e.evaluate(at) for e in site.extents]
        if site.spec.kind != "general":
            check_limits(site, extents, [n.evaluate(at) for v in site.all_views for n in (*v.base, v.copy)], at)
        if site.spec.kind == "transfer":
            return self.transfer(extents, at)
        points = math.prod(extents)
        if site.masks_operands:
            points = int(np.count_nonzero(mask_grid(site, extents, at)))
        lanes = {"points": points} if site.spec.kind == "general" else role_extents(site, extents)
        cycles = float(self.cycles(lanes))
        assert site.engine is not None
        ns = (cycles + site.engine.overhead_cycles) / site.engine.clock_ghz
        return Cost(ns, points, points if self.counts_products else 0, *self.traffic(points, extents))

    def traffic(
        self, points: int, extents: Sequence[int]
    ) -> tuple[tuple[tuple[str, int], ...], tuple[tuple[str, int], ...]]:
        """Bytes read and written per tensor: every touched lane point moves one element; an index once per row."""
        read: dict[str, int] = {}
        written: dict[str, int] = {}
        for operand in self.site.operands:
            for depth, view in enumerate(operand.chain):
                array = view.array
                if not array.is_tensor:
                    continue
                moved = points
                if depth and self.site.spec.kind == "transfer":
                    moved = min(points, math.prod(n for n, s in zip(extents, view.steps, strict=True) if any(s)))
                into = written if view.writes else read
                into[array.name] = into.get(array.name, 0) + moved * array.element_bytes
        return tuple(read.items()), tuple(written.items())

    def transfer(self, extents: Sequence[int], at: Mapping[str, int]) -> Cost:
        """`ceil(rows / engines) * max(descriptor, row bytes / rate)`, and not faster than device memory."""
        t = self.machine.transfer
        target, source = self.views[0], self.views[1]
        holds = mask_grid(self.site, extents, at) if self.site.masks_operands else None
        lengths = row_lengths(target, source, extents, holds)
        item = max(target.plan.array.element_bytes, source.plan.array.element_bytes)
        rows = sum(n for _, n in lengths)
        points = sum(length * n for length, n in lengths)
        if not rows:
            return Cost(0.0, 0, 0, (), ())
        each = sum(n * max(t.descriptor_ns, length * item / t.bytes_per_ns) for length, n in lengths) / rows
        read, written = self.traffic(points, extents)
        ns = -(-rows // t.engines) * each
        device = self.machine.memory_of_kind("device")
        if device is not None and device.bytes_per_ns:
            ns = max(ns, sum(b for _, b in (*read, *written)) / device.bytes_per_ns)
        return Cost(ns, points, 0, read, written)


def row_lengths(
    target: View, source: View, extents: Sequence[int], holds: Array | None = None
) -> list[tuple[int, int]]:
    """Rows of a transfer as (elements, number of rows of that length).

    A row is the longest run of lane points that is contiguous on both sides: it does not cross partitions, and not
    lanes along which a data-dependent subscript moves.  holds: the points that are moved, all when None.
    """
    inner: list[int] = []
    length = 1
    while True:
        grown = next(
            (k for k in range(len(extents)) if k not in inner and _joins(target, source, extents, k, length)), -1
        )
        if grown < 0:
            break
        inner.append(grown)
        length *= extents[grown]
    if holds is None:
        return [(length, math.prod(extents) // length)] if length else []
    outer = [k for k in range(len(extents)) if k not in inner]
    table = np.transpose(holds, [*outer, *reversed(inner)]).reshape(-1, length)
    edges = np.diff(np.pad(table.astype(np.int8), ((0, 0), (1, 1))), axis=1)
    runs = np.nonzero(edges == -1)[1] - np.nonzero(edges == 1)[1]
    values, counts = np.unique(runs, return_counts=True)
    return [(int(v), int(n)) for v, n in zip(values, counts, strict=True)]


def _joins(target: View, source: View, extents: Sequence[int], lane: int, length: int) -> bool:
    """Whether lane points at step `length` of `lane` follow each other on both sides."""
    if extents[lane] <= 1:
        return False
    return all(v.value_steps[lane] == length and not _breaks(v.plan, lane) for v in (target, source))


def _breaks(operand: OperandPlan, lane: int) -> bool:
    crosses = operand.array.has_partitions and operand.steps[lane][0] != 0
    return crosses or any(any(v.steps[lane]) for v in operand.chain[1:])


class Pool:
    """The data movers that all queues share: work fills the idle time from its ready moment on, in program order.

    `gaps`: idle intervals (begin, end, what was busy before), the last one without end.
    """

    __slots__ = ("begins", "busy_ns", "ends", "owners")

    def __init__(self, start_ns: float) -> None:
        self.begins = [start_ns]
        self.ends = [math.inf]
        self.owners = [-1]
        self.busy_ns = 0.0

    def take(self, ready: float, ns: float, who: int) -> tuple[float, float, int]:
        """Occupy `ns` of idle time at or after `ready`: (begin, end, whose work was waited for or -1)."""
        if ns <= 0:
            return ready, ready, -1
        self.busy_ns += ns
        begins, ends, owners = self.begins, self.ends, self.owners
        last = len(begins) - 1
        if ready >= begins[last]:
            if ready > begins[last]:
                ends[last] = ready
                begins.append(ready)
                ends.append(math.inf)
                owners.append(who)
                last += 1
            begins[last] = ready + ns
            owners[last] = who
            return ready, ready + ns, -1
        k = max(0, bisect_right(begins, ready) - 1)
        if ends[k] <= ready:
            k += 1
        first = max(ready, begins[k])
        waited = owners[k] if first > ready else -1
        while True:
            begin = max(first, begins[k])
            free = ends[k] - begin
            if free >= ns:
                self._cut(k, begin, begin + ns, who)
                return first, begin + ns, waited
            ns -= free
            if begin > begins[k]:
                ends[k] = begin
                k += 1
            else:
                del begins[k], ends[k], owners[k]

    def _cut(self, k: int, begin: float, end: float, who: int) -> None:
        """Take [begin, end) out of gap k, which goes on after it."""
        if begin > self.begins[k]:
            self.begins.insert(k, self.begins[k])
            self.ends.insert(k, begin)
            self.owners.insert(k, self.owners[k])
            k += 1
        self.begins[k] = end
        self.owners[k] = who
        if end >= self.ends[k]:
            del self.begins[k], self.ends[k], self.owners[k]
