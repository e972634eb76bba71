"""Every rule of the machine has a program that breaks it, and a message that says where and what."""

# ruff: noqa: E501  (one case a line)
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from polyopt.errors import ProgramError
from polyopt.ir.expr import Const
from polyopt.ir.program import Buffer, Instr, Program, Wait
from polyopt.machine import machine
from polyopt.sets import Constraint, affine, var
from polyopt.simulator import check_program, simulate
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
SBUF = [Buffer("x", "sbuf", (128, 1024), "float32"), Buffer("o", "psum", (128, 2048), "float32")]
X = [tensor("X", (128, 1024), "input"), tensor("Y", (128, 1024), "output")]


def square(array: str, **more: Any) -> Any:
    return view(array, (0, 0), ROWS, **more)


def fill(site: str = "fill", p: int = 8, f: int = 16, at: Sequence[Any] = (0, 0), **more: Any) -> Instr:
    return instr(site, "memset", "vector", (("p", p), ("f", f)), {"O": view("x", at, ROWS)}, s0=0.0, **more)


def only(*nodes: Any, buffers: Any = tuple(SBUF), tensors: Any = tuple(X)) -> Program:
    return program(tensors, buffers, nodes)


def buffer(**fields: Any) -> Program:
    return only(buffers=[replace(SBUF[0], **fields)])


def multiply(**changes: Any) -> Program:
    return change(matmul(), "more", **changes)


def relu(**changes: Any) -> Program:
    f = instr("f", "activation", "scalar", BOX, {"O": square("y"), "X": square("x")}, form=4, func="relu")
    return change(pointwise(f), "f", **changes)


def gather(**changes: Any) -> Program:
    rows = view("I", (0,), {"p": (1,)})
    moved = instr(
        "g", "dma", "load0", BOX, {"O": square("x"), "A": view("X", (0, 0), {"f": (0, 1)}, indirect=((0, rows),))}
    )
    return change(
        only(moved, tensors=[*X, tensor("I", (8,), "input", "int32"), tensor("R", (8,), "input")]), "g", **changes
    )


STATIC: dict[str, tuple[Callable[[], Program], str, str]] = {
    "opcode": (lambda: relu(opcode="activations"), "opcode", "instruction f .*has no instruction 'activations'.*did you mean 'activation'"),
    "queue": (lambda: relu(queue="vector"), "queue", "activation does not run on vector"),
    "site twice": (lambda: only(fill("a"), fill("a")), "names", "instruction sites named a more than once"),
    "array twice": (lambda: only(buffers=[SBUF[0], SBUF[0]]), "names", "named x more than once"),
    "site named like a queue": (lambda: only(fill("load0")), "names", "site load0 has the name of a queue"),
    "loop hides a loop": (lambda: only(loop("i", 2, loop("i", 2, fill()))), "names", "loop variable i hides"),
    "lane hides a loop": (lambda: only(loop("p", 2, fill())), "names", "lane p is not a new name"),
    "loop step": (lambda: only(loop("i", 2, fill(), step=0)), "loop", "loop i has step 0"),
    "loop bound": (lambda: only(loop("i", var("N"), fill())), "scope", "a bound of loop i uses N"),
    "base out of scope": (lambda: only(fill(at=(var("q"), 0))), "scope", "operand O uses q"),
    "lane in a base": (lambda: only(fill(at=(0, var("f")))), "scope", "operand O uses f"),
    "guard out of scope": (lambda: only(fill(guards=(Constraint(var("p")),))), "scope", "a guard uses p"),
    "dtype of the machine": (lambda: buffer(dtype="float64"), "dtype", "x has element type float64, which trn2 lacks"),
    "dtype of the operand": (lambda: matmul("int8"), "dtype", r"operand W \(a\) has element type int8"),
    "memory": (lambda: buffer(memory="sbuff"), "memory", "buffer x lies in memory 'sbuff'.*did you mean 'sbuf'"),
    "buffer in device memory": (lambda: buffer(memory="hbm"), "memory", "expected an on-chip memory"),
    "operand memory": (lambda: multiply(operands=(("O", square_mn("a")), *operands("more")[1:])), "memory", r"operand O \(a\) lies in sbuf"),
    "capacity": (lambda: buffer(shape=(128, 1024), copies=52, copy_bytes=4096), "capacity", "takes bytes 0 to 212992 of each partition of sbuf, which has 212984"),
    "partitions": (lambda: buffer(shape=(129, 4)), "capacity", "buffer x has 129 partitions, sbuf has 128"),
    "copies overlap": (lambda: buffer(copies=2, copy_bytes=2048), "capacity", "copies of buffer x overlap: each takes 4096 bytes"),
    "offset alignment": (lambda: buffer(offset_bytes=6), "alignment", "offset_bytes 6, not a multiple of 4"),
    "copy alignment": (lambda: buffer(copies=2, copy_bytes=4098), "alignment", "copy_bytes 4098"),
    "no copies": (lambda: buffer(copies=0), "buffer", "extents and copies are at least 1"),
    "form": (lambda: relu(attrs=(("form", 5), ("func", "relu"))), "form", "form 5(?s:.)*forms 0 to 4"),
    "operator": (lambda: relu(attrs=(("form", 4), ("func", "relus"))), "operator", "operator func = 'relus'"),
    "scalar": (lambda: relu(attrs=(("form", 1), ("func", "relu"))), "operand", "scalar 'scale' of .* is None"),
    "operand missing": (lambda: relu(operands=operands_of(relu(), "f")[:1]), "operand", "operand 'X' of .* is missing"),
    "operand unknown": (lambda: relu(operands=(*operands_of(relu(), "f"), ("B", square("x")))), "operand", "operand 'B' does not occur"),
    "operand twice": (lambda: relu(operands=(*operands_of(relu(), "f"), ("X", square("x")))), "operand", "given twice"),
    "output first": (lambda: relu(operands=operands_of(relu(), "f")[::-1]), "operand", "first operand is not O"),
    "array": (lambda: relu(operands=(("O", square("z")), ("X", square("x")))), "array", "operand O is in 'z'"),
    "rank": (lambda: relu(operands=(("O", view("y", (0,))), ("X", square("x")))), "rank", "has 1 subscripts, y has 2 axes"),
    "step lane": (lambda: relu(operands=(("O", view("y", (0, 0), {"q": (1, 0)})), ("X", square("x")))), "steps", "along lane 'q'"),
    "lane of another operand": (
        lambda: multiply(operands=(operands("more")[0], ("W", view("a", (0, 0), {"k": (1, 0), "n": (0, 1)})), operands("more")[2])),
        "steps",
        "operand W moves along lane n of role n",
    ),
    "partition lane inside": (lambda: relu(operands=(("O", square("y")), ("X", view("x", (0, 0), {"p": (1, 1), "f": (0, 1)})))), "partition", "moves inside partitions along lane p"),
    "other lane over partitions": (lambda: relu(operands=(("O", square("y")), ("X", view("x", (0, 0), {"p": (1, 0), "f": (1, 0)})))), "partition", "moves over partitions along lane f"),
    "role": (lambda: relu(lanes=tuple(replace(n, role="z") if n.name == "f" else n for n in site(relu(), "f").lanes)), "lane", "has role 'z'"),
    "engine edge": (lambda: only(instr("f", "copy", "gpsimd", BOX, {"O": square("x"), "A": square("o")})), "edge", r"gpsimd cannot read psum \(operand A, o\)"),
    "transfer edge": (lambda: only(load("t", "o", view("X", (0, 0), ROWS), 8, 16)), "memory", r"operand O \(o\) lies in psum"),
    "input written": (lambda: only(store("t", view("X", (0, 0), ROWS), "x", 8, 16)), "role", "it writes the input X"),
    "mask": (lambda: relu(mask=(Constraint(var("f")),)), "mask", "activation cannot be masked"),
    "index": (lambda: relu(index=affine(1)), "index", "an index value is missing or not used"),
    "value": (lambda: relu(value=Const(1.0)), "value", "a value expression is missing or not used"),
    "accumulate": (lambda: relu(attrs=(("form", 4), ("func", "relu"), ("accumulate", True))), "accumulate", "activation always starts afresh"),
    "gather in an engine": (lambda: relu(operands=(("O", square("y")), ("X", square("x", indirect=((1, square("x")),))))), "gather", "only transfers and general"),
    "gather axis": (lambda: gather(operands=(("O", square("x")), ("A", square("X", indirect=((2, view("I", (0,))),))))), "gather", "gathers along axis 2"),
    "gather by floats": (lambda: gather(operands=(("O", square("x")), ("A", square("X", indirect=((0, view("R", (0,))),))))), "dtype", r"operand A's index \(R\) has element type float32"),
    "wait for nothing": (lambda: relu(waits=(Wait("loat_x"),)), "wait", "waits for 'loat_x', which is no site and no queue"),
    "wait for later": (lambda: only(fill("a", waits=(Wait("b"),)), fill("b")), "deadlock", "waits for 'b', which never runs before it: a deadlock"),
    "wait loop": (lambda: multiply(waits=(Wait("load_a", "kk", 1),)), "wait", "leaving out iterations of 'kk'"),
    "wait distance": (lambda: multiply(waits=(Wait("load_a", "ko", 0),)), "wait", "leaving out 0 iterations"),
    "wait distance without a loop": (lambda: multiply(waits=(Wait("load_a", None, 1),)), "wait", "with distance 1 but no loop"),
}  # fmt: skip


def site(p: Program, name: str) -> Instr:
    from polyopt.ir.program import instructions

    return next(i for i, _ in instructions(p.body) if i.site == name)


def operands_of(p: Program, name: str) -> Any:
    return site(p, name).operands


def operands(name: str) -> Any:
    return operands_of(matmul(), name)


def square_mn(array: str) -> Any:
    return view(array, (0, 0), {"m": (1, 0), "n": (0, 1)})


@pytest.mark.parametrize(("build", "id", "text"), STATIC.values(), ids=STATIC.keys())
def test_static(build: Callable[[], Program], id: str, text: str) -> None:
    with pytest.raises(ProgramError, match=text) as caught:
        check_program(build(), TRN2)
    assert caught.value.diagnostic.id == id
    assert caught.value.diagnostic.help


def test_sound_programs_pass() -> None:
    for p in (matmul(), matmul("bfloat16"), relu(), gather(), only(fill())):
        check_program(p, TRN2)


# -- rules that depend on sizes --------------------------------------------------------------------------------------
def copy_of(a: Any, o: Any, p: int = 8, f: int = 16, f2: int = 1) -> Instr:
    return instr("f", "copy", "vector", (("p", p), ("f", f), ("g", "f", f2)), {"O": o, "A": a})


def filled(node: Any) -> Program:
    return only(fill("all", 128, 1024), node)


def transposed() -> Program:
    """A transfer of a square block over its own transpose."""
    t = view("x", (0, 0), {"p": (1, 0), "f": (0, 1)})
    return only(
        fill("all", 128, 1024),
        instr("t", "dma", "load0", (("p", 4), ("f", 4)), {"O": t, "A": view("x", (0, 0), {"p": (0, 1), "f": (1, 0)})}),
    )


def wide_multiply(n: int) -> Instr:
    views = {
        "O": square_mn("o"),
        "W": view("x", (0, 0), {"k": (1, 0), "m": (0, 1)}),
        "X": view("x", (0, 8), {"k": (1, 0), "n": (0, 1)}),
    }
    return instr("m", "matmul", "tensor", (("k", 8), ("m", 8), ("n", n)), views, accumulate=False)


DYNAMIC: dict[str, tuple[Callable[[], Program], str, str]] = {
    "beyond": (lambda: only(loop("i", 9, fill(at=(0, var("i") * 127)))), "out-of-bounds", r"instruction fill \(memset on vector\) of statement S at i = 8: operand O touches 1016 to 1031"),
    "below": (lambda: only(loop("i", 3, fill(at=(0, affine(1) - var("i"))))), "out-of-bounds", "at i = 2: operand O touches -1 to 14 along axis 1 of x"),
    "tensor": (lambda: only(load("t", "x", view("X", (120, 0), ROWS), 9, 4)), "out-of-bounds", "operand A touches 120 to 128 along axis 0 of X"),
    "lane limit": (lambda: only(fill("all", 128, 1024), wide_multiply(513)), "lane-limit", "lane n has extent 513, at most 512"),
    "lane limit of a product": (lambda: only(instr("m", "memset", "vector", (("p", 8), ("a", "f", 512), ("b", "f", 129)), {"O": view("x", (0, 0), {"p": (1, 0)})}, s0=0.0)), "lane-limit", "lane f has extent 66048"),
    "partition start": (lambda: only(fill(at=(16, 0))), "partition-start", "takes 8 partitions from 16(?s:.)*may begin at 0, 32, 64, 96"),
    "partition start of many": (lambda: only(fill(p=33, at=(32, 0))), "partition-start", "takes 33 partitions from 32(?s:.)*may begin at 0, 64"),
    "partition step": (lambda: filled(copy_of(view("x", (0, 0), {"p": (2, 0), "f": (0, 1)}), square("x"))), "partition", "steps over partitions by 2, expected 1"),
    "partition broadcast": (lambda: filled(copy_of(view("x", (0, 0), {"f": (0, 1)}), view("x", (0, 512), ROWS))), "partition", "lies on 1 partitions, lane p has extent 8"),
    "bank": (lambda: only(fill("all", 128, 1024), instr("m", "transpose", "tensor", (("p", 8), ("f", 8)), {"O": view("o", (0, 508), {"p": (0, 1), "f": (1, 0)}), "X": square("x")})), "bank", "touches bytes 2032 to 2064 of each partition: banks 0 to 1 of psum"),
    "never written": (lambda: only(fill(), copy_of(view("x", (0, 1), ROWS), view("x", (0, 512), ROWS))), "uninitialised", r"operand A reads x\[0, 16\], which was never written"),
    "output never written": (lambda: only(load("t", "x", view("Y", (0, 3), ROWS), 8, 16)), "uninitialised", r"reads Y\[0, 3\], which was never written"),
    "accumulate onto nothing": (lambda: change(matmul(), "first", guards=(Constraint(affine(-1)),)), "uninitialised", r"operand O reads o\[0, 0\] of copy 0"),
    "two points write one cell": (lambda: filled(copy_of(view("x", (0, 0), {"p": (1, 0), "f": (0, 1)}), view("x", (0, 512), {"p": (1, 0)}))), "output-overlap", "two lane points write the same cell of x"),
    "overlapping steps": (lambda: filled(copy_of(square("x"), view("x", (0, 512), {"p": (1, 0), "f": (0, 1), "g": (0, 2)}), f2=3)), "output-overlap", "two lane points write"),
    "overwrites what it reads": (lambda: filled(copy_of(square("x"), view("x", (0, 1), ROWS))), "operand-overlap", "overwrites cells of x that other lane points still read as A"),
    "transposes in place": (transposed, "operand-overlap", "overwrites cells of x"),
}  # fmt: skip


@pytest.mark.parametrize(("build", "id", "text"), DYNAMIC.values(), ids=DYNAMIC.keys())
def test_dynamic(build: Callable[[], Program], id: str, text: str) -> None:
    p = build()
    rng = np.random.default_rng(0)
    sizes = dict.fromkeys(p.params, 9)
    inputs = {t.name: rng.standard_normal(t.sizes(sizes)) for t in p.tensors if t.role == "input"}
    with pytest.raises(ProgramError, match=text) as caught:
        simulate(p, TRN2, inputs, sizes)
    assert caught.value.diagnostic.id == id


@pytest.mark.parametrize(
    "name", ["beyond", "below", "tensor", "lane limit", "partition start", "partition step", "bank"]
)
def test_dynamic_without_values(name: str) -> None:
    build, id, _ = DYNAMIC[name]
    for races in (False, True):
        with pytest.raises(ProgramError) as caught:
            simulate(build(), TRN2, None, {}, timing_only=True, detect_races=races)
        assert caught.value.diagnostic.id == id


def test_in_place_is_allowed() -> None:
    p = only(
        fill("all", 128, 1024),
        copy_of(square("x"), square("x")),
        copy_of_named(
            "g", view("x", (0, 0), {"p": (1, 0), "f": (0, 2)}), view("x", (0, 1), {"p": (1, 0), "f": (0, 2)})
        ),
    )
    simulate(p, TRN2, {"X": np.zeros((128, 1024))}, {})


def copy_of_named(name: str, a: Any, o: Any) -> Instr:
    return replace(copy_of(a, o), site=name)


def test_bytes_taken_over_by_another_buffer() -> None:
    """The upper half of `x` is overwritten through `z`; the lower half is still there."""
    buffers = [Buffer("x", "sbuf", (8, 16), "float32"), Buffer("z", "sbuf", (8, 16), "bfloat16", 1, 32)]
    both = [fill(), instr("over", "memset", "vector", BOX, {"O": square("z")}, s0=1.0)]
    low = store("low", view("Y", (0, 0), ROWS), "x", 8, 8)
    all_of_it = store("low", view("Y", (0, 0), ROWS), "x", 8, 9)
    waits = (Wait("vector"),)
    simulate(only(*both, replace(low, waits=waits), buffers=buffers), TRN2, {"X": np.zeros((128, 1024))}, {})
    with pytest.raises(ProgramError, match=r"reads x\[0, 8\], whose bytes were overwritten through z"):
        simulate(only(*both, replace(all_of_it, waits=waits), buffers=buffers), TRN2, {"X": np.zeros((128, 1024))}, {})


def test_scatter_to_one_row_twice() -> None:
    rows = view("I", (0,), {"p": (1,)})
    move = instr(
        "s",
        "dma",
        "store0",
        (("p", 2), ("f", 4)),
        {"O": view("Y", (0, 0), {"f": (0, 1)}, indirect=((0, rows),)), "A": view("X", (0, 0), ROWS)},
    )
    p = program(
        [tensor("X", (2, 4), "input"), tensor("I", (2,), "input", "int32"), tensor("Y", (3, 4), "output")], [], [move]
    )
    with pytest.raises(ProgramError, match="two lane points write the same cell of Y"):
        simulate(p, TRN2, {"X": np.zeros((2, 4)), "I": np.array([1, 1])}, {})
    with pytest.raises(ProgramError, match="operand O touches 1 to 3 along axis 0 of Y"):
        simulate(p, TRN2, {"X": np.zeros((2, 4)), "I": np.array([1, 3])}, {})
