"""Modelled time, worked out by hand from the figures of trn2; the shared data movers against a slot-by-slot model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polyopt.ir.program import Buffer, Program, View, Wait
from polyopt.machine import machine
from polyopt.sets import Constraint, var
from polyopt.simulator import SimResult, simulate
from polyopt.simulator._timing import Pool
from tests.unit.simulator.programs import (
    ROWS,
    change,
    instr,
    load,
    loop,
    matmul,
    pointwise,
    program,
    store,
    tensor,
    view,
)

TRN2 = machine("trn2")
START, LATENCY, SEMAPHORE, ROW = 2000.0, 1300.0, 100.0, 104.0


def timed(p: Program, **sizes: int) -> SimResult:
    return simulate(p, TRN2, None, sizes, timing_only=True)


def square(array: str) -> View:
    return view(array, (0, 0), ROWS)


def test_chain() -> None:
    """load 8 rows of 64 B; activation max(64, 16) + 60 cycles at 1.2 GHz; store."""
    f = instr(
        "f", "activation", "scalar", (("p", 8), ("f", 16)), {"O": square("y"), "X": square("x")}, form=4, func="exp"
    )
    result = timed(pointwise(f))
    loaded = START + ROW + LATENCY
    computed = loaded + SEMAPHORE + 124 / 1.2
    stored = computed + SEMAPHORE + ROW + LATENCY
    assert result.time_ns == pytest.approx(stored)
    assert [(s.site, s.instances) for s in result.critical_path] == [("load_x", 1), ("save", 1), ("f", 1)]
    assert sum(s.ns for s in result.critical_path) == pytest.approx(stored)
    assert result.busy_ns["scalar"] == pytest.approx(124 / 1.2)
    assert result.busy_ns["load0"] == result.busy_ns["store0"] == ROW
    assert result.transfer_ns == 2 * ROW
    assert result.bottleneck == "transfer"
    assert (result.hbm_read_bytes, result.hbm_written_bytes, result.hbm_bytes) == (512, 512, 1024)
    assert result.tensor_read_bytes == {"X": 512, "Y": 0}
    assert result.peak_bytes == {"sbuf": (512 + 64) * 128, "psum": 0}
    assert result.instructions == {"dma": 2, "activation": 1}
    assert result.busy_fraction()["scalar"] == pytest.approx(124 / 1.2 / stored)


ENGINE_CYCLES = {
    "matmul": (("k", 16), ("m", 32), ("n", 100), "tensor", 100 * 4 / 2.4),
    "matmul of few columns": (("k", 16), ("m", 32), ("n", 3), "tensor", 64 * 4 / 2.4),
}


@pytest.mark.parametrize(("k", "m", "n", "queue", "ns"), ENGINE_CYCLES.values(), ids=ENGINE_CYCLES.keys())
def test_engine_time(k: Any, m: Any, n: Any, queue: str, ns: float) -> None:
    views = {
        "O": view("o", (0, 0), {"m": (1, 0), "n": (0, 1)}),
        "W": view("w", (0, 0), {"k": (1, 0), "m": (0, 1)}),
        "X": view("x", (0, 0), {"k": (1, 0), "n": (0, 1)}),
    }
    buffers = [
        Buffer("o", "psum", (128, 512), "float32"),
        Buffer("w", "sbuf", (128, 128), "float32"),
        Buffer("x", "sbuf", (128, 512), "float32", 1, 512),
    ]
    once = instr("mm", "matmul", queue, (k, m, n), views, accumulate=False)
    result = timed(program([], buffers, [loop("i", 5, once)]))
    assert result.time_ns == pytest.approx(START + 5 * ns)
    assert result.bottleneck == queue
    assert result.multiply_adds["tensor"] == 5 * k[1] * m[1] * n[1]
    assert result.instruction_count == 5


def transfer_ns(
    shapes: Mapping[str, tuple[int, ...]],
    lanes: Any,
    target: View,
    source: View,
    dtypes: tuple[str, str] = ("float32", "float32"),
    **more: Any,
) -> float:
    """How long one transfer occupies the data movers.  Names in upper case are tensors, others buffers."""
    tensors, buffers = [], []
    for k, (name, shape) in enumerate(shapes.items()):
        if name.isupper():
            tensors.append(tensor(name, shape, "inout", dtypes[k]))
        else:
            buffers.append(Buffer(name, "sbuf", shape, dtypes[k]))
    moved = instr("t", "dma", "load0", lanes, {"O": target, "A": source}, **more)
    result = timed(program(tensors, buffers, [moved]))
    assert result.time_ns == pytest.approx(START + result.transfer_ns + LATENCY)
    return result.transfer_ns


def rows(number: int, row_bytes: float) -> float:
    return -(-number // 16) * max(ROW, row_bytes / 23.0)


BOX = (("p", 128), ("f", 64))


def test_rows_never_cross_partitions() -> None:
    shapes = {"T": (128, 64), "x": (128, 64)}
    assert transfer_ns(shapes, BOX, square("x"), square("T")) == pytest.approx(rows(128, 256))


def test_rows_merge_in_device_memory() -> None:
    both = {"T": (128, 64), "U": (128, 64)}
    bound = 2 * 128 * 64 * 4 / 362.5
    assert transfer_ns(both, BOX, square("U"), square("T")) == pytest.approx(max(bound, rows(1, 128 * 64 * 4)))
    wide = {"T": (128, 65), "U": (128, 64)}
    assert transfer_ns(wide, BOX, square("U"), square("T")) == pytest.approx(max(bound, rows(128, 256)))


def test_long_rows_are_bound_by_bandwidth() -> None:
    shapes = {"T": (128, 4096), "x": (128, 4096)}
    assert transfer_ns(shapes, (("p", 128), ("f", 4096)), square("x"), square("T")) == pytest.approx(
        max(rows(128, 4 * 4096), 128 * 4096 * 4 / 362.5)
    )


def test_single_elements_are_rows() -> None:
    shapes = {"T": (64, 128), "x": (128, 64)}
    turned = view("T", (0, 0), {"p": (0, 1), "f": (1, 0)})
    assert transfer_ns(shapes, BOX, square("x"), turned) == pytest.approx(rows(128 * 64, 4))


def test_rows_of_a_cast_have_the_larger_type() -> None:
    shapes = {"T": (16, 2048), "x": (16, 2048)}
    ns = transfer_ns(shapes, (("p", 16), ("f", 2048)), square("x"), square("T"), ("bfloat16", "float32"))
    assert ns == pytest.approx(rows(16, 2048 * 4))


def test_inner_lanes_merge_inside_a_partition() -> None:
    shapes = {"T": (4, 8, 16), "x": (4, 8, 16)}
    box = (("p", "p", 4), ("a", "f", 8), ("b", "f", 16))
    steps = {"p": (1, 0, 0), "a": (0, 1, 0), "b": (0, 0, 1)}
    ns = transfer_ns(shapes, box, view("x", (0, 0, 0), steps), view("T", (0, 0, 0), steps))
    assert ns == pytest.approx(rows(4, 8 * 16 * 4))


def test_masked_rows_are_counted() -> None:
    """A triangle has a row per partition, of 1 to 64 elements; a band in a contiguous box is cut into runs."""
    triangle = (Constraint(var("p") - var("f")),)
    shapes = {"T": (64, 64), "x": (64, 64)}
    ns = transfer_ns(shapes, (("p", 64), ("f", 64)), square("x"), square("T"), mask=triangle)
    assert ns == pytest.approx(rows(64, 0))
    flat = {"T": (64, 64), "U": (64, 64)}
    left = (Constraint(var("f") * -1 + 31),)
    assert transfer_ns(flat, (("p", 64), ("f", 64)), square("U"), square("T"), mask=left) == pytest.approx(
        rows(64, 128)
    )
    none = (Constraint(var("f") - 64),)
    assert transfer_ns(flat, (("p", 64), ("f", 64)), square("U"), square("T"), mask=none) == 0


def test_gathered_rows_do_not_merge() -> None:
    by = view("I", (0,), {"p": (1,)})
    source = view("T", (0, 0), {"f": (0, 1)}, indirect=((0, by),))
    moved = instr("t", "dma", "load0", BOX, {"O": square("U"), "A": source})
    tensors = [tensor("T", (9, 64), "input"), tensor("U", (128, 64), "output"), tensor("I", (128,), "input", "int32")]
    result = timed(program(tensors, [], [moved]))
    assert result.transfer_ns == pytest.approx(rows(128, 256))
    assert result.tensor_read_bytes == {"T": 128 * 256, "U": 0, "I": 512}


def test_queues_share_the_data_movers() -> None:
    """Two loads at once take turns, a wait costs the semaphore, the latency overlaps with the next transfer."""
    buffers = [Buffer("a", "sbuf", (128, 64), "float32"), Buffer("b", "sbuf", (128, 64), "float32", 1, 256)]
    tensors = [tensor("T", (128, 64), "input")]
    first = load("first", "a", square("T"), 128, 64)
    second = load("second", "b", square("T"), 128, 64, queue="load1")
    p = program(tensors, buffers, [first, second])
    each = rows(128, 256)
    result = timed(p)
    assert result.time_ns == pytest.approx(START + 2 * each + LATENCY)
    assert [s.site for s in result.critical_path] == ["first", "second"]
    waited = change(p, "second", waits=(Wait("first"),))
    assert timed(waited).time_ns == pytest.approx(START + 2 * each + 2 * LATENCY + SEMAPHORE)


def test_later_work_fills_idle_movers() -> None:
    """A store that waits for a slow engine does not keep a later load of another queue waiting."""
    f = instr("slow", "general", "gpsimd", (("p", 1000),), {"O": view("Z", (0,))}, value=_one())
    late = store("late", square("Y"), "a", 128, 64, waits=(Wait("slow"),))
    early = load("early", "b", square("T"), 128, 64)
    buffers = [Buffer("a", "sbuf", (128, 64), "float32"), Buffer("b", "sbuf", (128, 64), "float32", 1, 256)]
    tensors = [tensor("T", (128, 64), "input"), tensor("Y", (128, 64), "output"), tensor("Z", (1,), "output")]
    p = program(tensors, buffers, [f, late, early])
    result = simulate(p, TRN2, None, {}, timing_only=True, keep_events=True)
    ends = {e.site: e.end_ns for e in result.events}
    assert ends["early"] == pytest.approx(START + rows(128, 256) + LATENCY)
    general = (150 + 64 * 1000 + 60) / 1.2
    assert ends["slow"] == pytest.approx(START + general)
    assert result.time_ns == ends["late"] == pytest.approx(START + general + SEMAPHORE + rows(128, 256) + LATENCY)
    assert result.general_ns == pytest.approx(general)
    assert result.bottleneck == "gpsimd"


def _one() -> Any:
    from polyopt.ir.expr import Const

    return Const(1.0)


def test_waits_leave_out_the_last_iterations() -> None:
    """With two copies the load of iteration i starts after the computation of iteration i - 2."""
    square_t = view("T", (0, var("i") * 64), ROWS)
    box = (("p", 128), ("f", 64))

    def pipeline(copies: int) -> Program:
        copy = var("i")
        bring = load("bring", "a", square_t, 128, 64, copy=copy, waits=(Wait("use", "i", copies),))
        use = instr(
            "use",
            "activation",
            "scalar",
            box,
            {"O": view("o", (0, 0), ROWS), "X": view("a", (0, 0), ROWS, copy=copy)},
            form=4,
            func="exp",
            waits=(Wait("bring"),),
        )
        buffers = [
            Buffer("a", "sbuf", (128, 64), "float32", copies, 0, 256),
            Buffer("o", "sbuf", (128, 64), "float32", 1, 2048),
        ]
        return program([tensor("T", (128, 64 * 6), "input")], buffers, [loop("i", 6, bring, use)])

    each, work = rows(128, 256), 124 / 1.2
    turn = each + LATENCY + SEMAPHORE + work
    assert timed(pipeline(1)).time_ns == pytest.approx(START + 6 * turn + 5 * SEMAPHORE)
    done: list[float] = []
    free = START
    for i in range(6):
        begin = max(free, done[i - 2] + SEMAPHORE if i >= 2 else 0.0)
        free = begin + each
        done.append(max(free + LATENCY + SEMAPHORE, done[-1] if done else 0.0) + work)
    assert timed(pipeline(2)).time_ns == pytest.approx(done[-1])
    times = [timed(pipeline(c)).time_ns for c in (1, 2, 3, 4, 6)]
    assert times == sorted(times, reverse=True)


def test_time_with_and_without_values_is_the_same() -> None:
    sizes = {"M": 9, "N": 25, "K": 13}
    rng = np.random.default_rng(0)
    inputs = {"A": rng.standard_normal((13, 9)), "B": rng.standard_normal((13, 25))}
    a, b = simulate(matmul(), TRN2, inputs, sizes), timed(matmul(), **sizes)
    assert a.time_ns == b.time_ns
    assert a.busy_ns == b.busy_ns
    assert a.critical_path == b.critical_path
    assert sum(s.ns for s in a.critical_path) == pytest.approx(a.time_ns)
    assert b.outputs == {} and b.races is None


@settings(max_examples=30)
@given(m=st.integers(1, 12), n=st.integers(1, 30), k=st.integers(1, 14))
def test_bounds_that_always_hold(m: int, n: int, k: int) -> None:
    r = timed(matmul(), M=m, N=n, K=k)
    assert r.time_ns >= max(*r.busy_ns.values(), r.transfer_ns, r.hbm_bytes / 362.5)
    assert r.multiply_adds["tensor"] == m * n * k
    assert r.tensor_written_bytes["C"] == 4 * m * n
    assert r.tensor_read_bytes["A"] == 4 * m * k * -(-n // 8)
    assert r.tensor_read_bytes["B"] == 4 * n * k * -(-m // 4)


def test_empty_program() -> None:
    r = timed(program([], [], []))
    assert (r.time_ns, r.instruction_count, r.bottleneck, r.critical_path) == (START, 0, "", ())


@settings(max_examples=200)
@given(work=st.lists(st.tuples(st.integers(0, 30), st.integers(0, 6)), max_size=25))
def test_pool_fills_the_earliest_idle_slots(work: list[tuple[int, int]]) -> None:
    pool = Pool(0.0)
    slots: dict[int, int] = {}
    for who, (ready, ns) in enumerate(work):
        begin, end, waited = pool.take(float(ready), float(ns), who)
        mine = [t for t in range(ready, ready + 400) if t not in slots][:ns]
        if not mine:
            assert (begin, end, waited) == (ready, ready, -1)
            continue
        assert (begin, end) == (mine[0], mine[-1] + 1)
        assert waited == (slots[mine[0] - 1] if mine[0] > ready else -1)
        slots.update(dict.fromkeys(mine, who))
    assert pool.busy_ns == len(slots)
