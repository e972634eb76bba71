"""Stand-ins give the same integers for Python integers and arrays of every type, and keep their identities."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from polyopt.ir.standins import FIELD, INFINITY, STANDINS, canonical, standin, standin_call, standin_constant

UNARY = sorted(op for op in STANDINS if op not in ("/", "**"))
NUMBERS = range(-40, 41)


@pytest.mark.parametrize("op", sorted(STANDINS))
@pytest.mark.parametrize("dtype", [np.int64, np.float64, object])
def test_arrays_agree_with_python_integers(op: str, dtype: type) -> None:
    pairs = [(a, b) for a in NUMBERS for b in range(-9, 10)]
    cases = pairs if op in ("/", "**") else [(a,) for a in NUMBERS]
    expected = [standin(op, *case) for case in cases]
    assert all(type(e) is int for e in expected)
    columns: list[Any] = [np.array([case[k] for case in cases]).astype(dtype) for k in range(len(cases[0]))]
    assert [int(v) for v in standin(op, *columns)] == expected


@pytest.mark.parametrize("dtype", [np.int64, np.float64, object])
def test_representatives_are_nearest_to_zero(dtype: type) -> None:
    numbers = [0, 1, -1, FIELD // 2, FIELD // 2 + 1, -(FIELD // 2), -(FIELD // 2) - 1, FIELD, 10**12, -(10**12)]
    expected = [canonical(n) for n in numbers]
    for n, c in zip(numbers, expected, strict=True):
        assert (n - c) % FIELD == 0 and abs(c) <= FIELD // 2
    assert [int(v) for v in canonical(np.array(numbers).astype(dtype))] == expected


def test_identities() -> None:
    for x in NUMBERS:
        assert standin("rsqrt", x) == standin("reciprocal", standin("sqrt", x))
        assert standin("sigmoid", x) == standin("reciprocal", 1 + standin("exp", -x))
        assert standin("silu", x) == x * standin("sigmoid", x)
        assert standin("/", x, 4) == x * standin_constant(0.25)
        assert [standin("**", x, n) for n in range(4)] == [1, x, x * x, x * x * x]
        for odd in ("sin", "tanh", "erf"):
            assert standin(odd, -x) == -standin(odd, x)
    assert standin("exp", 0) == standin("cos", 0) == standin("reciprocal", 1) == 1


def test_values_stay_small_and_tell_arguments_apart() -> None:
    for op in UNARY:
        values = [standin(op, x) for x in NUMBERS]
        assert max(map(abs, values)) <= 40 * 13
        assert len(set(values)) >= 4


@pytest.mark.parametrize(
    ("literal", "expected"),
    [
        (3, 3),
        (3.0, 3),
        (-2.0, -2),
        (True, 1),
        (math.inf, INFINITY),
        (-1e30, -INFINITY),
        (math.nan, 0),
        (-3.4e38, -INFINITY),
    ],
)
def test_literals_that_are_integers_or_huge(literal: float, expected: int) -> None:
    assert standin_constant(literal) == expected


def test_a_literal_and_its_float32_rounding_agree() -> None:
    for literal in (0.1, 1 / 3, -0.7978845608028654, 1e-6, 0.044715, 1 / 512):
        value = standin_constant(literal)
        assert value != 0
        assert value == standin_constant(float(np.float32(literal)))
    assert standin_constant(1 / 3) == standin("/", 1, 3)


def test_uninterpreted_functions_depend_on_name_and_every_argument() -> None:
    assert standin_call("f", 1, 2) == int(standin_call("f", np.array(1), np.array(2)))
    assert len({standin_call("f", k, 5) for k in range(13)}) == 13
    assert len({standin_call("f", 5, k) for k in range(13)}) == 13
    assert len({standin_call(name, 3) for name in "fghijklm"}) > 3


def test_unknown_operator() -> None:
    with pytest.raises(KeyError, match="tanh"):
        standin("tanhh", 1)
