"""Machines for tests."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from polyopt.machine import InstructionSpec, LaneSpec, Machine, Memory, machine

__all__ = ["nameless", "small"]

PARTITIONS = 4
LIMITS = {128: PARTITIONS, 512: 8}
"""Largest lane extents of trn2 -> those of the small machine."""


@cache
def small() -> Machine:
    """trn2 with 4 partitions, a scratchpad of 256 bytes in each and banks of 32: small programs need many tiles."""
    full = machine("trn2")
    memories = tuple(_small_memory(m) for m in full.memories)
    return replace(full, name="small", memories=memories, instructions=tuple(_small_spec(s) for s in full.instructions))


def _small_memory(m: Memory) -> Memory:
    if m.kind == "device":
        return m
    bank, size = (32, 256) if m.bank_bytes else (0, 256)
    starts = ((PARTITIONS, (0,)),)
    return replace(m, partitions=PARTITIONS, bytes_per_partition=size, bank_bytes=bank, starts=starts)


def _small_spec(s: InstructionSpec) -> InstructionSpec:
    if s.kind != "compute":
        return s
    return replace(s, lanes=tuple(LaneSpec(x.name, LIMITS.get(x.max or 0, x.max)) for x in s.lanes))


@cache
def nameless() -> Machine:
    """trn2 with other names for its instructions: nothing may depend on what they are called."""
    full = machine("trn2")
    specs = tuple(replace(s, name=f"op{k}") for k, s in enumerate(full.instructions))
    return replace(full, name="nameless", instructions=specs)
