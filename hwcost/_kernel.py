"""Time of one kernel from counts alone: every engine's busy time, and the longest of them.

With copies prefetched one tile ahead the engines and the data movers work side by side, so the time is the largest
busy time plus one latency of everything that cannot overlap: the first load, the first tile's computation and the
last store.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from polyopt.hwcost._transfer import transfer_busy_ns
from polyopt.machine import Machine, OperandKind

__all__ = ["KernelCost", "OpCost", "PlacementCost", "kernel_cost"]


@dataclass(frozen=True, slots=True)
class OpCost:
    """`count` issues of one instruction on boxes of `lanes`."""

    spec: str
    engine: str
    count: float
    lanes: Mapping[str, int]
    operands: Mapping[str, OperandKind]


@dataclass(frozen=True, slots=True)
class PlacementCost:
    """`count` copies between device memory and the chip, `rows` runs of `row_bytes` bytes each.
    is_exposed: there is one buffer only, so that no work runs beside the copy.
    """

    count: float
    rows: float
    row_bytes: float
    is_exposed: bool = False


@dataclass(frozen=True, slots=True)
class KernelCost:
    """total_ns: modelled time; busy_ns: per engine, `transfer` among them; traffic_bytes: device memory both ways."""

    total_ns: float
    busy_ns: Mapping[str, float]
    traffic_bytes: float


def kernel_cost(machine: Machine, ops: tuple[OpCost, ...], copies: tuple[PlacementCost, ...]) -> KernelCost:
    """The time of one kernel in nanoseconds."""
    busy: dict[str, float] = {}
    first = 0.0
    for op in ops:
        engine = machine.engine(op.engine)
        cycles = machine.spec(op.spec).cycles.evaluate(op.lanes, op.operands) + engine.overhead_cycles
        one_ns = cycles / engine.clock_ghz
        busy[op.engine] = busy.get(op.engine, 0.0) + op.count * one_ns
        first += one_ns
    traffic, exposed = 0.0, 0.0
    for copy in copies:
        one_ns = transfer_busy_ns(machine, copy.rows, copy.row_bytes)
        exposed += max(0.0, copy.count - 1) * one_ns if copy.is_exposed else 0.0
        busy["transfer"] = busy.get("transfer", 0.0) + copy.count * one_ns
        traffic += copy.count * copy.rows * copy.row_bytes
        first += one_ns
    latency = 2 * machine.transfer.latency_ns if copies else 0.0
    total = max(busy.values(), default=0.0)
    return KernelCost(total + exposed + min(first, total) + latency, busy, traffic)
