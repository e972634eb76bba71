"""Loops, guards and bounds of the walk against plain enumeration, the trace, and speed."""

from __future__ import annotations

import itertools
import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyopt.errors import InputError
from polyopt.ir.program import Buffer, Instr, Loop, Program
from polyopt.machine import machine
from polyopt.sets import Affine, Constraint, affine, interval, maximum, minimum, select, var
from polyopt.simulator import chrome_trace, simulate
from polyopt.simulator._affine import grid_value, source, upper_bound
from tests.unit.simulator.programs import instr, loop, matmul, program, view

TRN2 = machine("trn2")
i, j, N = var("i"), var("j"), var("N")
CELL = [Buffer("x", "sbuf", (1, 100), "float32")]


def mark(at: Affine, **more: Any) -> Instr:
    return instr(
        "mark",
        "memset",
        "vector",
        (("f", more.pop("extent", 1)),),
        {"O": view("x", (0, at), {"f": (0, 1)})},
        s0=1.0,
        **more,
    )


def visited(p: Program, **sizes: int) -> list[tuple[int, ...]]:
    result = simulate(p, TRN2, None, sizes, timing_only=True, keep_events=True)
    return [tuple(v for _, v in e.at) for e in result.events]


@given(lower=st.integers(-3, 4), upper=st.integers(-3, 6), step=st.sampled_from([-3, -2, -1, 1, 2, 3]))
def test_loop_ranges(lower: int, upper: int, step: int) -> None:
    p = program([], CELL, [loop("i", upper, mark(i + 20), lower=lower, step=step)])
    assert visited(p) == [(v,) for v in range(lower, upper, step)]


@given(n=st.integers(0, 9))
def test_quasi_affine_bounds_and_guards(n: int) -> None:
    inner = mark(j + 10, guards=(Constraint(j - i // 2), Constraint(i % 3 - 1, True)))
    p = program(
        [],
        CELL,
        [loop("i", minimum(N, 7), loop("j", maximum(i, 3), inner, lower=select([Constraint(i - 4)], 1, 0)))],
        ("N",),
    )
    expected = [(a, b) for a in range(min(n, 7)) for b in range(int(a >= 4), max(a, 3)) if b >= a // 2 and a % 3 == 1]
    assert visited(p, N=n) == expected


def test_empty_lanes_are_no_instruction() -> None:
    p = program([], CELL, [loop("i", 5, mark(i * 0, extent=i - 2))])
    assert visited(p) == [(3,), (4,)]
    assert visited(program([], CELL, [mark(affine(0), extent=0)])) == []
    assert visited(program([], CELL, [loop("i", 3)])) == []


def test_many_nested_loops() -> None:
    """More loops than Python nests: the generated code goes into inner functions."""
    depth = 33
    body: Instr | Loop = mark(sum((var(f"v{k}") for k in range(depth)), affine(0)))
    for k in reversed(range(depth)):
        body = loop(f"v{k}", 2 if k % 11 == 0 else 1, body)
    assert len(visited(program([], CELL, [body]))) == 8


def test_trace_is_json_with_named_threads() -> None:
    sizes = {"M": 5, "N": 9, "K": 5}
    result = simulate(matmul(), TRN2, None, sizes, timing_only=True, keep_events=True)
    trace = json.loads(json.dumps(chrome_trace(result)))
    complete = [e for e in trace["traceEvents"] if e["ph"] == "X"]
    names = {e["tid"]: e["args"]["name"] for e in trace["traceEvents"] if e["name"] == "thread_name"}
    assert len(complete) == result.instruction_count
    assert {names[e["tid"]] for e in complete} == {"tensor", "vector", "load0", "load1", "store0"}
    assert max(e["ts"] + e["dur"] for e in complete) == pytest.approx(result.time_ns / 1e3)
    first = complete[0]
    assert (first["name"], first["cat"], first["args"]) == (
        "load_a",
        "dma",
        {"statement": "S", "mo": 0, "no": 0, "ko": 0},
    )
    with pytest.raises(InputError, match="kept no events"):
        chrome_trace(simulate(matmul(), TRN2, None, sizes, timing_only=True))


def test_engine_events_do_not_overlap() -> None:
    result = simulate(matmul(), TRN2, None, {"M": 20, "N": 40, "K": 16}, timing_only=True, keep_events=True)
    for queue in ("tensor", "vector"):
        spans = sorted((e.start_ns, e.end_ns) for e in result.events if e.queue == queue)
        assert all(a[1] <= b[0] for a, b in itertools.pairwise(spans))


def test_names_are_no_code() -> None:
    """Loop variables and parameters never reach the generated source."""
    name = "__import__('os').abort()"
    p = program([], CELL, [Loop(name, affine(0), affine(2), (mark(var(name)),))])
    assert visited(p) == [(0,), (1,)]


EXPRESSIONS = [
    i * 128 + minimum(128, N - i * 128),
    (i * 3 - j) // 4 - (N // 2) % 3,
    maximum(i, j, 2) * -2 + select([Constraint(i - j)], i, N),
    minimum(i, maximum(j, 1)) - i // 3 * 5,
]


@given(a=st.integers(-9, 9), b=st.integers(-9, 9), n=st.integers(0, 300), k=st.integers(0, 3))
def test_expressions_have_one_value(a: int, b: int, n: int, k: int) -> None:
    expr, env = EXPRESSIONS[k], {"i": a, "j": b, "N": n}
    expected = expr.evaluate(env)
    assert eval(source(expr, {"i": "x", "j": "y", "N": "z"}), {"x": a, "y": b, "z": n}) == expected
    assert int(grid_value(expr, env)) == expected
    ranges = {"i": (-9, 9), "j": (-9, 9), "N": (0, 300)}
    top = upper_bound(expr, ranges)
    assert top is not None and expected <= top <= (interval(expr, ranges)[1] or 0)


def test_tail_is_proved_inside() -> None:
    tail = i * 128 + minimum(128, affine(1000) - i * 128) - 1
    assert upper_bound(tail, {"i": (0, 7)}) == 999


@pytest.mark.slow
def test_speed() -> None:
    """At least 100 000 instructions a second; the best of three runs."""
    best = 0.0
    for _ in range(3):
        begin = time.perf_counter()
        result = simulate(matmul(), TRN2, None, {"M": 128, "N": 512, "K": 128}, timing_only=True)
        best = max(best, result.instruction_count / (time.perf_counter() - begin))
    assert best >= 100_000
