"""Forward substitution: what it makes, and every reason not to."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from polyopt.frontend import expression_text
from polyopt.ir import Scop
from polyopt.reference import inputs, interpret
from polyopt.schedule import substitute_forward
from polyopt.schedule._substitute import MAX_NODES, plain_inverse
from polyopt.sets import affine, var
from tests.unit.schedule._scops import program

Row = tuple[str, str, str, str]
ALL = "[i] : 0 <= i < N"
MAKE: Row = ("S", ALL, "[0, i]", "T[i] = X[i] * 2")
USE: Row = ("U", ALL, "[9, i]", "Y[i] = T[i] + 1")
TENSORS = "X[N] float32 inout; T[N] float32 temp; Y[N] float32 inout; Z[N] float32 inout; k[N] int32 input"


def scop(*rows: Row, tensors: str = TENSORS) -> Scop:
    return program(tensors, *rows, context="N >= 1")


def assert_same(a: Scop, b: Scop, size: int = 5) -> None:
    arrays = inputs(a, {"N": size}, mode="exact")
    expected, found = (interpret(s, arrays, {"N": size}, "exact") for s in (a, b))
    for name, values in expected.items():
        assert np.array_equal(values, found[name]), name


def values(s: Scop) -> dict[str, str]:
    return {x.name: expression_text(x.assign.value) for x in s.statements}


def test_the_temporary_disappears_and_its_rounding_stays() -> None:
    before = scop(MAKE, USE)
    after = substitute_forward(before)
    assert values(after) == {"U": 'cast("float32", X[i] * 2) + 1'}
    assert after.statement("U").order == before.statement("U").order
    assert [t.name for t in after.tensors] == ["X", "Y", "Z", "k"]
    assert_same(before, after)


def test_the_cast_is_to_the_type_of_the_temporary() -> None:
    after = substitute_forward(scop(MAKE, USE, tensors=TENSORS.replace("T[N] float32", "T[N] bfloat16")))
    assert values(after) == {"U": 'cast("bfloat16", X[i] * 2) + 1'}


def test_chains_are_followed_to_their_end() -> None:
    rows: list[Row] = [MAKE]
    rows += [(f"S{n}", ALL, f"[{n}, i]", f"T{n}[i] = {'T' if n == 1 else f'T{n - 1}'}[i] + {n}") for n in (1, 2, 3)]
    tensors = TENSORS + "".join(f"; T{n}[N] float32 temp" for n in (1, 2, 3))
    before = scop(*rows, ("U", ALL, "[9, i]", "Y[i] = T3[i]"), tensors=tensors)
    after = substitute_forward(before)
    assert [s.name for s in after.statements] == ["U"]
    assert_same(before, after)


@pytest.mark.parametrize(
    ("make", "use", "expected"),
    [
        (("S", ALL, "[0, i]", "T[i] = X[i] + i"), "Y[i] = T[N - 1 - i]", 'cast("float32", X[N - i - 1] + (N - i - 1))'),
        (("S", "[a] : 1 <= a <= N", "[0, a]", "T[a - 1] = X[a - 1]"), "Y[i] = T[i]", 'cast("float32", X[i])'),
        (MAKE, "Y[i] = T[i // 2]", 'cast("float32", X[((i)//2)] * 2)'),
        (MAKE, "Y[i] = T[0] + 1", 'cast("float32", X[0] * 2) + 1'),
        (MAKE, "Y[i] = T[i] * T[i]", 'cast("float32", X[i] * 2) * cast("float32", X[i] * 2)'),
        (("S", ALL, "[0, i]", "T[i] = X[k[i]]"), "Y[i] = T[i] + 1", 'cast("float32", X[k[i]]) + 1'),
    ],
)
def test_the_read_cell_says_which_instance_is_meant(make: Row, use: str, expected: str) -> None:
    before = scop(make, ("U", ALL, "[9, i]", use))
    after = substitute_forward(before)
    assert values(after) == {"U": expected}
    assert_same(before, after)


def test_two_dimensions_may_be_exchanged() -> None:
    before = program(
        "X[N, N] float32 input; T[N, N] float32 temp; Y[N, N] float32 output",
        ("S", "[i, j] : 0 <= i, j < N", "[0, i, j]", "T[j, i] = X[i, j] - i"),
        ("U", "[i, j] : 0 <= i, j < N", "[1, i, j]", "Y[i, j] = T[i, j] * 3"),
    )
    after = substitute_forward(before)
    assert values(after) == {"U": 'cast("float32", X[j, i] - j) * 3'}
    assert_same(before, after)


def test_into_a_reduction_that_uses_it_once_for_each_cell() -> None:
    before = scop(MAKE, ("U", ALL, "[9, i]", "Z[i] += T[i]"))
    after = substitute_forward(before)
    assert values(after) == {"U": 'cast("float32", X[i] * 2)'}
    assert after.statement("U").assign.combine == "+"
    assert_same(before, after)


def test_not_into_a_sum_of_products_but_for_plain_copies() -> None:
    def nest(value: str) -> Scop:
        return program(
            "X[N, N] float32 input; T[N, N] float32 temp; Y[N, N] float32 inout",
            ("S", "[i, k] : 0 <= i, k < N", "[0, i, k]", f"T[i, k] = {value}"),
            ("U", "[i, j, k] : 0 <= i, j, k < N", "[1, i, j, k]", "Y[i, j] += T[i, k] * X[k, j]"),
        )

    computed, copied = nest("exp(X[i, k])"), nest("X[k, i]")
    assert substitute_forward(computed) == computed
    after = substitute_forward(copied)
    assert values(after) == {"U": 'cast("float32", X[k, i]) * X[k, j]'}
    assert_same(copied, after, 3)


def test_what_vanishes_may_be_read_by_what_is_written() -> None:
    before = scop(MAKE, ("U", ALL, "[9, i]", "Y[i] = T[i]"), ("V", ALL, "[10, i]", "X[i] = 0"))
    after = substitute_forward(before)
    assert [s.name for s in after.statements] == ["U", "V"]
    assert_same(before, after)


REFUSED: dict[str, Callable[[], Scop]] = {
    "not a temporary": lambda: scop(MAKE, USE, tensors=TENSORS.replace("T[N] float32 temp", "T[N] float32 output")),
    "a second reader": lambda: scop(MAKE, USE, ("V", ALL, "[10, i]", "Z[i] = T[i]")),
    "read at two places": lambda: scop(MAKE, ("U", ALL, "[9, i]", "Y[i] = T[i] + T[0]")),
    "a second writer": lambda: scop(("W", "[]", "[-1]", "T[0] = 3"), MAKE, USE),
    "a combining producer": lambda: scop(("W", ALL, "[-1, i]", "T[i] = 1"), ("S", ALL, "[0, i]", "T[i] += X[i]"), USE),
    "an operand overwritten between": lambda: scop(MAKE, ("W", ALL, "[5, i]", "X[i] = 0"), USE),
    "an operand overwritten in the producer's loop": lambda: scop(
        ("S", ALL, "[0, i]", "T[i] = X[i] * 2"), ("W", ALL, "[0, i]", "X[i] = 0"), USE
    ),
    "an operand overwritten in the user's loop": lambda: scop(
        MAKE, ("U", ALL, "[9, i]", "Y[i] = T[i] + 1"), ("W", ALL, "[9, i]", "X[i] = 0")
    ),
    "an operand overwritten by the user": lambda: scop(MAKE, ("U", ALL, "[9, i]", "X[i] = T[i] + 1")),
    "an operand written at a place that is no constant": lambda: scop(MAKE, ("W", ALL, "[i]", "X[i] = 0"), USE),
    "one loop around both": lambda: scop(("S", ALL, "[i, 0]", MAKE[3]), ("U", ALL, "[i, 1]", USE[3])),
    "the same place in the order": lambda: scop(MAKE, ("U", ALL, "[0, i]", USE[3])),
    "used as a subscript": lambda: program(
        "X[N] float32 input; T[N] int32 temp; Y[N] float32 output; k[N] int32 input",
        ("S", ALL, "[0, i]", "T[i] = k[i]"),
        ("U", ALL, "[9, i]", "Y[i] = X[T[i]]"),
        context="N >= 1",
    ),
    "read at a place that data decides": lambda: scop(MAKE, ("U", ALL, "[9, i]", "Y[i] = T[k[i]]")),
    "several instances write one cell": lambda: scop(
        ("S", ALL, "[0, i]", "T[0] = X[i]"), ("U", "[]", "[9]", "Y[0] = T[0]")
    ),
    "the written cell does not say which instance": lambda: program(
        "X[N] float32 input; T[2*N] float32 temp; Y[N] float32 output",
        ("S", ALL, "[0, i]", "T[2*i] = X[i]"),
        ("U", ALL, "[9, i]", "Y[i] = T[2*i]"),
    ),
    "an opaque user": lambda: scop(MAKE, ("U", "[]", "[9]", "{may_read: [T], may_write: [Y]}")),
    "an opaque writer of an operand": lambda: scop(MAKE, ("W", "[]", "[5]", "{may_read: [], may_write: [X]}"), USE),
    "an opaque reader besides": lambda: scop(MAKE, USE, ("W", "[]", "[12]", "{may_read: [T], may_write: [Z]}")),
}


@pytest.mark.parametrize("why", REFUSED)
def test_refused(why: str) -> None:
    before = REFUSED[why]()
    assert substitute_forward(before) == before


def test_cells_that_the_producer_does_not_write_are_not_substituted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The reader would have found nothing there: the program is wrong, and stays as wrong as it is."""
    monkeypatch.setattr("polyopt.ir._verify.unwritten_reads", lambda _scop: ())  # the verifier would refuse it
    before = scop(("S", "[i] : 0 <= i < N - 1", "[0, i]", "T[i] = X[i]"), USE)
    assert substitute_forward(before) == before


def test_expressions_stop_growing() -> None:
    """A chain that would be one large expression is cut where it gets too large."""
    long = " + ".join(["X[i]"] * 10)
    rows: list[Row] = [("S", ALL, "[0, i]", f"T[i] = {long}")]
    tensors = TENSORS
    for n in range(1, 6):
        tensors += f"; T{n}[N] float32 temp"
        rows.append((f"S{n}", ALL, f"[{n}, i]", f"T{n}[i] = {'T' if n == 1 else f'T{n - 1}'}[i] + {long}"))
    before = scop(*rows, ("U", ALL, "[9, i]", "Y[i] = T5[i]"), tensors=tensors)
    after = substitute_forward(before)
    assert 1 < len(after.statements) < len(before.statements)
    for s in after.statements:
        assert len(expression_text(s.assign.value).split("X[i]")) <= MAX_NODES
    assert_same(before, after)


def test_inverses() -> None:
    def inverse(domain: str, body: str) -> object:
        order = domain.partition(":")[0].strip()
        made = program("A[4*N, 4*N] float32 inout; k[N] int32 input", ("S", domain, order, body), context="N >= 1")
        return plain_inverse(made.statements[0])

    square = "[i, j] : 0 <= i, j < N"
    assert inverse(ALL, "A[i + 1, N] = 0") == {"i": (0, affine(1))}
    assert inverse(square, "A[j, i + N] = 0") == {"i": (1, var("N")), "j": (0, affine(0))}
    assert inverse(square, "A[i, i + j] = 0") is None
    for body in (
        "A[i, i] = 0",
        "A[2*i, 0] = 0",
        "A[i // 2, 0] = 0",
        "A[k[i], 0] = 0",
        "A[0, 0] = 0",
        "A[N - 1 - i, 0] = 0",
    ):
        assert inverse(ALL, body) is None, body
