"""What a reduction's kernel takes over, and every reason not to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
import pytest

from polyopt.frontend import assignment_text, expression_text
from polyopt.ir import Scop
from polyopt.reference import inputs, interpret
from polyopt.schedule import Absorbed, LoopTree, absorb, compute_dependences, distribute, leaves, normalise
from tests.property._absorbed import written_out
from tests.unit.schedule._scops import program

Row = tuple[str, str, str, str]
LINE, SQUARE = "[i] : 0 <= i < N", "[i, j] : 0 <= i, j < N"
TENSORS = (
    "X[N, N] float32 inout; v[N] float32 inout; C[N] float32 temp; D[N] float32 inout; E[N] float32 inout;"
    " k[N] int32 input"
)
ALL_OUTSIDE = TENSORS.replace("C[N] float32 temp", "C[N] float32 inout")
START: Row = ("S", LINE, "[0, i]", "C[i] = 0")
SUM: Row = ("R", SQUARE, "[4, i, j]", "C[i] += X[i, j]")
USE: Row = ("U", LINE, "[8, i]", "D[i] = relu(C[i]) + v[i]")


def scop(*rows: Row, tensors: str = TENSORS) -> Scop:
    return program(tensors, *rows, context="N >= 1", reassociate=True)


def absorbed(source: Scop) -> tuple[Scop, tuple[LoopTree, ...], Mapping[str, Absorbed]]:
    """The distributed program with what is absorbed; written out again it computes the same."""
    normal = normalise(source)
    distributed, tree = distribute(normal, compute_dependences(normal))
    kept, taken = absorb(distributed, tree)
    arrays = inputs(source, {"N": 4}, mode="exact")
    expected = interpret(source, arrays, {"N": 4}, "exact")
    for name, values in interpret(written_out(distributed, kept, taken), arrays, {"N": 4}, "exact").items():
        assert np.array_equal(values, expected[name]), name
    return distributed, kept, taken


def initial(source: Scop) -> str | None:
    """What R's accumulator starts with, in R's iterators, as text; None when nothing is taken over."""
    _, kept, taken = absorbed(source)
    found = taken.get("R", Absorbed())
    assert ("S" in [leaf.statement for leaf in leaves(kept)]) == (found.before is None)
    assert (found.before is None) == (found.initial is None)
    return None if found.initial is None else expression_text(found.initial)


def finish(source: Scop) -> str | None:
    """What R's kernel writes, in R's iterators, as text; None when no use is taken over."""
    _, kept, taken = absorbed(source)
    found = taken.get("R", Absorbed())
    assert ("U" in [leaf.statement for leaf in leaves(kept)]) == (found.behind is None)
    assert (found.behind is None) == (found.finish is None)
    return None if found.finish is None else assignment_text(found.finish)


def test_both_ends() -> None:
    _, kept, taken = absorbed(scop(START, SUM, USE))
    assert [leaf.statement for leaf in leaves(kept)] == ["R"]
    found = taken["R"]
    assert found.before is not None and found.before.statement == "S"
    assert found.behind is not None and found.behind.statement == "U"


# -- the beginning ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("start", "total", "expected"),
    [
        (START, SUM, "0"),
        (("S", LINE, "[0, i]", "C[i] = v[i] * 2"), SUM, "v[i] * 2"),
        (("S", "[a] : 1 <= a <= N", "[0, a]", "C[a - 1] = v[N - a] + a"), SUM, "v[N - i - 1] + (i + 1)"),
        (START, ("R", SQUARE, "[4, i, j]", "C[j] += X[i, j]"), "0"),
        (
            ("S", LINE, "[0, i]", "C[i] = v[i]"),
            ("R", SQUARE, "[4, i, j]", "C[N - 1 - j] = max(C[N - 1 - j], X[i, j])"),
            "v[N - j - 1]",
        ),
        (START, ("R", SQUARE, "[4, j, i]", "C[i] += X[i, j]"), "0"),
        (("S", LINE, "[0, i, 0]", "C[i] = 1"), ("R", SQUARE, "[0, i, 1, j]", "C[i] *= X[i, j]"), "1"),
    ],
)
def test_the_initial_value_in_the_reductions_iterators(start: Row, total: Row, expected: str) -> None:
    assert initial(scop(start, total, USE)) == expected


def test_a_statement_between_that_has_nothing_to_do_with_it() -> None:
    assert initial(scop(START, ("W", LINE, "[2, i]", "E[i] = v[i]"), SUM, USE)) == "0"


def test_inside_a_sequential_loop() -> None:
    source = program(
        "X[N, N] float32 input; v[N] float32 inout; C[N] float32 temp; D[N] float32 inout",
        ("S", "[t, i] : 0 <= t, i < N", "[t, 0, i]", "C[i] = v[N - 1 - i]"),
        ("R", "[t, i, j] : 0 <= t, i, j < N", "[t, 1, i, j]", "C[i] += X[i, j] * v[j]"),
        ("U", "[t, i] : 0 <= t, i < N", "[t, 2, i]", "D[i] = C[i] - t"),
        ("W", "[t, i] : 0 <= t, i < N", "[t, 3, i]", "v[i] = D[i]"),
        reassociate=True,
    )
    _, kept, taken = absorbed(source)
    (loop,) = kept
    assert [leaf.statement for leaf in leaves((loop,))] == ["R", "W"]
    found = taken["R"]
    assert found.initial is not None and expression_text(found.initial) == "v[N - i - 1]"
    assert found.finish is not None and assignment_text(found.finish) == "D[i] = C[i] - t"


def test_the_second_reduction_starts_from_the_first() -> None:
    """Two reductions into one tensor: only the first one has the initialisation in front of it."""
    again: Row = ("Q", SQUARE, "[5, i, j]", "C[i] += X[j, i]")
    _, kept, taken = absorbed(scop(START, SUM, again, USE))
    assert taken["R"].before is not None
    assert taken.get("Q", Absorbed()).before is None
    assert "S" not in [leaf.statement for leaf in leaves(kept)]


NOT_BEFORE: dict[str, Callable[[], Scop]] = {
    "too few cells": lambda: scop(("S", "[i] : 1 <= i < N", "[0, i]", "C[i] = 0"), SUM, USE, tensors=ALL_OUTSIDE),
    "too many cells": lambda: scop(START, ("R", f"{SQUARE} and i >= 1", "[4, i, j]", SUM[3]), USE),
    "too many cells of another shape": lambda: scop(START, ("R", f"{SQUARE} and j < i", "[4, i, j]", SUM[3]), USE),
    "read in between": lambda: scop(START, ("W", LINE, "[2, i]", "E[i] = C[i]"), SUM, USE),
    "an operand overwritten in between": lambda: scop(
        ("S", LINE, "[0, i]", "C[i] = v[i]"), ("W", LINE, "[2, i]", "v[i] = 1"), SUM, USE
    ),
    "the reduction reads its own tensor": lambda: scop(
        START, ("R", SQUARE, "[4, i, j]", "C[i] += X[i, j] * C[0]"), USE
    ),
    "the initial value combines": lambda: scop(("S", LINE, "[0, i]", "C[i] += 1"), SUM, USE, tensors=ALL_OUTSIDE),
    "the initial value is read from its own tensor": lambda: scop(
        ("S", LINE, "[0, i]", "C[i] = C[i] * 2"), SUM, USE, tensors=ALL_OUTSIDE
    ),
    "the next toucher is no reduction": lambda: scop(START, ("R", SQUARE, "[4, i, j]", "E[i] += X[i, j]"), USE),
    "the next toucher is inside a loop": lambda: scop(
        START, ("R", SQUARE, "[4, j, i]", "C[i] = C[i] * X[i, j] - 1"), USE
    ),
    "the last writer is not the first": lambda: scop(("S", SQUARE, "[0, i, j]", "C[i] = X[i, j]"), SUM, USE),
    "the target is data-dependent": lambda: scop(START, ("R", LINE, "[4, i]", "C[k[i]] += v[i]"), USE),
}


@pytest.mark.parametrize("why", NOT_BEFORE)
def test_initialisations_that_stay(why: str) -> None:
    assert initial(NOT_BEFORE[why]()) is None


# -- the end ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("total", "use", "expected"),
    [
        (SUM, USE, "D[i] = relu(C[i]) + v[i]"),
        (SUM, ("U", LINE, "[8, i]", "X[0, i] = C[i]"), None),
        (SUM, ("U", "[a] : 0 <= a < N", "[8, a]", "D[a] = C[a] / v[N - 1 - a]"), "D[i] = C[i] / v[N - i - 1]"),
        (("R", SQUARE, "[4, i, j]", "C[j] += X[i, j]"), USE, "D[j] = relu(C[j]) + v[j]"),
        (SUM, ("U", LINE, "[8, i]", "D[i] += C[i]"), "D[i] = D[i] + C[i]"),
        (SUM, ("U", LINE, "[8, i]", "D[i] = C[i] * C[i]"), "D[i] = C[i] * C[i]"),
    ],
)
def test_the_use_in_the_reductions_iterators(total: Row, use: Row, expected: str | None) -> None:
    assert finish(scop(START, total, use)) == expected


def test_a_use_that_waits_for_something_unrelated() -> None:
    assert finish(scop(START, SUM, ("W", LINE, "[6, i]", "E[i] = 3"), USE)) == "D[i] = relu(C[i]) + v[i]"


NOT_BEHIND: dict[str, Callable[[], Scop]] = {
    "the total is an output": lambda: scop(START, SUM, USE, tensors=ALL_OUTSIDE),
    "a second reader": lambda: scop(START, SUM, USE, ("W", LINE, "[9, i]", "E[i] = C[i]")),
    "an earlier reader of the same tensor": lambda: scop(
        ("V", LINE, "[0, i]", "C[i] = 7"),
        ("W", LINE, "[1, i]", "E[i] = C[i]"),
        ("S", LINE, "[2, i]", "C[i] = 0"),
        SUM,
        USE,
    ),
    "too few cells used": lambda: scop(START, SUM, ("U", "[i] : 1 <= i < N", "[8, i]", USE[3])),
    "used at two cells": lambda: scop(START, SUM, ("U", LINE, "[8, i]", "D[i] = C[i] + C[0]")),
    "one cell used several times": lambda: scop(START, SUM, ("U", SQUARE, "[8, i, j]", "X[i, j] = C[i]")),
    "an operand of the use written between": lambda: scop(START, SUM, ("W", LINE, "[6, i]", "v[i] = 1"), USE),
    "the target of the use read between": lambda: scop(START, SUM, ("W", LINE, "[6, i]", "E[i] = D[i]"), USE),
    "the target of the use written between": lambda: scop(START, SUM, ("W", LINE, "[6, i]", "D[i] = 1"), USE),
    "the target of the use read by the reduction": lambda: scop(
        START, ("R", SQUARE, "[4, i, j]", "C[i] += X[i, j] * D[j]"), USE
    ),
    "the target of the use read by the initial value": lambda: scop(
        ("S", LINE, "[0, i]", "C[i] = D[N - 1 - i]"), SUM, ("U", LINE, "[8, i]", "D[i] = C[i]")
    ),
    "the total written again between": lambda: scop(START, SUM, ("W", LINE, "[6, i]", "C[i] = 1"), USE),
    "the use writes the total": lambda: scop(
        START, SUM, ("U", LINE, "[8, i]", "C[i] = C[i] * 2"), ("V", LINE, "[9, i]", "D[i] = C[i]")
    ),
    "used as a subscript": lambda: program(
        "X[N, N] int32 input; C[N] int32 temp; D[N] float32 inout; v[2*N] float32 input",
        START,
        ("R", SQUARE, "[4, i, j]", "C[i] = max(C[i], min(X[i, j], 0))"),
        ("U", LINE, "[8, i]", "D[i] = v[C[i]]"),
        reassociate=True,
    ),
    "used at a place that data decides": lambda: scop(START, SUM, ("U", LINE, "[8, i]", "D[i] = C[k[i]]")),
    "written at a place that data decides": lambda: scop(START, SUM, ("U", LINE, "[8, i]", "D[k[i]] = C[i]")),
    "several uses write one cell": lambda: scop(START, SUM, ("U", LINE, "[8, i]", "D[0] = C[i]")),
    "used inside a loop": lambda: scop(START, SUM, ("U", "[i] : 1 <= i < N", "[8, i]", "D[i] = D[i - 1] * C[i]")),
}


@pytest.mark.parametrize("why", NOT_BEHIND)
def test_uses_that_stay(why: str) -> None:
    assert finish(NOT_BEHIND[why]()) is None


def test_nothing_is_absorbed_without_a_reduction() -> None:
    source = scop(START, ("W", LINE, "[2, i]", "D[i] = C[i]"))
    distributed, kept, taken = absorbed(source)
    assert not taken
    assert [leaf.statement for leaf in leaves(kept)] == ["S", "W"]
    assert absorb(distributed, ()) == ((), {})


def test_calls_are_left_alone() -> None:
    source = scop(START, SUM, ("W", "[]", "[6]", "{may_read: [C], may_write: [D]}"))
    normal = normalise(source)
    _, taken = absorb(*distribute(normal, compute_dependences(normal)))
    assert taken["R"].before is not None and taken["R"].finish is None
    source = scop(START, ("W", "[]", "[2]", "{may_read: [C], may_write: [D]}"), SUM)
    normal = normalise(replace(source))
    _, taken = absorb(*distribute(normal, compute_dependences(normal)))
    assert not taken
