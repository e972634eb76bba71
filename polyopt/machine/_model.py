"""A machine as a value: memories, engines, transfers, instruction specifications, every figure with source and tag."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from polyopt.errors import InputError, nearest
from polyopt.machine._cost import CostFormula
from polyopt.machine._pattern import Body

__all__ = ["TAGS", "Engine", "Figure", "InstructionSpec", "LaneSpec", "Machine", "Memory", "OperandSpec", "Transfer"]

TAGS = ("documented", "code constant", "measured", "inferred", "assumption")


@dataclass(frozen=True, slots=True)
class Figure:
    """A number with its unit, where it comes from and how sure it is (one of TAGS)."""

    value: float
    unit: str
    source: str
    tag: str


@dataclass(frozen=True, slots=True)
class Memory:
    """kind: 'device', 'scratchpad' or 'accumulator'.  On-chip memories are `partitions` x `bytes_per_partition`.

    bank_bytes: bytes of one bank per partition (0: no banks).  starts: (largest partition count, allowed first
    partitions).
    """

    name: str
    kind: str
    partitions: int
    bytes_per_partition: int
    bank_bytes: int = 0
    align_bytes: int = 1
    starts: tuple[tuple[int, tuple[int, ...]], ...] = ()
    bytes_per_ns: float = 0.0

    @property
    def capacity_bytes(self) -> int:
        return self.partitions * self.bytes_per_partition


@dataclass(frozen=True, slots=True)
class Engine:
    """One in-order instruction stream.  `reads` and `writes` name memories; overhead is paid once per instruction."""

    name: str
    clock_ghz: float
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    overhead_cycles: int = 0


@dataclass(frozen=True, slots=True)
class Transfer:
    """Data movers: `queues` issue in order; one transfer is spread over `engines`, row by row.

    time = latency_ns + ceil(rows / engines) * max(descriptor_ns, row_bytes / bytes_per_ns), and a queue is busy for the
    second summand only.  A row is the longest run that is contiguous on both sides.
    """

    queues: tuple[str, ...]
    engines: int
    bytes_per_ns: float
    descriptor_ns: float
    latency_ns: float
    reads: tuple[str, ...]
    writes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LaneSpec:
    """A lane and its largest extent (None: bounded only by the operands' memories)."""

    name: str
    max: int | None


@dataclass(frozen=True, slots=True)
class OperandSpec:
    """Where an operand may live and which lane lies on its partitions (None: one value per partition or free).

    single_bank: the touched cells of one instruction stay inside one bank.
    """

    name: str
    memories: tuple[str, ...]
    partition: str | None
    dtypes: tuple[str, ...]
    single_bank: bool = False


@dataclass(frozen=True, slots=True)
class InstructionSpec:
    """One instruction: a small loop nest with limits and a cost.

    forms: bodies from the largest to the smallest; an instruction instance names the form in attribute `form`.
    accumulate: 'flag' (attribute `accumulate` decides), 'never' (a reduction starts from its identity each time).
    kind: 'compute', 'transfer' or 'general' (a counted scalar loop that runs any statement).
    accumulate_dtype: the type in which a reduction is summed up.
    """

    name: str
    engines: tuple[str, ...]
    lanes: tuple[LaneSpec, ...]
    forms: tuple[Body, ...]
    operands: tuple[OperandSpec, ...]
    cycles: CostFormula
    kind: str = "compute"
    accumulate: str = "never"
    accumulate_dtype: str = "float32"
    maskable: bool = False
    source: str = ""
    tag: str = "assumption"

    def lane(self, name: str) -> LaneSpec:
        return next(lane for lane in self.lanes if lane.name == name)

    def operand(self, name: str) -> OperandSpec:
        return next(o for o in self.operands if o.name == name)


@dataclass(frozen=True, slots=True)
class Machine:
    """A complete target.  `peaks`: dtype -> floating-point operations per nanosecond of the fastest engine."""

    name: str
    title: str
    memories: tuple[Memory, ...]
    engines: tuple[Engine, ...]
    transfer: Transfer
    instructions: tuple[InstructionSpec, ...]
    peaks: Mapping[str, float]
    dtypes: tuple[str, ...]
    semaphore_ns: float
    startup_ns: float
    figures: tuple[tuple[str, Figure], ...]

    def memory(self, name: str) -> Memory:
        return next(m for m in self.memories if m.name == name)

    def memory_of_kind(self, kind: str) -> Memory | None:
        return next((m for m in self.memories if m.kind == kind), None)

    def engine(self, name: str) -> Engine:
        return next(e for e in self.engines if e.name == name)

    def spec(self, name: str) -> InstructionSpec:
        """The specification called `name`; InputError naming the nearest one."""
        for s in self.instructions:
            if s.name == name:
                return s
        known = [s.name for s in self.instructions]
        raise InputError(f"machine {self.name} has no instruction {name!r}{nearest(name, known)}", id="instruction")

    def require_dtype(self, name: str) -> None:
        """InputError naming the dtypes this machine has, when it lacks `name`."""
        if name not in self.dtypes:
            raise InputError(
                f"target {self.name} has no dtype {name!r}",
                help=f"it has: {', '.join(self.dtypes)}",
                id="target-dtype",
            )
