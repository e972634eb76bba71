"""The cost model by hand, its monotonicity, and its busy times against the simulator's clock."""

from __future__ import annotations

from dataclasses import replace
from math import ceil, prod

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polyopt.bench import SUITES
from polyopt.hwcost import OpCost, PlacementCost, kernel_cost, transfer_busy_ns
from polyopt.ir import Access, Scop
from polyopt.ir.mapping import Kernel, kernels
from polyopt.ir.mapping import Mapping as ProgramMapping
from polyopt.machine import Machine, OperandKind, machine
from polyopt.pipeline import compile
from polyopt.simulator import simulate
from tests.unit.schedule._scops import program

TRN2 = machine("trn2")
PAD = OperandKind("float32", "sbuf")
counts = st.integers(1, 50)


def activation(count: float, f: int) -> OpCost:
    return OpCost("activation", "scalar", count, {"p": 128, "f": f}, {"O": PAD, "X": PAD})


# -- transfers ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("rows", "row_bytes", "expected"),
    [
        (1, 4, 104.0),
        (16, 64, 104.0),
        (17, 64, 208.0),
        (128, 2048, 8 * 104.0),
        (128, 4600, 8 * 200.0),
        (1, 23_000, 1000.0),
        (0, 64, 0.0),
    ],
)
def test_transfers_by_hand(rows: int, row_bytes: int, expected: float) -> None:
    """16 movers take a row each; a row takes 104 ns or its bytes at 23 B/ns."""
    assert transfer_busy_ns(TRN2, rows, row_bytes) == pytest.approx(expected)


@settings(max_examples=100)
@given(st.integers(0, 4000), st.integers(0, 100_000), st.integers(0, 50), st.integers(0, 5000))
def test_more_data_never_takes_less_time(rows: int, row_bytes: int, more_rows: int, more_bytes: int) -> None:
    base = transfer_busy_ns(TRN2, rows, row_bytes)
    assert 0 <= base <= transfer_busy_ns(TRN2, rows + more_rows, row_bytes + more_bytes)
    movers = TRN2.transfer
    assert base >= rows * row_bytes / (movers.engines * movers.bytes_per_ns) - 1e-6
    assert base == pytest.approx(ceil(rows / 16) * max(104.0, row_bytes / 23.0))


@settings(max_examples=50)
@given(st.integers(1, 4000), st.integers(1, 100_000), st.floats(1.0, 8.0))
def test_more_bandwidth_is_never_slower(rows: int, row_bytes: int, factor: float) -> None:
    t = TRN2.transfer
    faster = replace(TRN2, transfer=replace(t, bytes_per_ns=t.bytes_per_ns * factor))
    assert transfer_busy_ns(faster, rows, row_bytes) <= transfer_busy_ns(TRN2, rows, row_bytes)


# -- kernels -----------------------------------------------------------------------------------------------------------
def test_a_kernel_by_hand() -> None:
    """Three activations of 512 columns, 572 cycles at 1.2 GHz; four copies of 128 rows of 2 KiB."""
    cost = kernel_cost(TRN2, (activation(3, 512),), (PlacementCost(4, 128, 2048),))
    one, copy = (512 + 60) / 1.2, 8 * 104.0
    assert cost.busy_ns == pytest.approx({"scalar": 3 * one, "transfer": 4 * copy})
    assert cost.traffic_bytes == 4 * 128 * 2048
    assert cost.total_ns == pytest.approx(4 * copy + one + copy + 2 * 1300)


def test_nothing_takes_no_time() -> None:
    cost = kernel_cost(TRN2, (), ())
    assert (cost.total_ns, dict(cost.busy_ns), cost.traffic_bytes) == (0.0, {}, 0.0)


def test_work_on_different_engines_overlaps_and_on_one_engine_adds_up() -> None:
    vector = OpCost("copy", "vector", 10, {"p": 128, "f": 512}, {"O": PAD, "A": PAD})
    alone = kernel_cost(TRN2, (activation(10, 512),), ())
    both = kernel_cost(TRN2, (activation(10, 512), vector), ())
    twice = kernel_cost(TRN2, (activation(10, 512), activation(10, 512)), ())
    assert twice.busy_ns["scalar"] == pytest.approx(2 * alone.busy_ns["scalar"])
    assert both.total_ns < alone.total_ns + vector.count * (512 + 60) / 0.96
    assert set(both.busy_ns) == {"scalar", "vector"}


def test_a_single_buffer_exposes_its_copies() -> None:
    hidden = kernel_cost(TRN2, (activation(5, 512),), (PlacementCost(5, 128, 2048),))
    exposed = kernel_cost(TRN2, (activation(5, 512),), (PlacementCost(5, 128, 2048, True),))
    assert exposed.total_ns - hidden.total_ns == pytest.approx(4 * 8 * 104.0)
    assert exposed.busy_ns == hidden.busy_ns and exposed.traffic_bytes == hidden.traffic_bytes


ops = st.lists(st.builds(activation, counts, st.integers(1, 2048)), max_size=3).map(tuple)
copies = st.lists(
    st.builds(PlacementCost, counts, st.integers(1, 300), st.integers(1, 10_000), st.booleans()), max_size=3
).map(tuple)


@settings(max_examples=100)
@given(ops, copies, st.builds(activation, counts, st.integers(1, 2048)))
def test_invariants(some: tuple[OpCost, ...], moved: tuple[PlacementCost, ...], more: OpCost) -> None:
    cost = kernel_cost(TRN2, some, moved)
    assert cost.total_ns >= max(cost.busy_ns.values(), default=0.0) >= 0
    assert cost.traffic_bytes >= 0
    assert cost.total_ns >= cost.traffic_bytes / (TRN2.transfer.engines * TRN2.transfer.bytes_per_ns) - 1e-6
    larger = kernel_cost(TRN2, (*some, more), moved)
    assert larger.total_ns >= cost.total_ns - 1e-6
    assert all(larger.busy_ns[e] >= ns for e, ns in cost.busy_ns.items())


# -- against the simulator ---------------------------------------------------------------------------------------------
def recounted(kernel: Kernel, target: Machine) -> tuple[OpCost, ...]:
    """The operations of a kernel whose tiles are all full."""
    found = []
    for op in kernel.ops:
        kinds = {}
        for name, term in (*op.operands, (op.target_name, op.target)):
            p = kernel.placement(term)
            kinds[name] = OperandKind(p.dtype, p.memory)
        lanes = {role: prod(kernel.dim(d).tile for d in dims) for role, dims in op.lanes}
        count = prod(loop.trips_hint for loop in kernel.loops[: op.depth])
        found.append(OpCost(op.spec, op.engine, count, lanes, kinds))
    return tuple(found)


def elementwise() -> Scop:
    return program(
        "X[N, M] float32 input; v[N] float32 input; Y[N, M] float32 output",
        ("S", "[i, j] : 0 <= i < N and 0 <= j < M", "[i, j]", "Y[i, j] = exp(X[i, j] * 2 + v[i]) * X[i, j]"),
        params="N, M",
    )


def contraction() -> Scop:
    return program(
        "W[K, M] float32 input; X[K, N] float32 input; O[M, N] float32 inout",
        ("S", "[k, m, n] : 0 <= k < K and 0 <= m < M and 0 <= n < N", "[k, m, n]", "O[m, n] += W[k, m] * X[k, n]"),
        params="M, N, K",
        reassociate=True,
    )


@pytest.mark.parametrize(
    ("scop", "sizes"),
    [
        (elementwise(), {"N": 512, "M": 2048}),
        (elementwise(), {"N": 128, "M": 640}),
        (contraction(), {"M": 256, "N": 512, "K": 384}),
    ],
)
def test_busy_times_are_the_simulators(scop: Scop, sizes: dict[str, int]) -> None:
    """With full tiles only, every engine is busy for as long as the model says; all bytes are counted."""
    compiled = compile(scop, at=sizes)
    (kernel,) = kernels(compiled.unit.product("mapping", ProgramMapping).nodes)
    assert all(p.through is None for p in kernel.placements)
    result = simulate(compiled.program, TRN2, None, sizes, timing_only=True)
    cost = kernel_cost(TRN2, recounted(kernel, TRN2), ())
    for engine, ns in cost.busy_ns.items():
        assert result.busy_ns[engine] == pytest.approx(ns), engine
    moved = 0
    for p in kernel.placements:
        if isinstance(p.term, Access):
            times = prod(loop.trips_hint for loop in kernel.loops[: p.depth])
            ways = 2 if p.direction == "update" else 1
            moved += ways * round(times * prod(s.size for s in p.spans) * 4)
    assert result.hbm_bytes == moved


@pytest.mark.parametrize("name", ["matmul", "softmax", "layer-norm", "jacobi-2d", "max-pool", "swiglu"])
def test_estimates_are_of_the_right_size(name: str) -> None:
    """Within a factor of three of the simulated time: good enough to rank, and watched so that it stays so."""
    (workload,) = (w for w in SUITES["main"] if w.name == name)
    compiled = compile(workload.scop(), at=workload.sizes)
    simulated = simulate(compiled.program, TRN2, None, workload.sizes, timing_only=True, detect_races=False).time_ns
    estimated = compiled.unit.product("estimated_time_ns", float)
    assert 1 / 3 <= estimated / simulated <= 3, estimated / simulated
