"""Addresses: the buffers of one kernel lie side by side, kernels take turns in the two halves of their memories.

A kernel that fits in half a memory leaves the other half to its neighbours, so that their copies and its work overlap.
Transient buffers (a tile on its way through the accumulator memory) share bytes with each other where room is short;
the synchronisation orders buffers with common bytes.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import replace

from polyopt.errors import CapacityError
from polyopt.ir import Buffer, dtype
from polyopt.machine import Machine, Memory

__all__ = ["allocate"]


def allocate(machine: Machine, groups: list[list[Buffer]], transient: AbstractSet[str]) -> tuple[Buffer, ...]:
    """Addresses for every buffer; `groups` lists the buffers of each kernel in program order, `transient` names those
    that may share bytes.

    Raises CapacityError listing the buffers of a kernel that does not fit.
    """
    done: list[Buffer] = []
    turn: dict[str, int] = {}
    for group in groups:
        for memory in machine.memories:
            own = [b for b in group if b.memory == memory.name]
            if own:
                done += _place(machine.name, memory, own, turn, transient)
    return tuple(done)


def _place(
    machine: str, memory: Memory, group: list[Buffer], turn: dict[str, int], transient: AbstractSet[str]
) -> list[Buffer]:
    unit = memory.bank_bytes or memory.align_bytes
    sized = [replace(b, copy_bytes=copy_bytes(b, unit)) for b in group]
    capacity = memory.bytes_per_partition
    total = sum(b.copies * b.copy_bytes for b in sized)
    if total > capacity:
        turn[memory.name] = 0
        return _share(machine, memory, sized, transient)
    half = capacity // 2 // unit * unit
    start = half if turn.get(memory.name, 0) and total <= capacity - half else 0
    turn[memory.name] = 1 - turn.get(memory.name, 0) if total <= half else 0
    return _side_by_side(sized, start)


def _side_by_side(buffers: list[Buffer], start: int) -> list[Buffer]:
    placed: list[Buffer] = []
    for b in buffers:
        placed.append(replace(b, offset_bytes=start))
        start += b.copies * b.copy_bytes
    return placed


def _share(machine: str, memory: Memory, buffers: list[Buffer], transient: AbstractSet[str]) -> list[Buffer]:
    """Lasting buffers side by side, the transient ones in turn in what is left."""
    lasting = [b for b in buffers if b.name not in transient]
    passing = [b for b in buffers if b.name in transient]
    used = sum(b.copies * b.copy_bytes for b in lasting)
    widest = max((b.copies * b.copy_bytes for b in passing), default=0)
    slots = (memory.bytes_per_partition - used) // widest if widest else 0
    if used > memory.bytes_per_partition or not slots:
        rows = ", ".join(f"{b.name} {b.copies} x {b.copy_bytes} B" for b in buffers)
        raise CapacityError(
            f"{memory.name} of {machine} has {memory.bytes_per_partition} B a partition, the kernel needs more: {rows}",
            help="use smaller tiles or fewer copies",
        )
    placed = _side_by_side(lasting, 0)
    return [*placed, *(replace(b, offset_bytes=used + k % slots * widest) for k, b in enumerate(passing))]


def copy_bytes(buffer: Buffer, unit: int) -> int:
    """Bytes of one copy in every partition, rounded up to `unit`."""
    points = 1
    for n in buffer.shape[1:]:
        points *= n
    raw = points * dtype(buffer.dtype).element_bytes
    return -(-raw // unit) * unit
