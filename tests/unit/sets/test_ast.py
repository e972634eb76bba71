"""isl's AST expressions mean the same as values of polyopt: every operator, at numbers of both signs."""

from __future__ import annotations

import islpy as isl
import pytest

from polyopt.ir import condition_text, loops_text
from polyopt.sets import (
    AllOf,
    AnyOf,
    Condition,
    Map,
    Set,
    loops,
    loops_of_orders,
    negation,
)
from polyopt.sets._ast import _affine, _condition, _operation

REACH = range(-9, 10)
"""Values of the two sizes at which expressions are compared."""


def operators(expr: isl.AstExpr) -> set[str]:
    op, args = _operation(expr)
    return {op, *(o for a in args for o in operators(a))} - {""} if op else set()


def build(context: str = "") -> isl.AstBuild:
    return isl.AstBuild.from_context(isl.Set(f"[N, M] -> {{ : {context or 'N = N'} }}"))


@pytest.mark.parametrize(
    ("text", "context", "expected"),
    [
        ("N - 3M + 4", "", {"add", "sub", "mul"}),
        ("-N", "", {"minus"}),
        ("floor(N/3)", "", {"fdiv_q"}),
        ("floor((N - 2M)/5)", "", {"fdiv_q", "sub", "mul"}),
        ("floor(N/3)", "N >= 0", {"pdiv_q"}),
        ("N mod 4", "N >= 0", {"pdiv_r"}),
        ("(N - M) mod 4", "", {"sub", "mul", "fdiv_q"}),
        ("N/2", "N mod 2 = 0", {"div"}),
    ],
)
def test_operators_of_functions(text: str, context: str, expected: set[str]) -> None:
    function = isl.PwAff(f"[N, M] -> {{ [({text})] }}")
    compare(function, context, expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{ [(max(N, 2M))] }", {"select"}),
        ("{ [(min(N, M, 3))] }", {"select"}),
        ("{ [(N)] : N >= M; [(M)] : M > N }", {"select", "ge"}),
        ("{ [(N)] : N <= M; [(M)] : M < N }", {"select"}),
        ("{ [(N + 1)] : N >= 2; [(M)] : N < 2 }", {"select", "add"}),
        ("{ [(1)] : N >= 2 or M >= 3; [(0)] : N < 2 and M < 3 }", {"select"}),
        ("{ [(1)] : N = 2 and M >= 3; [(7)] : M < 3; [(floor(N/2))] : M >= 3 and N != 2 }", {"select"}),
        ("{ [(M)] : N mod 3 = 0; [(-M)] : N mod 3 > 0 }", {"select"}),
    ],
)
def test_operators_of_functions_in_pieces(text: str, expected: set[str]) -> None:
    compare(isl.PwAff(f"[N, M] -> {text}"), "", expected)


def compare(function: isl.PwAff, context: str, expected: set[str]) -> None:
    expr = build(context).expr_from_pw_aff(function)
    found = operators(expr)
    assert {o.replace("cond", "select") for o in found} >= expected
    value = _affine(expr, {})
    domain = isl.Set(f"[N, M] -> {{ : {context or 'N = N'} }}")
    for n in REACH:
        for m in REACH:
            at = isl.Set(f"[N, M] -> {{ : N = {n} and M = {m} }}")
            if not at.is_subset(domain):
                continue
            true = isl.PwAff.eval(
                function, isl.Set(f"[N, M] -> {{ [] : N = {n} and M = {m} }}").params().sample_point()
            )
            assert value.evaluate({"N": n, "M": m}) == int(true.to_python()), (str(expr.to_C_str()), n, m)


def holds(condition: Condition, n: int, m: int) -> bool:
    return bool(eval(condition_text(condition), {"N": n, "M": m}))


@pytest.mark.parametrize(
    "text",
    [
        "N >= 3",
        "N > M",
        "N = 2M",
        "N != 3",
        "N <= M or M <= 2",
        "(N >= 1 and M >= 2) or (N <= -2 and M = 1)",
        "N mod 3 = 0",
        "N mod 3 = 1 and M mod 2 = 1",
        "exists a : 3a <= N < 3a + 2",
        "2*floor(N/2) >= M",
        "N = N",
        "N > N",
    ],
)
def test_conditions(text: str) -> None:
    wanted = isl.Set(f"[N, M] -> {{ : {text} }}")
    condition = _condition(build().expr_from_set(wanted), {})
    for n in REACH:
        for m in REACH:
            inside = isl.Set(f"[N, M] -> {{ : N = {n} and M = {m} }}").is_subset(wanted)
            assert holds(condition, n, m) == inside, (condition_text(condition), n, m)
            assert holds(negation(condition), n, m) != inside


def test_conditions_without_parts() -> None:
    assert condition_text(AllOf(())) == "True"
    assert condition_text(AnyOf(())) == "False"
    assert negation(AllOf(())) == AnyOf(())


def test_strides_are_steps_and_remainders_are_guards() -> None:
    context = Set.parse("N >= 0", params=["N"])
    strided = Map.parse("[N] -> { S[i] -> [i, 0] : 0 <= i < N and i mod 3 = 1 }")
    root = loops_of_orders([strided], context, members={})
    assert [(f.lower.const, f.step) for f in loops(root)] == [(1, 3)]
    every = Map.parse("[N] -> { T[i] -> [i, 1] : 0 <= i < N }")
    assert loops_text(loops_of_orders([strided, every], context, members={})) == (
        "for c0 in range(0, N):\n    if c0 - 3*((c0 + 2)//3) + 2 == 0:\n        S(c0)\n    T(c0)\n"
    )


def test_bounds_are_minima_and_maxima() -> None:
    order = Map.parse("[N, M] -> { S[i] -> [i] : 0 <= i < N and M <= i < 7 and 2i >= M }")
    (only,) = loops(loops_of_orders([order], Set.parse("", params=["N", "M"]), members={}))
    for n in REACH:
        for m in REACH:
            at = {"N": n, "M": m}
            ran = range(only.lower.evaluate(at), only.upper.evaluate(at) + 1)
            assert list(ran) == [i for i in range(-20, 20) if 0 <= i < n and m <= i < 7 and 2 * i >= m]
    assert "max(" in only.lower.python()
    assert "min(" in only.upper.python()
