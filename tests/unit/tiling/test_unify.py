"""Unification: every match, put back into the pattern, is the expression."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polyopt.ir import Access, Apply, Const, Expr, Index, Read, rewrite, walk
from polyopt.machine import IndexRef, MaskRef, OperandRef, Pattern, ScalarRef, machine
from polyopt.sets import Constraint, affine, var
from polyopt.tiling._unify import COMMUTATIVE, Match, affine_condition, affine_value, unify

TRN2 = machine("trn2")
i, j, N = var("i"), var("j"), var("N")


def read(name: str, *subscripts: str) -> Expr:
    return Read(Access(name, tuple(affine(s) for s in subscripts)))


A, B, C = (read(n, "i") for n in "ABC")


def plus(a: Expr, b: Expr) -> Expr:
    return Apply("+", (a, b))


def times(a: Expr, b: Expr) -> Expr:
    return Apply("*", (a, b))


def matches(spec: str, form: int, expr: Expr, *, scalars: tuple[Expr, ...] = ()) -> list[Match]:
    value = TRN2.spec(spec).forms[form].value
    return list(unify(value, expr, lambda e: isinstance(e, Const) or e in scalars))


def bound(m: Match) -> dict[str, Expr]:
    return {ref.name: e for ref, e in m.operands} | dict(m.scalars)


# -- known matches ---------------------------------------------------------------------------------------------------
def test_a_product_matches_in_both_orders_whatever_it_is_a_product_of() -> None:
    first, second = matches("matmul", 0, times(A, plus(B, C)))
    assert bound(first) == {"W": A, "X": plus(B, C)}
    assert bound(second) == {"W": plus(B, C), "X": A}
    assert not matches("matmul", 0, plus(A, B))


def test_functions_are_chosen_by_slots() -> None:
    (found,) = matches("activation", 4, Apply("tanh", (A,)))
    assert bound(found) == {"X": A} and found.slots == (("func", "tanh"),)
    assert not matches("activation", 4, Apply("floor", (A,)))


def test_scale_and_bias() -> None:
    expr = Apply("exp", (plus(times(A, Const(2.0)), B),))
    (found,) = matches("activation", 0, expr, scalars=(B,))
    assert bound(found) == {"X": A, "scale": Const(2.0), "bias": B}
    swapped = Apply("exp", (plus(B, times(Const(2.0), A)),))
    assert [bound(m) for m in matches("activation", 0, swapped, scalars=(B,))] == [bound(found)]
    assert not matches("activation", 0, expr)  # B moves along the free lanes


def test_subtraction_is_not_turned_round() -> None:
    expr = Apply("exp", (Apply("-", (A, B)),))
    assert [bound(m) for m in matches("activation", 3, expr, scalars=(B,))] == [{"X": A, "bias": B}]
    turned = Apply("exp", (Apply("-", (B, A)),))
    assert not matches("activation", 3, turned, scalars=(B,))


def test_two_operators_in_one_instruction() -> None:
    expr = Apply("max", (times(A, Const(3.0)), Const(0.0)))
    found = matches("tensor_scalar", 0, expr)
    assert {"A": A, "s0": Const(3.0), "s1": Const(0.0)} in [bound(m) for m in found]
    assert all(dict(m.slots) == {"op0": "*", "op1": "max"} for m in found)


def test_masks() -> None:
    below = Apply("<=", (Index(j), Index(i)))
    (found,) = matches("affine_select", 0, Apply("select", (below, A, Const(0.0))))
    assert found.mask == (Constraint(i - j),)
    assert bound(found) == {"A": A, "s0": Const(0.0)}
    by_data = Apply("<", (A, B))
    assert not matches("affine_select", 0, Apply("select", (by_data, A, Const(0.0))))


def test_indices() -> None:
    (found,) = matches("iota", 0, plus(Index(i), times(Const(2), Index(j))))
    assert found.index == i + j * 2 and not found.operands
    assert not matches("iota", 0, A)


def test_constants_are_scalars() -> None:
    (found,) = matches("memset", 0, Const(3.0))
    assert found.scalars == (("s0", Const(3.0)),)
    assert not matches("memset", 0, A)


def test_a_repeated_operand_is_bound_twice() -> None:
    assert [bound(m) for m in matches("tensor_tensor", 0, times(A, A))] == [{"A": A, "B": A}] * 2


# -- every match is the expression -----------------------------------------------------------------------------------
leaves = st.one_of(
    st.sampled_from([A, B, C]),
    st.sampled_from([Const(0.0), Const(2.0), Const(3)]),
    st.sampled_from([Index(i), Index(j + 1), Index(i - N)]),
)


def grow(inner: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    binary = st.sampled_from(["+", "-", "*", "min", "max", "/", "<", "<=", ">", ">=", "==", "!=", "and", "or"])
    return st.one_of(
        st.builds(lambda op, a, b: Apply(op, (a, b)), binary, inner, inner),
        st.builds(lambda op, a: Apply(op, (a,)), st.sampled_from(["exp", "relu", "neg", "not", "tanh"]), inner),
        st.builds(lambda c, a, b: Apply("select", (c, a, b)), inner, inner, inner),
    )


expressions = st.recursive(leaves, grow, max_leaves=6)
PATTERNS = [(s.name, k, f.value) for s in TRN2.instructions for k, f in enumerate(s.forms)]


def put_back(pattern: Pattern, m: Match, operands: Iterator[tuple[OperandRef, Expr]], mask: Expr | None) -> Expr:
    """The expression that the pattern stands for; operands in the order of their occurrence."""
    if isinstance(pattern, OperandRef):
        ref, expr = next(operands)
        assert ref == pattern
        return expr
    if isinstance(pattern, ScalarRef):
        return dict(m.scalars)[pattern.name]
    if isinstance(pattern, MaskRef):
        assert mask is not None
        return mask
    if isinstance(pattern, IndexRef):
        assert m.index is not None
        return Index(m.index)
    op = dict(m.slots)[pattern.slot] if pattern.slot else pattern.op
    return Apply(op, tuple(put_back(a, m, operands, mask) for a in pattern.args))


def canonical(expr: Expr) -> Expr:
    """Arguments of commutative operators in one order."""

    def change(e: Expr) -> Expr:
        if isinstance(e, Apply) and e.op in COMMUTATIVE:
            return Apply(e.op, tuple(sorted(e.args, key=repr)))
        return e

    return rewrite(expr, change)


@settings(max_examples=150)
@given(expressions, st.sets(st.sampled_from([A, B, C]), max_size=2))
def test_a_match_put_back_is_the_expression(expr: Expr, scalars: set[Expr]) -> None:
    for _, _, pattern in PATTERNS:
        for m in unify(pattern, expr, lambda e: isinstance(e, Const) or e in scalars):
            for _, s in m.scalars:
                assert isinstance(s, Const) or s in scalars
            mask = next((e.args[0] for e in walk(expr) if isinstance(e, Apply) and e.op == "select"), None)
            again = put_back(pattern, m, iter(m.operands), mask)
            if m.index is not None:
                assert affine_value(expr) == m.index
            else:
                assert canonical(again) == canonical(expr)


# -- affine values and conditions ------------------------------------------------------------------------------------
affine_leaves = st.one_of(
    st.sampled_from([Index(i), Index(j), Index(i - j + 1), Index(N)]), st.integers(-3, 3).map(Const)
)


def grow_affine(inner: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    return st.one_of(
        st.builds(lambda op, a, b: Apply(op, (a, b)), st.sampled_from(["+", "-", "*"]), inner, inner),
        st.builds(lambda a: Apply("neg", (a,)), inner),
    )


numbers = st.recursive(affine_leaves, grow_affine, max_leaves=4)
comparisons = st.builds(
    lambda op, a, b: Apply(op, (a, b)), st.sampled_from(["<", "<=", ">", ">=", "==", "!="]), numbers, numbers
)
conditions = st.recursive(
    comparisons,
    lambda inner: st.one_of(
        st.builds(lambda op, a, b: Apply(op, (a, b)), st.sampled_from(["and", "or"]), inner, inner),
        st.builds(lambda a: Apply("not", (a,)), inner),
    ),
    max_leaves=3,
)
PYTHON: dict[str, Any] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "neg": lambda a: -a,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "and": lambda a, b: a and b,
    "or": lambda a, b: a or b,
    "not": lambda a: not a,
}
GRID = [{"i": a, "j": b, "N": c} for a, b, c in itertools.product(range(-2, 3), range(-2, 3), (0, 3))]


def value_at(expr: Expr, env: dict[str, int]) -> Any:
    if isinstance(expr, Const):
        return expr.value
    if isinstance(expr, Index):
        return expr.value.evaluate(env)
    assert isinstance(expr, Apply)
    return PYTHON[expr.op](*(value_at(a, env) for a in expr.args))


@settings(max_examples=100)
@given(numbers)
def test_affine_values(expr: Expr) -> None:
    found = affine_value(expr)
    if found is not None:
        assert all(found.evaluate(env) == value_at(expr, env) for env in GRID)
    if all(not (isinstance(e, Apply) and e.op == "*") for e in walk(expr)):
        assert found is not None


@settings(max_examples=150)
@given(conditions)
def test_affine_conditions(expr: Expr) -> None:
    """A conjunction of constraints means just the condition; nothing is claimed about disjunctions."""
    found = affine_condition(expr)
    if found is not None:
        for env in GRID:
            assert all(c.holds(env) for c in found) == bool(value_at(expr, env))


@pytest.mark.parametrize(
    "expr",
    [
        Apply("or", (Apply("<", (Index(i), Index(j))), Apply("<", (Index(j), Index(i))))),
        Apply("!=", (Index(i), Index(j))),
        Apply("not", (Apply("==", (Index(i), Index(j))),)),
        Apply("<", (A, Index(i))),
        Apply("<", (Index(i), Const(0.5))),
        Index(i),
        Apply("<", (Apply("*", (Index(i), Index(j))), Const(0))),
    ],
)
def test_what_is_no_conjunction_of_affine_constraints(expr: Expr) -> None:
    assert affine_condition(expr) is None
