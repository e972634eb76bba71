"""Addresses: the buffers of one kernel lie side by side, kernels take turns in the two halves of their memories.

A kernel that fits in half a memory leaves the other half to its neighbours, so that their copies and its work overlap.
"""

from __future__ import annotations

from dataclasses import replace

from polyopt.errors import CapacityError
from polyopt.ir import Buffer, dtype
from polyopt.machine import Machine, Memory

__all__ = ["allocate"]


def allocate(machine: Machine, groups: list[list[Buffer]]) -> tuple[Buffer, ...]:
    """Addresses for every buffer; `groups` lists the buffers of each kernel in program order.

    Raises CapacityError listing the buffers of a kernel that does not fit.
    """
    done: list[Buffer] = []
    turn: dict[str, int] = {}
    for group in groups:
        for memory in machine.memories:
            own = [b for b in group if b.memory == memory.name]
            if own:
                done += _place(machine.name, memory, own, turn)
    return tuple(done)


def _place(machine: str, memory: Memory, group: list[Buffer], turn: dict[str, int]) -> list[Buffer]:
    unit = memory.bank_bytes or memory.align_bytes
    sizes = [copy_bytes(b, unit) for b in group]
    total = sum(s * b.copies for s, b in zip(sizes, group, strict=True))
    if total > memory.bytes_per_partition:
        rows = ", ".join(f"{b.name} {b.copies} x {s} B" for s, b in zip(sizes, group, strict=True))
        raise CapacityError(
            f"{memory.name} of {machine} has {memory.bytes_per_partition} B a partition, "
            f"the kernel needs {total} B: {rows}",
            help="use smaller tiles or fewer copies",
        )
    half = memory.bytes_per_partition // 2 // unit * unit
    side = turn.get(memory.name, 0)
    start = half if side and total <= memory.bytes_per_partition - half else 0
    turn[memory.name] = 1 - side if total <= half else 0
    placed: list[Buffer] = []
    for size, b in zip(sizes, group, strict=True):
        placed.append(replace(b, offset_bytes=start, copy_bytes=size))
        start += size * b.copies
    return placed


def copy_bytes(buffer: Buffer, unit: int) -> int:
    """Bytes of one copy in every partition, rounded up to `unit`."""
    points = 1
    for n in buffer.shape[1:]:
        points *= n
    raw = points * dtype(buffer.dtype).element_bytes
    return -(-raw // unit) * unit
