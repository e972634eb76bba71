"""General instructions against the same loops written in Python."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyopt.errors import ProgramError
from polyopt.ir import Tensor
from polyopt.ir.expr import Access, Apply, Cast, Const, Expr, Index, Read, Uninterpreted
from polyopt.ir.program import Program, View
from polyopt.ir.standins import canonical, standin_call
from polyopt.machine import machine
from polyopt.sets import Affine, AffineLike, Constraint, affine, var
from polyopt.simulator import simulate
from tests.unit.simulator.programs import instr, loop, program, tensor, view

TRN2 = machine("trn2")
i, j, k = var("i"), var("j"), var("k")


def read(operand: str) -> Expr:
    return Read(Access(operand, ()))


def apply(op: str, *args: Expr | float) -> Expr:
    return Apply(op, tuple(Const(a) if isinstance(a, (int, float)) else a for a in args))


def general(
    tensors: Sequence[Tensor],
    lanes: Mapping[str, AffineLike],
    operands: Mapping[str, View],
    value: Expr,
    mask: tuple[Constraint, ...] = (),
) -> Program:
    box = [(n, "p", e) for n, e in lanes.items()]
    return program(tensors, [], [instr("g", "general", "gpsimd", box, dict(operands), value=value, mask=mask)])


def values(*shape: int) -> Any:
    return np.random.default_rng(7).integers(-4, 5, shape).astype(np.float32)


def test_vector() -> None:
    a = values(5, 6)
    p = general(
        [tensor("A", (5, 6), "input"), tensor("O", (6, 5), "output")],
        {"i": 5, "j": 6},
        {"O": view("O", (j, i)), "A": view("A", (i, affine(5) - j))},
        apply("+", apply("*", read("A"), 2.0), Index(i - j)),
    )
    expected = (a[:, ::-1] * 2 + np.arange(5)[:, None] - np.arange(6)).T
    result = simulate(p, TRN2, {"A": a}, {})
    assert (result.outputs["O"] == expected).all()
    assert result.general_ns == pytest.approx((150 + 64 * 30 + 60) / 1.2)


def test_prefix_sum_sees_earlier_points() -> None:
    a = values(9)
    p = general(
        [tensor("A", (9,), "inout")],
        {"i": 8},
        {"O": view("A", (i + 1,)), "A0": view("A", (i + 1,)), "A1": view("A", (i,))},
        apply("+", read("A0"), read("A1")),
    )
    assert (simulate(p, TRN2, {"A": a}, {}).outputs["A"] == np.cumsum(a)).all()


@given(
    distance=st.integers(-4, 4),
    extent=st.integers(1, 6),
    stride=st.integers(-1, 2),
    masked=st.booleans(),
)
def test_recurrences(distance: int, extent: int, stride: int, masked: bool) -> None:
    """O[s*i + c] = 2*O[i + d] + i over a 2-dimensional box, point after point."""
    place, source = i * stride + j + 10, i + j + distance + 10
    mask = (Constraint(i - j),) if masked else ()
    p = general(
        [tensor("X", (40,), "inout", "int32")],
        {"i": extent, "j": 4},
        {"O": view("X", (place,)), "A": view("X", (source,))},
        apply("+", apply("*", read("A"), 2), Index(i)),
        mask,
    )
    x = np.arange(40)
    expected = x.copy()
    for a, b in itertools.product(range(extent), range(4)):
        if not masked or a >= b:
            expected[a * stride + b + 10] = 2 * expected[a + b + distance + 10] + a
    assert (simulate(p, TRN2, {"X": x}, {}).outputs["X"] == expected).all()


@given(n=st.integers(1, 7), m=st.integers(1, 5), op=st.sampled_from(["+", "*", "min", "max"]), swap=st.booleans())
def test_reductions(n: int, m: int, op: str, swap: bool) -> None:
    a = values(n, m)
    old, term = read("O"), read("A")
    p = general(
        [tensor("A", (n, m), "input"), tensor("R", (m,), "inout")],
        {"i": n, "j": m},
        {"O": view("R", (j,)), "A": view("A", (i, j))},
        apply(op, *((term, old) if swap else (old, term))),
    )
    start = np.ones(m, np.float32)
    folds: dict[str, Callable[..., Any]] = {"+": np.sum, "*": np.prod, "min": np.min, "max": np.max}
    expected = folds[op](np.vstack([start, a]), axis=0)
    assert (simulate(p, TRN2, {"A": a, "R": start}, {}).outputs["R"] == expected).all()


def test_reduction_rounds_every_time() -> None:
    a = np.full(300, 1.0)
    p = general(
        [tensor("A", (300,), "input"), tensor("R", (), "inout", "bfloat16")],
        {"i": 300},
        {"O": view("R", ()), "A": view("A", (i,))},
        apply("+", read("O"), read("A")),
    )
    assert float(simulate(p, TRN2, {"A": a, "R": np.zeros(())}, {}).outputs["R"]) == 256
    assert float(simulate(p, TRN2, {"A": a, "R": np.zeros(())}, {}, mode="exact").outputs["R"]) == 300


def test_multiply_adds_are_counted() -> None:
    a, b = values(3, 4), values(4, 5)
    p = general(
        [tensor("A", (3, 4), "input"), tensor("B", (4, 5), "input"), tensor("C", (3, 5), "inout")],
        {"i": 3, "j": 5, "k": 4},
        {"O": view("C", (i, j)), "A0": view("C", (i, j)), "A1": view("A", (i, k)), "A2": view("B", (k, j))},
        apply("+", read("A0"), apply("*", read("A1"), read("A2"))),
    )
    result = simulate(p, TRN2, {"A": a, "B": b, "C": np.zeros((3, 5))}, {})
    assert (result.outputs["C"] == a @ b).all()
    assert result.multiply_adds["gpsimd"] == 60
    assert result.tensor_read_bytes == {"A": 240, "B": 240, "C": 240}
    assert result.tensor_written_bytes["C"] == 240


def test_select_reads_only_what_it_chooses() -> None:
    """A padded neighbour: A[i - 1] is outside for i = 0 and never read there."""
    a = values(6)
    inside = apply(">=", Index(i), 1)
    source, lanes = tensor("A", (6,), "input"), {"i": 6}
    views = {"O": view("O", (i,)), "A": view("A", (i - 1,))}
    p = general([source, tensor("O", (6,), "output")], lanes, views, apply("select", inside, read("A"), 0.0))
    assert (simulate(p, TRN2, {"A": a}, {}).outputs["O"] == np.concatenate([[0], a[:-1]])).all()
    both = apply("and", inside, apply(">", read("A"), 0.0))
    p = general([source, tensor("O", (6,), "output", "bool")], lanes, views, both)
    assert (simulate(p, TRN2, {"A": a}, {}).outputs["O"] == np.concatenate([[False], a[:-1] > 0])).all()
    bare = general([source, tensor("O", (6,), "output")], lanes, views, read("A"))
    with pytest.raises(ProgramError, match="touches -1 to 4 along axis 0 of A"):
        simulate(bare, TRN2, {"A": a}, {})


def test_gather_and_scatter() -> None:
    x, index = values(8), np.array([3, 0, 7, 7, 1])
    by = view("I", (i,))
    p = general(
        [tensor("X", (8,), "input"), tensor("I", (5,), "input", "int32"), tensor("O", (9,), "inout")],
        {"i": 5},
        {"O": view("O", (1,), indirect=((0, by),)), "A": view("X", (0,), indirect=((0, by),)), "A1": view("I", (i,))},
        apply("+", read("A"), read("A1")),
    )
    expected = np.zeros(9)
    for q in index:
        expected[q + 1] = x[q] + q
    assert (simulate(p, TRN2, {"X": x, "I": index, "O": np.zeros(9)}, {}).outputs["O"] == expected).all()


def test_histogram() -> None:
    index = np.array([3, 0, 2, 2, 3, 3])
    by = view("I", (i,))
    cell = view("O", (0,), indirect=((0, by),))
    p = general(
        [tensor("I", (6,), "input", "int32"), tensor("O", (4,), "inout", "int32")],
        {"i": 6},
        {"O": cell, "A0": cell},
        apply("+", read("A0"), 1),
    )
    out = simulate(p, TRN2, {"I": index, "O": np.zeros(4)}, {}).outputs["O"]
    assert (out == np.bincount(index, minlength=4)).all()


def test_last_write_counts() -> None:
    p = general(
        [tensor("A", (6,), "input"), tensor("O", (), "output")],
        {"i": 6},
        {"O": view("O", ()), "A": view("A", (i,))},
        read("A"),
    )
    a = values(6)
    assert float(simulate(p, TRN2, {"A": a}, {}).outputs["O"]) == a[-1]


def test_casts_powers_and_divisions() -> None:
    a = np.array([1.30078125, -2.7, 5.5])
    cases: list[tuple[Expr, Any]] = [
        (Cast("bfloat16", read("A")), a.astype(np.float32).astype(ml_dtypes.bfloat16)),
        (Cast("int32", read("A")), np.trunc(a)),
        (apply("/", Index(i), 2), np.arange(3) / 2),
        (apply("**", Index(i), 2), np.arange(3) ** 2),
        (apply("relu", apply("neg", read("A"))), np.maximum(-a.astype(np.float32), 0)),
        (apply("not", apply("<", read("A"), 0)), (a >= 0).astype(float)),
        (apply("max", Index(i), read("A")), np.maximum(np.arange(3), a.astype(np.float32))),
    ]
    for value, expected in cases:
        p = general(
            [tensor("A", (3,), "input"), tensor("O", (3,), "output")],
            {"i": 3},
            {"O": view("O", (i,)), "A": view("A", (i,))},
            value,
        )
        out = simulate(p, TRN2, {"A": a}, {}).outputs["O"]
        assert (out == np.asarray(expected).astype(np.float32)).all(), value


def test_uninterpreted_functions() -> None:
    a = np.array([1, 2, -3])
    p = general(
        [tensor("A", (3,), "input"), tensor("O", (3,), "output")],
        {"i": 3},
        {"O": view("O", (i,)), "A": view("A", (i,))},
        Uninterpreted("f", (read("A"), Const(2.0))),
    )
    assert (simulate(p, TRN2, {"A": a}, {}, functions={"f": lambda x, y: x - y}).outputs["O"] == a - 2).all()
    assert (simulate(p, TRN2, {"A": a}, {}, mode="exact").outputs["O"] == standin_call("f", a, 2)).all()
    with pytest.raises(ProgramError, match=r"instruction g .*the function 'f' has no value"):
        simulate(p, TRN2, {"A": a}, {})


def test_factorisation_in_loops() -> None:
    """Gaussian elimination: an outer loop around general instructions whose lanes depend on it."""
    n = 6
    a = values(n, n) + 20 * np.eye(n, dtype=np.float32)
    outer, rest = var("s"), affine(n - 1) - var("s")
    pivot = view("A", (outer, outer))

    def at(row: Affine, column: Affine) -> View:
        return view("A", (row, column))

    low, right = i + outer + 1, j + outer + 1
    scale = instr(
        "scale",
        "general",
        "gpsimd",
        [("i", "p", rest)],
        {"O": at(low, outer), "A0": at(low, outer), "A1": pivot},
        value=apply("/", read("A0"), read("A1")),
    )
    update = instr(
        "update",
        "general",
        "gpsimd",
        [("i", "p", rest), ("j", "p", rest)],
        {"O": at(low, right), "A0": at(low, right), "A1": at(low, outer), "A2": at(outer, right)},
        value=apply("-", read("A0"), apply("*", read("A1"), read("A2"))),
    )
    p = program([tensor("A", (n, n), "inout")], [], [loop("s", n, scale, update)])
    out = simulate(p, TRN2, {"A": a}, {}).outputs["A"]
    lower, upper = np.tril(out, -1) + np.eye(n), np.triu(out)
    np.testing.assert_allclose(lower @ upper, a, rtol=1e-5, atol=1e-4)


def test_one_point_without_lanes() -> None:
    """A gather whose cell another gather of the same tensor names: point after point, of which there is one."""
    row = view("I", (0,))
    operand = view("A", (0,), indirect=((0, row),))
    p = general(
        [tensor("A", (3,), "inout"), tensor("I", (1,), "input", "int32")], {}, {"O": operand, "A": operand}, read("A")
    )
    for index in range(3):
        result = simulate(p, TRN2, {"A": np.array([5.0, 6.0, 7.0]), "I": np.array([index])}, {})
        assert result.outputs["A"].tolist() == [5.0, 6.0, 7.0]


def test_a_size_in_the_value() -> None:
    lanes, views = {"i": var("N")}, {"O": view("O", (i,))}
    p = program(
        [tensor("O", ("N",), "output")],
        [],
        [instr("g", "general", "gpsimd", [("i", "p", lanes["i"])], views, value=Index(var("N") * 10 + i))],
        ("N",),
    )
    assert simulate(p, TRN2, {}, {"N": 3}).outputs["O"].tolist() == [30, 31, 32]


def test_exact_values_stay_in_the_field() -> None:
    """A single cell that is squared again and again."""
    p = general(
        [tensor("A", (), "inout")], {"i": 8}, {"O": view("A", ()), "A": view("A", ())}, apply("*", read("A"), read("A"))
    )
    assert simulate(p, TRN2, {"A": np.array(3)}, {}, mode="exact").outputs["A"][()] == canonical(3**256)


def test_empty_box_and_empty_mask() -> None:
    never = (Constraint(i - 10),)
    for lanes, mask in (({"i": 0}, ()), ({"i": 3}, never)):
        p = general([tensor("O", (3,), "output")], dict(lanes), {"O": view("O", (i,))}, Const(1.0), mask)
        assert (simulate(p, TRN2, {}, {}).outputs["O"] == 0).all()


VALUES: list[tuple[str, Expr]] = [
    ("sum", apply("+", apply("*", read("A"), 0.5), read("B"))),
    ("functions", apply("exp", apply("neg", apply("abs", apply("/", read("A"), apply("+", read("B"), 8)))))),
    ("extremes", apply("min", apply("max", read("A"), read("B")), Index(i))),
    ("select", apply("select", apply("<", read("A"), read("B")), apply("-", read("B"), 1), read("A"))),
    ("logic", apply("or", apply("and", read("A"), apply(">", read("B"), 0)), apply("not", read("A")))),
    ("cast", Cast("bfloat16", apply("+", read("A"), apply("*", Index(j - i), 0.3)))),
    ("power", apply("+", apply("**", Index(i), 3), apply("-", read("A"), read("B")))),
]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int32", "int64"])
@pytest.mark.parametrize(("name", "value"), VALUES, ids=[n for n, _ in VALUES])
def test_point_after_point_or_in_stretches(name: str, value: Expr, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The two ways to execute a recurrence give the same bits."""
    by = view("I", (i,))
    p = general(
        [tensor("X", (9, 9), "inout", dtype), tensor("I", (8,), "input", "int32")],
        {"i": 8, "j": 7},
        {"O": view("X", (i + 1, j + 1)), "A": view("X", (i, j)), "B": view("X", (0, j), indirect=((0, by),))},
        value,
        (Constraint(i + j - 2),),
    )
    inputs = {"X": np.random.default_rng(1).integers(-4, 5, (9, 9)), "I": np.array([0, 2, 1, 3, 4, 4, 1, 8])}
    for mode in ("float", "exact"):
        found = []
        for short in (False, True):
            monkeypatch.setattr("polyopt.simulator._general.is_short", lambda *_, short=short: short)
            found.append(simulate(p, TRN2, inputs, {}, mode=mode).outputs["X"])
        assert found[0].tobytes() == found[1].tobytes()


def test_faults_point_after_point() -> None:
    """A recurrence over 20 points that meets a cell outside, or one that was never written."""
    place, before, ahead = view("X", (i + 1,)), view("X", (i,)), view("X", (i + 2,))
    both = apply("+", read("A"), read("B"))
    outside = general([tensor("X", (21,), "inout")], {"i": 20}, {"O": place, "A": before, "B": ahead}, both)
    with pytest.raises(ProgramError, match="operand B touches 21 to 21 along axis 0 of X"):
        simulate(outside, TRN2, {"X": np.zeros(21)}, {})
    unwritten = general([tensor("X", (21,), "temp")], {"i": 20}, {"O": place, "A": before}, apply("+", read("A"), 1))
    with pytest.raises(ProgramError, match=r"operand A reads X\[0\], which was never written"):
        simulate(unwritten, TRN2, {}, {})
