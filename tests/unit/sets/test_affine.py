"""Quasi-affine expressions against the same arithmetic on Python's integers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from polyopt.errors import NotAffineError
from polyopt.sets import (
    Affine,
    Constraint,
    Interval,
    Map,
    Set,
    affine,
    interval,
    maximum,
    minimum,
    select,
    simplify,
    var,
)

NAMES = ("i", "j", "N")
i, j, N = (var(n) for n in NAMES)
Env = Mapping[str, int]


@dataclass(frozen=True)
class Both:
    """An expression and the Python function that it should be."""

    expr: Affine
    value: Callable[[Env], int]


@dataclass(frozen=True)
class Condition:
    row: Constraint
    value: Callable[[Env], bool]


def leaf(name: str) -> Both:
    return Both(var(name), lambda env: env[name])


def number(n: int) -> Both:
    return Both(affine(n), lambda env: n)


def condition(e: Both, equality: bool) -> Condition:
    if equality:
        return Condition(Constraint(e.expr, True), lambda env: e.value(env) == 0)
    return Condition(Constraint(e.expr), lambda env: e.value(env) >= 0)


def choice(conditions: list[Condition], then: Both, other: Both) -> Both:
    rows = [c.row for c in conditions]
    return Both(
        select(rows, then.expr, other.expr),
        lambda env: then.value(env) if all(c.value(env) for c in conditions) else other.value(env),
    )


def extend(inner: st.SearchStrategy[Both]) -> st.SearchStrategy[Both]:
    factors, divisors = st.integers(-3, 3), st.integers(1, 4)
    return st.one_of(
        st.builds(lambda a, b: Both(a.expr + b.expr, lambda env: a.value(env) + b.value(env)), inner, inner),
        st.builds(lambda a, b: Both(a.expr - b.expr, lambda env: a.value(env) - b.value(env)), inner, inner),
        st.builds(lambda a: Both(-a.expr, lambda env: -a.value(env)), inner),
        st.builds(lambda a, c: Both(a.expr * c, lambda env: a.value(env) * c), inner, factors),
        st.builds(lambda a, c: Both(c - a.expr, lambda env: c - a.value(env)), inner, factors),
        st.builds(lambda a, d: Both(a.expr // d, lambda env: a.value(env) // d), inner, divisors),
        st.builds(lambda a, d: Both(a.expr % d, lambda env: a.value(env) % d), inner, divisors),
        st.builds(
            lambda parts: Both(minimum(*(p.expr for p in parts)), lambda env: min(p.value(env) for p in parts)),
            st.lists(inner, min_size=1, max_size=3),
        ),
        st.builds(
            lambda parts: Both(maximum(*(p.expr for p in parts)), lambda env: max(p.value(env) for p in parts)),
            st.lists(inner, min_size=1, max_size=3),
        ),
        st.builds(choice, st.lists(st.builds(condition, inner, st.booleans()), min_size=1, max_size=2), inner, inner),
    )


leaves = st.one_of(st.sampled_from(NAMES).map(leaf), st.integers(-4, 4).map(number))
expressions = st.recursive(leaves, extend, max_leaves=8)
environments = st.fixed_dictionaries({n: st.integers(-9, 9) for n in NAMES})


@settings(max_examples=100)
@given(expressions, environments)
def test_every_operation_is_pythons(e: Both, env: dict[str, int]) -> None:
    assert e.expr.evaluate(env) == e.value(env)
    assert Constraint(e.expr).holds(env) == (e.value(env) >= 0)
    assert Constraint(e.expr, True).holds(env) == (e.value(env) == 0)


@settings(max_examples=100)
@given(expressions, environments)
def test_python_text_is_the_expression(e: Both, env: dict[str, int]) -> None:
    assert eval(e.expr.python(), {"__builtins__": {}, "min": min, "max": max}, dict(env)) == e.value(env)
    text = Constraint(e.expr).python()
    assert eval(text, {"__builtins__": {}, "min": min, "max": max}, dict(env)) == (e.value(env) >= 0)


def selections(expr: Affine) -> int:
    """How many selections occur, those inside of others too."""
    return expr.python().count(" if ")


near = st.fixed_dictionaries({n: st.integers(-5, 5) for n in NAMES})


@settings(max_examples=80)
@given(expressions.filter(lambda e: not selections(e.expr)), near)
def test_text_is_read_by_the_set_language(e: Both, env: dict[str, int]) -> None:
    graph = Set.parse(f"[v, i, j] : v = {e.expr.text()}", params=["N"])
    assert graph.fix(env).project_onto(["v"]).points() == [(e.value(env),)]


plain = expressions.filter(lambda e: not selections(e.expr))
conditions = st.lists(st.builds(condition, plain, st.booleans()), min_size=1, max_size=2)


@settings(max_examples=80)
@given(st.builds(choice, conditions, plain, plain), near)
def test_a_selection_is_read_as_an_entry_of_a_map(e: Both, env: dict[str, int]) -> None:
    graph = Map.parse(f"[N] -> {{ S[i, j] -> [{e.expr.text()}] }}").wrapped(["i", "j"], ["v"])
    assert graph.fix(env).project_onto(["v"]).points() == [(e.value(env),)]


@settings(max_examples=80)
@given(expressions, environments)
def test_constraints_mean_the_same_inside_a_set(e: Both, env: dict[str, int]) -> None:
    rows = [Constraint(e.expr)]
    found = Set.from_constraints("", ("i", "j"), rows, ("N",)).fix(env)
    assert found.is_empty() == (e.value(env) < 0)


@settings(max_examples=100)
@given(expressions, st.fixed_dictionaries({"i": expressions, "j": expressions}), environments)
def test_substitution_is_simultaneous(e: Both, by: dict[str, Both], env: dict[str, int]) -> None:
    inner = {**env, **{n: b.value(env) for n, b in by.items()}}
    assert e.expr.substitute({n: b.expr for n, b in by.items()}).evaluate(env) == e.value(inner)


def test_substitution_swaps() -> None:
    assert (i * 2 - j + i // 3).substitute({"i": j, "j": i}) == j * 2 - i + j // 3
    row = Constraint(i - j, True)
    assert row.substitute({"i": "j", "j": 4}) == Constraint(j - 4, True)


ranges = st.fixed_dictionaries(
    {n: st.tuples(st.integers(-6, 6), st.integers(0, 6)).map(lambda t: (t[0], t[0] + t[1])) for n in NAMES}
)


@settings(max_examples=100)
@given(expressions, ranges, st.data())
def test_simplification_keeps_the_value_inside_the_ranges(
    e: Both, box: dict[str, tuple[int, int]], data: st.DataObject
) -> None:
    env = {n: data.draw(st.integers(low, high)) for n, (low, high) in box.items()}
    assert simplify(e.expr, box).evaluate(env) == e.value(env)
    low, high = interval(e.expr, box)
    assert low is not None and high is not None
    assert low <= e.value(env) <= high


@settings(max_examples=100)
@given(st.integers(-3, 3), st.integers(-5, 5), st.integers(2, 5), st.integers(-6, 6), st.integers(0, 6))
def test_floors_are_dropped_only_where_they_are_constant(c: int, k: int, d: int, low: int, width: int) -> None:
    expr, box = (i * c + k) // d, {"i": (low, low + width)}
    values = [(x * c + k) // d for x in range(low, low + width + 1)]
    found = simplify(expr, box)
    assert [found.evaluate({"i": x}) for x in range(low, low + width + 1)] == values
    if c % d and len(set(values)) == 1:
        assert found == affine(values[0])


@settings(max_examples=100)
@given(expressions, environments, st.sets(st.sampled_from(["below", "above"])), st.sampled_from(NAMES))
def test_open_ranges_are_respected(e: Both, env: dict[str, int], sides: set[str], name: str) -> None:
    """A side that nothing bounds says nothing."""
    known: Interval = (env[name] if "below" in sides else None, env[name] if "above" in sides else None)
    assert simplify(e.expr, {name: known}).evaluate(env) == e.value(env)
    low, high = interval(e.expr, {name: known})
    assert low is None or low <= e.value(env)
    assert high is None or e.value(env) <= high


# -- one form --------------------------------------------------------------------------------------------------------
linear = st.tuples(*[st.integers(-3, 3)] * 4)


def linear_in_some_order(coefficients: tuple[int, ...], order: list[int], split: int) -> Affine:
    """c0*i + c1*j + c2*N + c3, its terms added in `order`, one of them in two parts."""
    parts = [v * c for v, c in zip((i, j, N, affine(1)), coefficients, strict=True)]
    total = affine(0)
    for k in order:
        if k == split:
            total = total + parts[k] * 3 - parts[k] * 2
        else:
            total = parts[k] + total
    return total


@given(linear, st.permutations(range(4)), st.permutations(range(4)), st.integers(0, 3), st.integers(0, 3))
def test_equal_sums_are_equal_values(
    c: tuple[int, ...], one: list[int], two: list[int], split: int, other: int
) -> None:
    a, b = linear_in_some_order(c, one, split), linear_in_some_order(c, two, other)
    assert a == b and hash(a) == hash(b) and a.text() == b.text()
    assert len({a, b}) == 1


@given(linear, linear)
def test_different_sums_are_different_values(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    assume(a != b)
    assert linear_in_some_order(a, [0, 1, 2, 3], 0) != linear_in_some_order(b, [0, 1, 2, 3], 0)


@settings(max_examples=100)
@given(expressions, expressions, expressions, st.integers(1, 5), st.integers(-4, 4))
def test_rules_of_arithmetic_are_equalities(a: Both, b: Both, c: Both, d: int, k: int) -> None:
    x, y, z = a.expr, b.expr, c.expr
    assert x + y == y + x and (x + y) + z == x + (y + z) and x - x == affine(0)
    assert (x + y) * k == x * k + y * k and (-x) * -1 == x
    assert (x + k) // d == (x + k % d) // d + k // d
    assert x - (x // d) * d == x % d
    assert x // 1 == x and x % 1 == affine(0)
    assert minimum(x, y, z) == minimum(z, x, y, x) == minimum(minimum(y, z), x)
    assert maximum(x, y, z) == maximum(z, y, x) == maximum(maximum(y, z), x)
    assert select([Constraint(x)], y, y) == y


@given(linear, st.integers(1, 5))
def test_comparable_arguments_of_extrema_are_decided(c: tuple[int, ...], d: int) -> None:
    x = linear_in_some_order(c, [0, 1, 2, 3], 0) + i // 2
    assert minimum(x, x + d) == x and maximum(x, x + d) == x + d
    assert minimum(x, j // 3, x + d) == minimum(x, j // 3)


def test_floors_of_multiples_are_cut_to_size() -> None:
    assert (i * 4 + 6) // 2 == i * 2 + 3
    assert (i * 4 + j + 9) // 4 == i + (j + 1) // 4 + 2
    assert (i * 64 + j) % 64 == j % 64
    assert ((i + 1) // 2 + 1) // 3 == (i + 3) // 6


def test_decided_selections_vanish() -> None:
    assert select([Constraint(affine(0))], i, j) == i
    assert select([Constraint(affine(-1))], i, j) == j
    assert select([Constraint(affine(2), True), Constraint(i)], i, j) == j
    assert select([], i, j) == i
    assert select([Constraint(i), Constraint(affine(3))], i, j) == select([Constraint(i)], i, j)


# -- asking ----------------------------------------------------------------------------------------------------------
@settings(max_examples=100)
@given(expressions, environments, st.sampled_from(NAMES), st.integers(-9, 9))
def test_a_variable_that_does_not_occur_does_not_matter(e: Both, env: dict[str, int], name: str, other: int) -> None:
    if name not in e.expr.variables():
        assert e.value({**env, name: other}) == e.value(env)


@settings(max_examples=100)
@given(expressions, environments, st.sampled_from(NAMES), st.integers(-5, 5))
def test_the_coefficient_is_the_slope(e: Both, env: dict[str, int], name: str, step: int) -> None:
    if e.expr.is_linear_in([name]):
        moved = {**env, name: env[name] + step}
        assert e.value(moved) - e.value(env) == e.expr.coefficient(name) * step
    assert e.expr.is_linear_in(NAMES) == e.expr.is_linear()


def test_simplification_by_ranges() -> None:
    box: dict[str, Interval] = {"i": (0, 3), "j": (0, 63)}
    assert simplify((i * 64 + j) // 64, box) == i
    assert simplify((i * 64 + j) % 64, box) == j
    assert simplify(minimum(i, 3), box) == i
    assert simplify(minimum(i + 4, j), box) == minimum(i + 4, j)
    assert simplify(maximum(i, N), {"i": (0, 3), "N": (3, None)}) == N
    assert simplify(minimum(i, N), {"i": (0, 3)}) == minimum(i, N)
    assert simplify(select([Constraint(i)], i, j), box) == i
    assert simplify(select([Constraint(i - 4)], i, j), box) == j
    assert simplify(select([Constraint(i - 2)], i, j), box) == select([Constraint(i - 2)], i, j)
    assert simplify(i + N, {"i": (2, 2)}) == N + 2
    assert interval(i - j, {"i": (0, 3)}) == (None, None)
    assert interval(i - N, {"i": (0, 3), "N": (1, None)}) == (None, 2)
    assert interval(minimum(i, N), {"i": (0, 3)}) == (None, 3)


def test_values_need_all_variables() -> None:
    with pytest.raises(KeyError):
        (i + j).evaluate({"i": 1})


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: i * j, r"the product \(i\) \* \(j\) of two unknowns is not affine"),
        (lambda: (i + 1) * (N - 1), r"the product \(i \+ 1\) \* \(N - 1\) of two unknowns"),
        (lambda: i // 0, r"\(i\) // 0: the divisor must be a positive constant"),
        (lambda: i // -2, r"\(i\) // -2: the divisor must be a positive constant"),
        (lambda: (i + 1) % 0, r"\(i \+ 1\) % 0: the divisor must be a positive constant"),
    ],
)
def test_what_is_not_affine_is_refused(make: Callable[[], Affine], message: str) -> None:
    with pytest.raises(NotAffineError, match=message):
        make()


def test_texts() -> None:
    expr = i * 3 - (j + 1) // 2 + minimum(N, 4) - 1
    assert expr.text() == "3*i + min(4, N) - floor((j + 1)/2) - 1" == str(expr)
    assert expr.python() == "3*i + min(4, N) - ((j + 1)//2) - 1"
    assert str(affine(0)) == "0" and str(-i) == "-i" and str(i * -2 + 1) == "-2*i + 1"
    assert Constraint(i - 1).text() == "i - 1 >= 0" and Constraint(i, True).text() == "i = 0"
    assert Constraint(i, True).python() == "i == 0"
    chosen = select([Constraint(i - 1), Constraint(j, True)], i, j + 1)
    assert chosen.text() == "(i - 1 >= 0 and j = 0 ? (i) : (j + 1))"
    assert chosen.python() == "(i if i - 1 >= 0 and j == 0 else j + 1)"
