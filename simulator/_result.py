"""What a simulated run gives: values, time, traffic, races."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from numpy.typing import NDArray

__all__ = ["Access", "Array", "Event", "PathStep", "Race", "SimResult"]

Array = NDArray[Any]

EMPTY: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Access:
    """One side of a race: an instance of `site` that reads or writes `operand`.  `at`: the loop variables."""

    site: str
    operand: str
    kind: str
    queue: str
    at: tuple[tuple[str, int], ...]
    statement: str = ""

    def __str__(self) -> str:
        where = ", ".join(f"{n}={v}" for n, v in self.at)
        return f"{self.site}({where}) {self.kind}s {self.operand} on {self.queue}"


@dataclass(frozen=True, slots=True)
class Race:
    """Two accesses to the same bytes, at least one a write, that no wait orders.

    kind: 'read after write', 'write after read' or 'write after write', in program order.  cell: the first common
    element of `array` (the later access's array), or None when only the bounds of the accesses are known.  certain:
    False when a data-dependent subscript may or may not meet the cell.
    """

    kind: str
    array: str
    cell: tuple[int, ...] | None
    first: Access
    second: Access
    certain: bool = True

    def __str__(self) -> str:
        cell = "" if self.cell is None else f"[{', '.join(map(str, self.cell))}]"
        doubt = "" if self.certain else "possible "
        return f"{doubt}{self.kind} of {self.array}{cell}: {self.first}; {self.second}; nothing orders them"


@dataclass(frozen=True, slots=True)
class PathStep:
    """The time that all instances of `site` add to the critical path."""

    site: str
    queue: str
    ns: float
    instances: int


@dataclass(frozen=True, slots=True)
class Event:
    """One executed instruction.  `start_ns`, `end_ns`: from the start of its work to its completion."""

    site: str
    opcode: str
    queue: str
    start_ns: float
    end_ns: float
    at: tuple[tuple[str, int], ...]
    statement: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class SimResult:
    """One run of a program on a machine.

    outputs: tensors with role output or inout (empty when only time was simulated).  time_ns: from the start of the
    program, start-up included, to the last completion.  busy_ns: engine or queue -> time it worked; transfer_ns: time
    that the data movers, shared by all queues, were busy.  critical_path: steps in the order of their share.
    bottleneck: the engine with the largest busy time, or 'transfer'.  *_bytes: bytes moved to and from device memory;
    peak_bytes: memory -> highest address in use, all partitions counted.  instructions: opcode -> executed count.
    multiply_adds: queue -> useful multiply-adds of instructions that sum up products.  general_ns: busy time of general
    instructions. races: at most a hundred, one per pair of sites and kind; None when they were not looked for.
    """

    program: str
    machine: str
    sizes: Mapping[str, int]
    outputs: Mapping[str, Array]
    time_ns: float
    busy_ns: Mapping[str, float]
    transfer_ns: float
    critical_path: tuple[PathStep, ...]
    bottleneck: str
    hbm_read_bytes: int
    hbm_written_bytes: int
    tensor_read_bytes: Mapping[str, int]
    tensor_written_bytes: Mapping[str, int]
    peak_bytes: Mapping[str, int]
    instructions: Mapping[str, int]
    multiply_adds: Mapping[str, int]
    general_ns: float
    races: tuple[Race, ...] | None = None
    events: tuple[Event, ...] = ()
    queues: tuple[str, ...] = field(default=())

    @property
    def hbm_bytes(self) -> int:
        """Bytes read from and written to device memory."""
        return self.hbm_read_bytes + self.hbm_written_bytes

    @property
    def instruction_count(self) -> int:
        return sum(self.instructions.values())

    def busy_fraction(self) -> dict[str, float]:
        """Engine or queue -> busy share of the whole time."""
        return {q: ns / self.time_ns if self.time_ns else 0.0 for q, ns in self.busy_ns.items()}

    def tensor_engine_fraction(self, queue: str) -> float:
        """The share of all multiply-adds that `queue` executed (0 when there are none)."""
        total = sum(self.multiply_adds.values())
        return self.multiply_adds.get(queue, 0) / total if total else 0.0
