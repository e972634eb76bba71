"""One construct of the expression language each: what it becomes, and that its text comes back."""

from __future__ import annotations

import ast
import math

import pytest

from polyopt.errors import Location
from polyopt.frontend._affine import parse_affine, parse_condition
from polyopt.frontend._assignments import parse_assignment
from polyopt.frontend._expressions import parse_access, parse_value
from polyopt.frontend._names import Names
from polyopt.frontend._writer import assignment_text, expression_text
from polyopt.ir import (
    Access,
    Apply,
    Assign,
    Cast,
    Const,
    Expr,
    Index,
    Indirect,
    Read,
    Uninterpreted,
)
from polyopt.sets import Affine, affine, maximum, minimum, var

NAMES = Names(("i", "j"), ("N", "M"), {"A": 2, "x": 1, "I": 1, "s": 0}, lambda node: Location("here", 1))
I_, J, N, M = var("i"), var("j"), var("N"), var("M")
A = Read(Access("A", (I_, J)))
X = Read(Access("x", (I_,)))


def value(text: str) -> Expr:
    return parse_value(ast.parse(text, mode="eval").body, NAMES)


def index(text: str) -> Affine:
    return parse_affine(ast.parse(text, mode="eval").body, NAMES)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("3", affine(3)),
        ("-2*i + j*3 - (N - 1)", I_ * -2 + J * 3 - N + 1),
        ("+i", I_),
        ("(i + 1) // 2 * 2", (I_ + 1) // 2 * 2),
        ("i % 3", I_ % 3),
        ("i // (2*2)", I_ // 4),
        ("-7 // 2", affine(-4)),
        ("-7 % 3", affine(2)),
        ("min(i, N - 1, 4)", minimum(I_, N - 1, 4)),
        ("max(i - 2, 0)", maximum(I_ - 2, 0)),
        ("floor(i / 2)", I_ // 2),
        ("floor(i)", I_),
        ("i - 1 if i > 0 else N - 1", None),
    ],
)
def test_quasi_affine(text: str, expected: Affine | None) -> None:
    got = index(text)
    if expected is not None:
        assert got == expected
    scope = {"floor": math.floor, "min": min, "max": max}
    for i in range(-3, 5):
        for n in (1, 4):
            env = {"i": i, "j": 2, "N": n, "M": 3}
            assert got.evaluate(env) == eval(text, scope, env)


@pytest.mark.parametrize(
    "text",
    [
        "i < j",
        "i <= j < N != M",
        "i == j or i == 3",
        "not (i < j and j < N)",
        "not (i == j or not i > 2)",
        "i % 2",
        "not i",
        "True",
        "not True or i != 0",
        "i - j",
        "N > 2 or True",
        "not (1 < i < 4)",
    ],
)
def test_conditions_mean_what_python_means(text: str) -> None:
    tree = ast.parse(text, mode="eval").body
    for negate in (False, True):
        pieces = parse_condition(tree, NAMES, negate)
        for i in range(-2, 5):
            for j in range(-1, 4):
                env = {"i": i, "j": j, "N": 3, "M": 2}
                held = any(all(c.holds(env) for c in piece) for piece in pieces)
                assert held == (bool(eval(text, {}, env)) != negate)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1.5", Const(1.5)),
        ("True", Const(True)),
        ("inf", Const(math.inf)),
        ("-inf", Const(-math.inf)),
        ("-1e-3", Const(-1e-3)),
        ("2 * 3 - 1", Const(5)),
        ("i + 1", Index(I_ + 1)),
        ("i // 2 % 3", Index(I_ // 2 % 3)),
        ("max(i, j)", Index(maximum(I_, J))),
        ("i * j", Apply("*", (Index(I_), Index(J)))),
        ("i / 2", Apply("/", (Index(I_), Const(2)))),
        ("A[i, j]", A),
        ("s[()]", Read(Access("s", ()))),
        ("-x[i]", Apply("neg", (X,))),
        ("+x[i]", X),
        ("x[i] - 1 - i", Apply("-", (Apply("-", (X, Const(1))), Index(I_)))),
        ("x[i] ** 2", Apply("**", (X, Const(2)))),
        ("min(x[i], 1, i)", Apply("min", (Apply("min", (X, Const(1))), Index(I_)))),
        ("0 < x[i] <= 1", Apply("and", (Apply("<", (Const(0), X)), Apply("<=", (X, Const(1)))))),
        ("x[i] == 0 or not i < 2", Apply("or", (Apply("==", (X, Const(0))), Apply("not", (value("i < 2"),))))),
        ("x[i] if j <= i else -inf", Apply("select", (Apply("<=", (Index(J), Index(I_))), X, Const(-math.inf)))),
        ('cast("bfloat16", x[i])', Cast("bfloat16", X)),
        ("call(f, x[i], i)", Uninterpreted("f", (X, Index(I_)))),
        ("call(f)", Uninterpreted("f", ())),
        ("gelu_tanh(exp(x[i]))", Apply("gelu_tanh", (Apply("exp", (X,)),))),
        ("floor(x[i])", Apply("floor", (X,))),
        ("x[I[i]]", Read(Access("x", (Indirect(Access("I", (I_,))),)))),
        ("x[I[i + 1] + j - 2]", Read(Access("x", (Indirect(Access("I", (I_ + 1,)), J - 2),)))),
        ("x[I[I[i]]]", Read(Access("x", (Indirect(Access("I", (Indirect(Access("I", (I_,))),))),)))),
    ],
)
def test_values(text: str, expected: Expr) -> None:
    assert value(text) == expected
    assert value(expression_text(expected)) == expected


NESTED = [
    "{a} + ({b} + {c})",
    "{a} - ({b} - {c})",
    "({a} < {b}) < {c}",
    "{a} < {b} < {c}",
    "({a} and {b}) or {c}",
    "{a} and ({b} or {c})",
    "{a} if {b} else ({c} if {a} else {b})",
    "({a} if {b} else {c}) if {b} else {a}",
]
INNER = [
    "x[i]",
    "-x[i]",
    "x[i] if x[j] else 1",
    "not x[i]",
    "x[i]**2",
    "(-x[i])**x[j]",
    "x[i] < 1",
    "-2.5",
    "i",
    "i - j",
]


@pytest.mark.parametrize("text", NESTED)
@pytest.mark.parametrize("inner", INNER)
def test_parentheses_come_back(text: str, inner: str) -> None:
    tree = value(text.format(a=f"({inner})", b="A[i, j]", c="i*j"))
    assert value(expression_text(tree)) == tree


def assignment(text: str) -> Assign:
    return parse_assignment(ast.parse(text).body[0], NAMES)


@pytest.mark.parametrize(
    ("text", "combine"),
    [
        ("x[i] = A[i, j]", None),
        ("x[i] += A[i, j]", "+"),
        ("x[i] *= A[i, j]", "*"),
        ("x[i] = max(x[i], A[i, j])", "max"),
        ("x[i] = min(A[i, j], x[i])", "min"),
        ("x[i] = max(x[i], A[i, j], 0.0)", "max"),
        ("x[i] = max(x[j], A[i, j])", None),
        ("x[i] = x[i] + A[i, j]", None),
        ("x[i] = max(x[i], x[i])", None),
        ("x[I[i]] = max(x[I[i]], 1.0)", "max"),
    ],
)
def test_combinations(text: str, combine: str | None) -> None:
    got = assignment(text)
    assert got.combine == combine
    assert assignment(assignment_text(got)) == got


def test_a_combination_holds_the_rest_of_the_arguments() -> None:
    assert assignment("x[i] = max(x[i], A[i, j], 0.0)") == Assign(X.access, Apply("max", (A, Const(0.0))), "max")


def test_accesses() -> None:
    assert parse_access(ast.parse("A[2*i, (j)]", mode="eval").body, NAMES) == Access("A", (I_ * 2, J))
