"""Values of compute instructions and transfers against numpy and against a loop over lane points."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polyopt.errors import ProgramError
from polyopt.ir.program import Buffer, Program, Wait
from polyopt.ir.standins import FIELD, STANDINS, canonical, standin, standin_constant
from polyopt.machine import (
    Body,
    InstructionSpec,
    OperandRef,
    OpRef,
    Pattern,
    ScalarRef,
    machine,
    operand_refs,
    scalar_refs,
)
from polyopt.sets import Constraint, affine, var
from polyopt.simulator import SimResult, simulate
from polyopt.simulator._functions import contract
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
BOX = (("p", 8), ("f", 16))


def at_origin(array: str) -> Any:
    return view(array, (0, 0), ROWS)


def run(p: Program, mode: str = "float", **inputs: Any) -> SimResult:
    result = simulate(p, TRN2, inputs, {}, mode=mode)
    assert result.races == ()
    return result


def normal(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


@settings(max_examples=25)
@given(m=st.integers(1, 11), n=st.integers(1, 18), k=st.integers(1, 10))
def test_matmul_with_tails(m: int, n: int, k: int) -> None:
    a, b = normal(k, m), normal(k, n, seed=1)
    result = simulate(matmul(), TRN2, {"A": a, "B": b}, {"M": m, "N": n, "K": k})
    assert result.races == ()
    np.testing.assert_allclose(result.outputs["C"], a.T @ b, rtol=1e-5, atol=1e-5)
    assert result.multiply_adds["tensor"] == m * n * k
    assert result.tensor_engine_fraction("tensor") == 1


def test_matmul_rounds_inputs_and_accumulates_wider() -> None:
    a, b = normal(9, 5), normal(9, 11, seed=1)
    result = simulate(matmul("bfloat16"), TRN2, {"A": a, "B": b}, {"M": 5, "N": 11, "K": 9})
    rounded = a.astype(ml_dtypes.bfloat16).astype(np.float32).T @ b.astype(ml_dtypes.bfloat16).astype(np.float32)
    np.testing.assert_allclose(result.outputs["C"], rounded, rtol=1e-5, atol=1e-5)


def test_exact_mode_is_exact() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.integers(-3, 4, (9, 5)), rng.integers(-3, 4, (9, 11))
    sizes = {"M": 5, "N": 11, "K": 9}
    for factor in (1, 2**27, 2**40):
        result = simulate(matmul("bfloat16"), TRN2, {"A": a * factor, "B": b * factor}, sizes, mode="exact")
        assert (result.outputs["C"] == canonical(a.T.astype(object) @ b * factor**2)).all()
        assert result.races == ()


FUNCTIONS: dict[str, Callable[[float], float]] = {
    "exp": math.exp,
    "log": lambda x: math.log(x) if x > 0 else math.nan,
    "sin": math.sin,
    "cos": math.cos,
    "sqrt": lambda x: math.sqrt(x) if x >= 0 else math.nan,
    "rsqrt": lambda x: 1 / math.sqrt(x) if x > 0 else math.nan,
    "tanh": math.tanh,
    "sigmoid": lambda x: 1 / (1 + math.exp(-x)),
    "erf": math.erf,
    "gelu": lambda x: 0.5 * x * (1 + math.erf(x / math.sqrt(2))),
    "gelu_tanh": lambda x: 0.5 * x * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
    "silu": lambda x: x / (1 + math.exp(-x)),
    "relu": lambda x: max(x, 0.0),
    "abs": abs,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name: str) -> None:
    f = instr("f", "activation", "scalar", BOX, {"O": at_origin("y"), "X": at_origin("x")}, form=4, func=name)
    x = np.linspace(-6, 6, 128, dtype=np.float32).reshape(8, 16)
    expected = np.vectorize(FUNCTIONS[name])(x.astype(np.float64))
    np.testing.assert_allclose(run(pointwise(f), X=x).outputs["Y"], expected, rtol=3e-6, atol=1e-6)


def test_functions_at_the_ends() -> None:
    x = np.zeros((8, 16), np.float32)
    x[0, :4] = [np.inf, -np.inf, 1e30, -1e30]
    for name, ends in (("erf", [1, -1, 1, -1]), ("sigmoid", [1, 0, 1, 0]), ("tanh", [1, -1, 1, -1])):
        f = instr("f", "activation", "scalar", BOX, {"O": at_origin("y"), "X": at_origin("x")}, form=4, func=name)
        assert (run(pointwise(f), X=x).outputs["Y"][0, :4] == ends).all()


# -- every compute specification against a loop over lane points -----------------------------------------------------
EXTENTS = {"k": 3, "m": 4, "n": 5, "p": 4, "f": 5, "r": 3}
FOLD: dict[str, Callable[..., Any]] = {
    "+": lambda a, b: a + b,
    "*": lambda a, b: a * b,
    "min": min,
    "max": max,
    "-": lambda a, b: a - b,
    "/": lambda a, b: a / b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "and": lambda a, b: bool(a) and bool(b),
    "or": lambda a, b: bool(a) or bool(b),
    "**": lambda a, b: abs(a) ** b,
    "neg": lambda a: -a,
    "not": lambda a: not a,
    "floor": math.floor,
    "select": lambda c, a, b: a if c else b,
}


def cases() -> list[tuple[str, int, str]]:
    found = []
    for spec in TRN2.instructions:
        if spec.kind == "compute" and spec.name not in ("affine_select", "iota", "transpose"):
            for form, body in enumerate(spec.forms):
                choices = sorted({c for o in slots(body.value) for c in o.choices} | set(body.combine))
                found += [(spec.name, form, c) for c in choices or [""]]
    return found


def slots(pattern: Pattern) -> list[OpRef]:
    if not isinstance(pattern, OpRef):
        return []
    return [*([pattern] if pattern.slot else []), *(s for a in pattern.args for s in slots(a))]


def evaluate(
    pattern: Pattern,
    at: dict[str, int],
    arrays: dict[str, Any],
    scalars: dict[str, Any],
    op: str,
    table: dict[str, Any],
) -> Any:
    if isinstance(pattern, OperandRef):
        return arrays[pattern.name][tuple(at[n] for n in pattern.lanes)].item()
    if isinstance(pattern, ScalarRef):
        return scalars[pattern.name]
    assert isinstance(pattern, OpRef)
    args = [evaluate(a, at, arrays, scalars, op, table) for a in pattern.args]
    return table[pattern.op or op](*args)


def expected_of(
    body: Body,
    arrays: dict[str, Any],
    scalars: dict[str, Any],
    op: str,
    shape: tuple[int, ...],
    table: dict[str, Any],
) -> Any:
    """What the body says, one lane point after another, in Python numbers."""
    lanes = list(dict.fromkeys([*body.target.lanes, *(n for r in operand_refs(body.value) for n in r.lanes)]))
    result: dict[tuple[int, ...], Any] = {}
    for point in itertools.product(*(range(EXTENTS[n]) for n in lanes)):
        at = dict(zip(lanes, point, strict=True))
        value = evaluate(body.value, at, arrays, scalars, op, table)
        cell = tuple(at[n] for n in body.target.lanes)
        combine = body.combine[0] if len(body.combine) == 1 else op
        result[cell] = FOLD[combine](result[cell], value) if cell in result else value
    out = np.zeros(shape, object)
    for cell, value in result.items():
        out[cell] = value
    return out


def one_instruction(
    spec: InstructionSpec, form: int, op: str, scalar_values: dict[str, Any]
) -> tuple[Program, dict[str, tuple[int, ...]]]:
    """Load all operands, run the instruction once, store the result; the operands' shapes."""
    body = spec.forms[form]
    refs = {r.name: r for r in operand_refs(body.value)}
    lanes = list(dict.fromkeys([*body.target.lanes, *(n for r in refs.values() for n in r.lanes)]))
    shapes = {n: tuple(EXTENTS[k] for k in r.lanes) for n, r in refs.items()}
    target = tuple(EXTENTS[k] for k in body.target.lanes)
    buffers, tensors, loads, operands = [], [], [], {}

    def steps(own: tuple[str, ...]) -> dict[str, tuple[int, ...]]:
        return {n: tuple(int(k == a) for a in range(len(own))) for k, n in enumerate(own)}

    memory = spec.operand(body.target.name).memories[0]
    buffers.append(Buffer("o", memory, target, "float32"))
    operands[body.target.name] = view("o", (0,) * len(target), steps(body.target.lanes))
    for k, (name, ref) in enumerate(refs.items()):
        buffers.append(Buffer(name.lower(), "sbuf", shapes[name], "float32", 1, 1024 * (k + 1), 1024))
        tensors.append(tensor(name, shapes[name], "input"))
        moved = view(name.lower(), (0,) * len(ref.lanes), steps(ref.lanes))
        box = [(n, EXTENTS[n]) for n in ref.lanes]
        loads.append(
            instr(
                f"load_{name}",
                "dma",
                "load0",
                box,
                {"O": moved, "A": view(name, (0,) * len(ref.lanes), steps(ref.lanes))},
            )
        )
        operands[name] = moved
    chosen: dict[str, Any] = {s.slot: op for s in slots(body.value)}
    if body.combine_slot:
        chosen[body.combine_slot] = op
    waits = [Wait(i.site) for i in loads]
    accumulate: dict[str, Any] = {"accumulate": False} if spec.accumulate == "flag" else {}
    f = instr(
        "f",
        spec.name,
        spec.engines[0],
        [(n, EXTENTS[n]) for n in lanes],
        operands,
        waits=waits,
        form=form,
        **chosen,
        **scalar_values,
        **accumulate,
    )
    tensors.append(tensor("Y", target, "output"))
    last = [f]
    source = "o"
    if memory == "psum":
        buffers.append(Buffer("s", "sbuf", target, "float32", 1, 0, 0))
        last.append(
            instr(
                "evict",
                "copy",
                "vector",
                (("p", target[0]), ("f", target[1])),
                {"O": at_origin("s"), "A": at_origin("o")},
                waits=[Wait("f")],
            )
        )
        source = "s"
    last.append(store("save", at_origin("Y"), source, *target, waits=[Wait(last[-1].site)]))
    return program(tensors, buffers, [*loads, *last]), shapes


@pytest.mark.parametrize(("name", "form", "op"), cases())
def test_specification(name: str, form: int, op: str) -> None:
    spec = TRN2.spec(name)
    body = spec.forms[form]
    scalars: dict[str, Any] = {s.name: v for s, v in zip(scalar_refs(body.value), (1.5, -0.25), strict=False)}
    p, shapes = one_instruction(spec, form, op, scalars)
    rng = np.random.default_rng(3)
    arrays: dict[str, Any] = {
        n: np.where(rng.random(s) < 0.2, 0.5, rng.uniform(0.25, 2, s)).astype(np.float32) for n, s in shapes.items()
    }
    target = tuple(EXTENTS[k] for k in body.target.lanes)
    expected = expected_of(body, arrays, scalars, op, target, {**FUNCTIONS, **FOLD}).astype(float)
    np.testing.assert_allclose(run(p, **arrays).outputs["Y"], expected, rtol=1e-5, atol=1e-6)


def in_field(f: Callable[..., Any]) -> Callable[..., Any]:
    """The same on representatives."""
    return lambda *args: canonical(f(*args))


STANDING_IN: dict[str, Callable[..., Any]] = {op: partial(standin, op) for op in STANDINS}
PLAIN: dict[str, Callable[..., Any]] = {**FOLD, **STANDING_IN, "abs": abs, "relu": lambda x: max(x, 0)}
EXACT = {op: in_field(f) for op, f in PLAIN.items()}


@pytest.mark.parametrize("size", [3, FIELD // 2, 2**40], ids=["small", "whole field", "beyond the field"])
@pytest.mark.parametrize(("name", "form", "op"), cases())
def test_specification_in_exact_mode(name: str, form: int, op: str, size: int) -> None:
    """Bit for bit what Python integers modulo FIELD and the stand-ins give."""
    spec = TRN2.spec(name)
    body = spec.forms[form]
    scalars: dict[str, Any] = {s.name: v for s, v in zip(scalar_refs(body.value), (1.5, -0.25), strict=False)}
    p, shapes = one_instruction(spec, form, op, scalars)
    rng = np.random.default_rng(4)
    arrays: dict[str, Any] = {n: rng.integers(-size, size + 1, s) for n, s in shapes.items()}
    target = tuple(EXTENTS[k] for k in body.target.lanes)
    literals = {n: standin_constant(v) for n, v in scalars.items()}
    representatives = {n: canonical(a) for n, a in arrays.items()}
    expected = canonical(expected_of(body, representatives, literals, op, target, EXACT))
    found = run(p, "exact", **arrays).outputs["Y"]
    assert found.dtype == np.int64
    assert (found.astype(object) == expected).all()


def test_scalar_operand_is_one_value_per_partition() -> None:
    f = instr(
        "f",
        "tensor_scalar",
        "vector",
        BOX,
        {"O": at_origin("y"), "A": at_origin("x"), "s0": view("z", (0, 3), {"p": (1, 0)})},
        form=1,
        op0="-",
    )
    x, z = normal(8, 16), normal(8, 16, seed=1)
    assert (run(pointwise(f, inputs=("x", "z")), X=x, Z=z).outputs["Y"] == x - z[:, 3:4]).all()


def test_several_lanes_of_one_role() -> None:
    lanes = (("p", "p", 8), ("f0", "f", 4), ("f1", "f", 4))
    o = view("y", (0, 0), {"p": (1, 0), "f0": (0, 1), "f1": (0, 4)})
    a = view("x", (0, 0), {"p": (1, 0), "f0": (0, 4), "f1": (0, 1)})
    f = instr("f", "copy", "vector", lanes, {"O": o, "A": a})
    x = normal(8, 16)
    expected = x.reshape(8, 4, 4).transpose(0, 2, 1).reshape(8, 16)
    assert (run(pointwise(f), X=x).outputs["Y"] == expected).all()


def test_repeated_terms_of_a_reduction_count() -> None:
    """A view that does not move along a reduced lane is summed up as often as the lane is long."""
    o, a = view("y", (0, 0), {"p": (1, 0)}), view("x", (0, 2), {"p": (1, 0)})
    f = instr("f", "tensor_reduce", "vector", (("p", 8), ("f", 1), ("r", 5)), {"O": o, "A": a}, op="+")
    fill = instr("fill", "memset", "vector", BOX, {"O": at_origin("y")}, s0=0.0)
    p = pointwise(f)
    p = program(p.tensors, p.buffers, (fill, *p.body))
    x = normal(8, 16)
    np.testing.assert_allclose(run(p, X=x).outputs["Y"][:, 0], 5 * x[:, 2], rtol=1e-6)


def test_reversed_views() -> None:
    f = instr("f", "copy", "vector", BOX, {"O": at_origin("y"), "A": view("x", (0, 15), {"p": (1, 0), "f": (0, -1)})})
    x = normal(8, 16)
    assert (run(pointwise(f), X=x).outputs["Y"] == x[:, ::-1]).all()


def test_affine_select_and_iota() -> None:
    below = Constraint(var("p") - var("f"))
    f = instr("f", "affine_select", "gpsimd", BOX, {"O": at_origin("y"), "A": at_origin("x")}, mask=(below,), s0=-1.0)
    x = normal(8, 16)
    expected = np.where(np.arange(8)[:, None] >= np.arange(16), x, -1)
    assert (run(pointwise(f), X=x).outputs["Y"] == expected).all()
    g = instr("g", "iota", "gpsimd", BOX, {"O": at_origin("y")}, index=var("p") * 3 - var("f") // 2)
    expected = np.arange(8)[:, None] * 3 - np.arange(16) // 2
    assert (run(pointwise(g, result="int32"), X=x).outputs["Y"] == expected).all()


CASTS = {
    "float32 to bfloat16": (
        "float32",
        "bfloat16",
        [1.00390625, 3e38, -0.1],
        np.array([1.00390625, 3e38, -0.1], np.float32).astype(ml_dtypes.bfloat16),
    ),
    "float32 to float8": (
        "float32",
        "float8_e5m2",
        [1.1, -7.3, 1e9],
        np.array([1.1, -7.3, 1e9], np.float32).astype(ml_dtypes.float8_e5m2),
    ),
    "float32 to int8, towards zero and wrapped": ("float32", "int8", [1.9, -1.9, 300.5], [1, -1, 44]),
    "int32 to int8": ("int32", "int8", [127, 128, -129], [127, -128, 127]),
    "int32 to float32": ("int32", "float32", [2**24 + 1, -5, 0], [2**24, -5, 0]),
    "float32 to bool": ("float32", "bool", [0.0, -0.5, np.nan], [False, True, True]),
    "bool to float32": ("bool", "float32", [False, True, True], [0, 1, 1]),
    "int64 to int32": ("int64", "int32", [2**31, -(2**31) - 1, 7], [-(2**31), 2**31 - 1, 7]),
    "nan and infinity to int32": ("float32", "int32", [np.nan, np.inf, -np.inf], [0, 0, 0]),
}


@pytest.mark.parametrize(("source", "target", "values", "expected"), CASTS.values(), ids=CASTS.keys())
def test_casting_transfer(source: str, target: str, values: Any, expected: Any) -> None:
    move = instr(
        "move", "dma", "load0", (("f", 3),), {"O": view("Y", (0,), {"f": (1,)}), "A": view("X", (0,), {"f": (1,)})}
    )
    p = program([tensor("X", (3,), "input", source), tensor("Y", (3,), "output", target)], [], [move])
    out = run(p, X=np.array(values)).outputs["Y"]
    assert (out.astype(np.float64) == np.asarray(expected).astype(np.float64)).all()


def test_integers_are_exact() -> None:
    f = instr(
        "f", "tensor_tensor", "vector", BOX, {"O": at_origin("y"), "A": at_origin("x"), "B": at_origin("z")}, op="*"
    )
    x = np.full((8, 16), 2**20 + 1)
    p = pointwise(f, inputs=("x", "z"), dtype="int32", result="int32")
    assert (run(p, X=x, Z=x).outputs["Y"] == np.int64((2**20 + 1) ** 2).astype(np.int32)).all()


def test_masked_transfer_leaves_the_rest() -> None:
    """A window that reaches over the edge of X: only what is inside is read."""
    fill = instr("fill", "memset", "vector", (("p", 4), ("f", 6)), {"O": view("t", (0, 0), ROWS)}, s0=9.0)
    inside = (Constraint(var("f") - 1), Constraint(var("f") * -1 + 4), Constraint(var("p") * -1 + 2))
    pad = load("pad", "t", view("X", (0, -1), ROWS), 4, 6, mask=inside, waits=(Wait("fill"),))
    save = store("save", view("Y", (0, 0), ROWS), "t", 4, 6, waits=(Wait("pad"),))
    buffers = [Buffer("t", "sbuf", (4, 6), "float32")]
    p = program([tensor("X", (3, 4), "input"), tensor("Y", (4, 6), "output")], buffers, [fill, pad, save])
    x = normal(3, 4)
    assert (run(p, X=x).outputs["Y"] == np.pad(x, ((0, 1), (1, 1)), constant_values=9)).all()


def test_triangular_mask() -> None:
    triangle = (Constraint(var("p") - var("f")),)
    move = instr(
        "move", "dma", "load0", (("p", 5), ("f", 5)), {"O": at_origin("Y"), "A": at_origin("X")}, mask=triangle
    )
    p = program([tensor("X", (5, 5), "input"), tensor("Y", (5, 5), "output")], [], [move])
    x = normal(5, 5)
    assert (run(p, X=x).outputs["Y"] == np.tril(x)).all()


def test_gather_and_scatter() -> None:
    rows = view("I", (0,), {"p": (1,)})
    gather = instr(
        "gather",
        "dma",
        "load0",
        (("p", 6), ("f", 4)),
        {"O": at_origin("t"), "A": view("X", (0, 0), {"f": (0, 1)}, indirect=((0, rows),))},
    )
    scatter = instr(
        "scatter",
        "dma",
        "store0",
        (("p", 6), ("f", 4)),
        {"O": view("Y", (1, 0), {"f": (0, 1)}, indirect=((0, rows),)), "A": at_origin("t")},
        waits=(Wait("gather"),),
    )
    p = program(
        [tensor("X", (9, 4), "input"), tensor("I", (6,), "input", "int32"), tensor("Y", (10, 4), "output")],
        [Buffer("t", "sbuf", (6, 4), "float32")],
        [gather, scatter],
    )
    x, i = normal(9, 4), np.array([8, 0, 3, 1, 7, 2])
    expected = np.zeros((10, 4), np.float32)
    expected[i + 1] = x[i]
    assert (run(p, X=x, I=i).outputs["Y"] == expected).all()


def test_masked_gather() -> None:
    rows = view("I", (0,), {"p": (1,)})
    gather = instr(
        "gather",
        "dma",
        "load0",
        (("p", 6), ("f", 4)),
        {"O": at_origin("Y"), "A": view("X", (0, 0), {"f": (0, 1)}, indirect=((0, rows),))},
        mask=(Constraint(var("p") * -1 + 3),),
    )
    p = program(
        [tensor("X", (9, 4), "input"), tensor("I", (4,), "input", "int32"), tensor("Y", (6, 4), "output")], [], [gather]
    )
    x, i = normal(9, 4), np.array([8, 0, 3, 1])
    assert (run(p, X=x, I=i).outputs["Y"] == np.vstack([x[i], np.zeros((2, 4))])).all()


def test_masked_gather_of_one_cell() -> None:
    """Without lanes: the mask is all or nothing."""
    cell = view("X", (0,), indirect=((0, view("I", (var("j"),))),))
    gather = instr(
        "gather", "dma", "load0", (), {"O": view("Y", (var("j"),)), "A": cell}, mask=(Constraint(affine(1) - var("j")),)
    )
    tensors = [tensor("X", (5,), "input"), tensor("I", (3,), "input", "int32"), tensor("Y", (3,), "output")]
    p = program(tensors, [], [loop("j", 3, gather)])
    x, i = normal(5), np.array([4, 0, 3])
    assert run(p, X=x, I=i).outputs["Y"].tolist() == [x[4], x[0], 0]


def test_rotating_copies_and_accumulation() -> None:
    """Three copies, taken modulo three, also for negative indices."""
    body = loop(
        "i",
        7,
        load("in", "t", view("X", (0, var("i"))), 1, 1, copy=var("i") - 5, waits=(Wait("out", "i", 3),)),
        store("out", view("Y", (0, var("i"))), "t", 1, 1, copy=var("i") - 5, waits=(Wait("in"),)),
    )
    p = program(
        [tensor("X", (1, 7), "input"), tensor("Y", (1, 7), "output")],
        [Buffer("t", "sbuf", (1, 1), "float32", 3, 0, 4)],
        [body],
    )
    x = normal(1, 7)
    assert (run(p, X=x).outputs["Y"] == x).all()


def test_buffers_take_turns_in_the_same_bytes() -> None:
    buffers = [Buffer("a", "sbuf", (4, 4), "float32"), Buffer("b", "sbuf", (4, 8), "bfloat16")]
    body = [
        load("in_a", "a", at_origin("X"), 4, 4),
        store("out_a", at_origin("Y"), "a", 4, 4, waits=(Wait("in_a"),)),
        load("in_b", "b", at_origin("Z"), 4, 8, waits=(Wait("out_a"),)),
        store("out_b", at_origin("V"), "b", 4, 8, waits=(Wait("in_b"),)),
    ]
    tensors = [
        tensor("X", (4, 4), "input"),
        tensor("Y", (4, 4), "output"),
        tensor("Z", (4, 8), "input"),
        tensor("V", (4, 8), "output"),
    ]
    x, z = normal(4, 4), normal(4, 8)
    out = run(program(tensors, buffers, body), X=x, Z=z).outputs
    assert (out["Y"] == x).all() and (out["V"] == z.astype(ml_dtypes.bfloat16)).all()


def test_sizes_and_inputs_are_checked() -> None:
    from polyopt.errors import InputError

    good = {"A": normal(3, 3), "B": normal(3, 3)}
    sizes = {"M": 3, "N": 3, "K": 3}
    for inputs, at, text in (
        (good, {"M": 3}, "missing: N, K"),
        (good, {**sizes, "Q": 1}, "unknown: Q"),
        (good, {**sizes, "M": 0}, "was made for"),
        ({"A": good["A"]}, sizes, "no array for B"),
        ({**good, "C": good["A"]}, sizes, "takes no input 'C'"),
        ({**good, "A": normal(3, 4)}, sizes, r"shape \(3, 4\), expected \(3, 3\)"),
    ):
        with pytest.raises(InputError, match=text):
            simulate(matmul(), TRN2, inputs, at)
    with pytest.raises(InputError, match="unknown mode"):
        simulate(matmul(), TRN2, good, sizes, mode="fast")


def test_flat_memory() -> None:
    """A machine whose on-chip memories have no partitions: buffers are row-major from their offset on."""
    flat = tuple(
        m
        if m.kind == "device"
        else replace(m, partitions=1, bytes_per_partition=m.capacity_bytes, starts=(), bank_bytes=0)
        for m in TRN2.memories
    )
    f = instr(
        "f", "tensor_tensor", "vector", BOX, {"O": at_origin("y"), "A": at_origin("x"), "B": at_origin("z")}, op="-"
    )
    p = pointwise(f, inputs=("x", "z"))
    x, z = normal(8, 16), normal(8, 16, seed=1)
    result = simulate(p, replace(TRN2, memories=flat), {"X": x, "Z": z}, {})
    assert (result.outputs["Y"] == x - z).all() and result.races == ()
    assert result.peak_bytes["sbuf"] == 3 * 512
    shared = replace(
        p, buffers=tuple(replace(b, offset_bytes=508 if b.name == "z" else b.offset_bytes) for b in p.buffers)
    )
    with pytest.raises(ProgramError, match=r"reads x\[7, 15\], whose bytes were overwritten through z"):
        simulate(shared, replace(TRN2, memories=flat), {"X": x, "Z": z}, {})


def test_exact_mode_stays_in_the_field() -> None:
    """Squaring doubles the digits: modulo a prime it does not."""
    y = at_origin("y")
    f = instr("f", "tensor_tensor", "vector", BOX, {"O": y, "A": y, "B": y}, op="*")
    p = pointwise(instr("g", "copy", "vector", BOX, {"O": at_origin("y"), "A": at_origin("x")}))
    first, copied, save = p.body
    x = np.full((8, 16), -3)
    squared = replace(p, body=(first, copied, loop("t", 30, f), save))
    found = run(change(squared, "save", waits=(Wait("f"),)), "exact", X=x).outputs["Y"]
    assert (found == canonical(pow(3, 2**30, FIELD))).all()


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.int64, object])
def test_contraction_in_pieces(kind: Any) -> None:
    """Products too large for one piece, with rows left over, against einsum."""
    rng = np.random.default_rng(2)
    a, b = rng.integers(-3, 4, (3, 64, 37, 1)), rng.integers(-3, 4, (3, 64, 1, 900))
    if kind is object:
        a, b = a[:, :8], b[:, :8, :, :9]
    expected = np.einsum("bkmx,bkxn->bmn", a, b)
    found = contract(a.astype(kind), b.astype(kind), (1,))
    assert found.shape == (3, 1, 37, b.shape[3])
    assert (found[:, 0].astype(np.int64) == expected).all()
