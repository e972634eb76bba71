"""Addresses: no two buffers of a kernel share bytes, banks and capacity are kept."""

from __future__ import annotations

import itertools
from dataclasses import replace
from math import prod

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polyopt.backend._allocate import allocate
from polyopt.backend._names import Names
from polyopt.bench import SUITES, Workload
from polyopt.errors import CapacityError
from polyopt.ir import Buffer, dtype, instructions
from polyopt.machine import machine
from polyopt.pipeline import compile
from tests.machines import small

TRN2 = machine("trn2")


@st.composite
def buffers(draw: st.DrawFn, position: int) -> Buffer:
    memory = draw(st.sampled_from(["sbuf", "psum"]))
    shape = (draw(st.integers(1, 4)), *draw(st.lists(st.integers(1, 6), max_size=2)))
    element = draw(st.sampled_from(["float32", "bfloat16", "int8"]))
    return Buffer(f"b{position}", memory, shape, element, draw(st.integers(1, 3)))


@st.composite
def groups(draw: st.DrawFn) -> list[list[Buffer]]:
    number = itertools.count()
    return [
        [draw(buffers(next(number))) for _ in range(draw(st.integers(0, 4)))] for _ in range(draw(st.integers(1, 4)))
    ]


def bytes_of(b: Buffer) -> range:
    return range(b.offset_bytes, b.offset_bytes + b.copies * b.copy_bytes)


def demands(group: list[Buffer], memory: str) -> dict[str, int]:
    """Bytes of all copies of each buffer, banks and alignment counted."""
    m = small().memory(memory)
    unit = m.bank_bytes or m.align_bytes
    sizes = {b.name: prod(b.shape[1:]) * dtype(b.dtype).element_bytes for b in group if b.memory == memory}
    return {b.name: -(-sizes[b.name] // unit) * unit * b.copies for b in group if b.memory == memory}


def fits(group: list[Buffer], transient: set[str], memory: str) -> bool:
    """Side by side, or with the transient buffers one after the other in one place."""
    found = demands(group, memory)
    capacity = small().memory(memory).bytes_per_partition
    lasting = sum(n for name, n in found.items() if name not in transient)
    passing = [n for name, n in found.items() if name in transient]
    return sum(found.values()) <= capacity or bool(passing and lasting + max(passing) <= capacity)


@settings(max_examples=150)
@given(groups(), st.sets(st.integers(0, 15)))
def test_addresses(kernels: list[list[Buffer]], chosen: set[int]) -> None:
    target, transient = small(), {f"b{k}" for k in chosen}
    possible = all(fits(g, transient, m) for g in kernels for m in ("sbuf", "psum"))
    try:
        placed = allocate(target, kernels, transient)
    except CapacityError as error:
        assert not possible
        assert "B a partition, the kernel needs more" in error.message
        return
    assert possible
    by_name = {b.name: b for b in placed}
    wanted = [b for g in kernels for b in g]
    assert len(placed) == len(by_name) == len(wanted)
    for b in wanted:
        found = by_name[b.name]
        memory = target.memory(b.memory)
        unit = memory.bank_bytes or memory.align_bytes
        assert replace(found, offset_bytes=0, copy_bytes=0) == b
        assert found.copy_bytes >= prod(b.shape[1:]) * dtype(b.dtype).element_bytes
        assert found.offset_bytes % unit == 0 == found.copy_bytes % unit
        assert found.offset_bytes >= 0 and bytes_of(found).stop <= memory.bytes_per_partition
    for g in kernels:
        for a, b in itertools.combinations([by_name[b.name] for b in g], 2):
            if a.memory == b.memory and set(bytes_of(a)) & set(bytes_of(b)):
                assert {a.name, b.name} <= transient
                assert sum(demands(g, a.memory).values()) > target.memory(a.memory).bytes_per_partition


@settings(max_examples=60)
@given(groups())
def test_small_neighbours_keep_out_of_each_others_way(kernels: list[list[Buffer]]) -> None:
    """Kernels that fit half of a memory leave the other half to the kernel before and behind them."""
    target = small()
    half = {m.name: m.bytes_per_partition // 2 for m in target.memories}
    kernels = [g for g in kernels if all(sum(demands(g, m).values()) <= half[m] for m in ("sbuf", "psum"))]
    by_name = {b.name: b for b in allocate(target, kernels, frozenset())}
    for memory in ("sbuf", "psum"):
        own = [[by_name[b.name] for b in g if b.memory == memory] for g in kernels]
        for one, two in itertools.pairwise([g for g in own if g]):
            for a, b in itertools.product(one, two):
                assert not set(bytes_of(a)) & set(bytes_of(b))


def test_what_does_not_fit_is_listed() -> None:
    group = [Buffer("big", "sbuf", (4, 40), "float32", 2), Buffer("other", "sbuf", (4, 3), "float32")]
    with pytest.raises(CapacityError) as caught:
        allocate(small(), [group], frozenset())
    assert caught.value.message == (
        "sbuf of small has 256 B a partition, the kernel needs more: big 2 x 160 B, other 1 x 12 B"
    )
    assert "use smaller tiles or fewer copies" in str(caught.value)


@pytest.mark.parametrize("workload", SUITES["main"], ids=lambda w: w.name)
def test_buffers_of_one_kernel_in_generated_programs(workload: Workload) -> None:
    program = compile(workload.scop(), at=workload.sizes).program
    used: dict[str, dict[str, Buffer]] = {}
    for instr, _ in instructions(program.body):
        for _, view in instr.operands:
            buffer = program.buffer(view.array)
            if buffer is not None:
                used.setdefault(instr.statement, {})[buffer.name] = buffer
    for own in used.values():
        for a, b in itertools.combinations(own.values(), 2):
            apart = bytes_of(a).stop <= b.offset_bytes or bytes_of(b).stop <= a.offset_bytes
            assert a.memory != b.memory or apart or ("_cross" in a.name and "_cross" in b.name)


@settings(max_examples=100)
@given(st.lists(st.sampled_from(["a", "b", "a_2", "a_3", "a_2_2", "b_2"]), max_size=12))
def test_names_are_handed_out_once(bases: list[str]) -> None:
    names = Names()
    found = [names.new(b) for b in bases]
    assert len(set(found)) == len(found)
    assert all(f == b or f.startswith(f"{b}_") for f, b in zip(found, bases, strict=True))
