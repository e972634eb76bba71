"""Order relations, smallest pairs, budgets and functions from relations."""

from __future__ import annotations

import pytest

from polyopt.errors import BudgetError, InputError
from polyopt.sets import (
    Map,
    PairPoint,
    Set,
    before,
    bound_below,
    carried_by,
    differ_first_at,
    function_exprs,
    not_before,
    operation_budget,
    pad_order,
    smallest_pair,
    var,
)

PLANE = Map.parse("[N] -> { S[i, j] -> [i, j] : 0 <= i, j < N }")
LINE = Map.parse("[N] -> { T[k] -> [k, 0] : 0 <= k < N }")


def points(relation: Map, n: int) -> set[tuple[int, ...]]:
    names = [f"a{k}" for k in range(10)]
    width = len(relation.in_dims)
    return set(relation.wrapped(names[:width], names[width : width + relation.out_arity]).points({"N": n}))


def test_before_and_not_before_split_all_pairs() -> None:
    earlier, later = points(before(PLANE, LINE), 3), points(not_before(PLANE, LINE), 3)
    assert earlier == {(i, j, k) for i in range(3) for j in range(3) for k in range(3) if (i, j) < (k, 0)}
    assert later == {(i, j, k) for i in range(3) for j in range(3) for k in range(3) if (i, j) >= (k, 0)}


def test_carried_by_one_dimension() -> None:
    pairs = [(i, j, x, y) for i in range(3) for j in range(3) for x in range(3) for y in range(3)]
    assert points(carried_by(PLANE, PLANE, 1), 3) == {p for p in pairs if p[0] == p[2] and p[1] < p[3]}
    assert points(differ_first_at(PLANE, PLANE, 0), 3) == {p for p in pairs if p[0] != p[2]}


def test_padding() -> None:
    assert pad_order(LINE, 3) == Map.parse("[N] -> { T[k] -> [k, 0, 0] : 0 <= k < N }")
    assert pad_order(LINE, 2) is LINE


def test_the_smallest_pair_follows_the_orders_not_the_iterators() -> None:
    down = Map.parse("[N] -> { S[i] -> [-i] : 0 <= i < N }")
    relation = Map.parse("[N, M] -> { S[i] -> S[j] : 0 <= j < i < N and M >= 5 and N >= 3 }")
    assert smallest_pair(relation, down, down, ["M", "N"]) == PairPoint((5, 3), (-2,), (-1,), (2,), (1,))
    assert smallest_pair(relation, down, down, ["N"]).params == (3,)  # type: ignore[union-attr]
    assert smallest_pair(relation.intersect(relation.reverse()), down, down, ["N"]) is None


def test_no_smallest_pair() -> None:
    order = Map.parse("{ S[i] -> [i] }")
    with pytest.raises(InputError, match="unbounded below"):
        smallest_pair(Map.parse("{ S[i] -> S[i + 1] }"), order, order, [])


def test_sizes_without_a_bound_get_one() -> None:
    context = Set.parse(": M <= 5 and K >= -2", params=["N", "M", "K"])
    assert bound_below(context, ["N", "M", "K"]) == Set.parse(
        ": 0 <= M <= 5 and N >= 0 and K >= -2", params=["N", "M", "K"]
    )


def test_a_size_bounded_by_another_one_only() -> None:
    context = Set.parse(": N + M >= 0", params=["N", "M"])
    assert bound_below(context, ["N", "M"]) == Set.parse(": N >= 0 and M >= 0", params=["N", "M"])
    context = Set.parse(": N >= M >= -3", params=["N", "M"])
    assert bound_below(context, ["N", "M"]) == context


def test_a_budget_is_spent_and_then_forgotten() -> None:
    a = Set.parse("[i, j] : exists (e : i = 3e + j) and 0 <= i <= 50", name="S")
    with pytest.raises(BudgetError, match="thinking took more than 5 operations"), operation_budget("thinking", 5):
        a.subtract(Set.parse("[i, j] : j >= 7", name="S"))
    assert a.subtract(Set.parse("[i, j] : j >= 7", name="S")).name == "S"


def test_other_errors_pass_through_a_budget() -> None:
    with pytest.raises(InputError), operation_budget("reading", 100_000):
        Set.parse("[i", name="S")


def test_budgets_nest() -> None:
    with operation_budget("outer", 1_000_000):
        with pytest.raises(BudgetError, match="inner"), operation_budget("inner", 1):
            Set.parse("[i] : 0 <= i < 5", name="S").points()
        assert Set.parse("[i] : 0 <= i < 2", name="S").points() == [(0,), (1,)]


def test_functions_from_relations() -> None:
    relation = Map.parse("[N] -> { S[i, j] -> [floor(i/2), i + j, N] : 0 <= i, j < N }")
    assert function_exprs(relation, ["a", "b"]) == (var("a") // 2, var("a") + "b", var("N"))
    with pytest.raises(InputError, match="not a function"):
        function_exprs(relation.reverse(), ["x", "y", "z"])
