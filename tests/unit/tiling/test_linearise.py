"""Split dimensions: the same instances, the same cells, fewer floors."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polyopt.ir import Access, Apply, Assign, Expr, Index, Indirect, Read, Statement, walk
from polyopt.sets import Affine, Floor, Set, affine, var
from polyopt.tiling._linearise import constant_ranges, linearise

c, d = var("c"), var("d")


def statement(domain: str, body: Assign, dims: tuple[str, ...] = ("c", "d")) -> Statement:
    found = Set.parse(f"[{', '.join(dims)}] : {domain}", name="S", params=("N",))
    return Statement("S", found, tuple(map(var, dims)), body)


def read(*subscripts: Affine) -> Expr:
    return Read(Access("X", subscripts))


def written(value: Expr) -> Assign:
    return Assign(Access("Y", (c, d)), value)


def values(s: Statement, sizes: Mapping[str, int]) -> list[tuple[tuple[int, ...], ...]]:
    """(target cell, cells read, index values) of every instance, sorted: what does not depend on names."""
    found = []
    for point in s.domain.points(sizes):
        env = {**sizes, **dict(zip(s.iterators, point, strict=True))}
        cells = [tuple(e.evaluate(env) for e in s.assign.target.affine_subscripts)]
        cells.append(tuple(e.evaluate(env) for e in s.order))
        for node in walk(s.assign.value):
            if isinstance(node, Read):
                cells.append(tuple(x.evaluate(env) for x in node.access.affine_subscripts))
            elif isinstance(node, Index):
                cells.append((node.value.evaluate(env),))
        found.append(tuple(cells))
    return sorted(found)


def floors(s: Statement) -> list[Floor]:
    affines = [*s.assign.target.affine_subscripts]
    for node in walk(s.assign.value):
        affines += node.access.affine_subscripts if isinstance(node, Read) else []
    return [a for e in affines for a, _ in e.terms if isinstance(a, Floor)]


def test_a_reshape_becomes_linear() -> None:
    before = statement("0 <= c < 256 and 0 <= d < N", written(read(c // 64, c % 64, d)))
    after, dims, _ = linearise(before, ("c", "d"))
    assert dims == ("c_1", "c_0", "d") == after.iterators
    assert after.assign.value == read(var("c_1"), var("c_0"), d)
    assert after.assign.target == Access("Y", (var("c_1") * 64 + "c_0", d))
    assert values(after, {"N": 2}) == values(before, {"N": 2})


def test_two_divisors_of_one_dimension() -> None:
    before = statement("0 <= c < 24 and 0 <= d < N", written(read(c // 12, c // 4 % 3, c % 4)))
    after, dims, _ = linearise(before, ("c", "d"))
    assert len(dims) == 4 and not floors(after)
    assert values(after, {"N": 2}) == values(before, {"N": 2})


def test_an_extent_that_the_divisor_does_not_divide_stays() -> None:
    before = statement("0 <= c < 10 and 0 <= d < N", written(read(c // 4, c % 4)))
    assert linearise(before, ("c", "d"))[:2] == (before, ("c", "d"))


def test_an_open_extent_stays() -> None:
    before = statement("0 <= c < 4*N and 0 <= d < N", written(read(c // 4, c % 4)))
    assert linearise(before, ("c", "d"))[:2] == (before, ("c", "d"))


def test_an_iterator_of_an_outer_loop_is_not_split() -> None:
    before = statement("0 <= c < 8 and 0 <= d < N", written(read(c // 4, c % 4)))
    assert linearise(before, ("d",))[:2] == (before, ("d",))


def test_floors_that_the_range_decides_go_without_splitting() -> None:
    before = statement("0 <= c < 4 and 0 <= d < N", written(read(c // 4, c % 8)))
    after, dims, _ = linearise(before, ("c", "d"))
    assert dims == ("c", "d") and after.assign.value == read(affine(0), c)


def test_dimensions_that_an_equality_fixes_go() -> None:
    before = statement("0 <= c < N and d = 2*c + 1", written(read(d, c)))
    after, dims, _ = linearise(before, ("c", "d"))
    assert dims == ("c",) == after.iterators
    assert after.assign.target == Access("Y", (c, c * 2 + 1))
    assert values(after, {"N": 3}) == values(before, {"N": 3})
    fixed = statement("c = N and 0 <= d < N", written(read(c, d)))
    assert linearise(fixed, ("c", "d"))[0].assign.target == Access("Y", (var("N"), d))


def test_what_comes_with_a_statement_is_moved_along() -> None:
    before = statement("0 <= c < 8 and 0 <= d < N", written(read(c // 4, c % 4)))
    finish = Assign(Access("Z", (c,)), read(c, d))
    after, _, (initial, finished) = linearise(before, ("c", "d"), Index(c + d), finish)
    new = var("c_1") * 4 + "c_0"
    assert initial == Index(new + d)
    assert finished == Assign(Access("Z", (new,)), read(new, d))
    assert values(after, {"N": 2}) == values(before, {"N": 2})


def test_a_floor_in_a_finishing_assignment_is_a_reason_to_split() -> None:
    before = statement("0 <= c < 8 and 0 <= d < N", written(read(c, d)))
    _, dims, (_, finished) = linearise(before, ("c", "d"), None, Assign(Access("Z", (c // 4, c % 4)), read(c, d)))
    assert dims == ("c_1", "c_0", "d")
    assert finished is not None and finished.target == Access("Z", (var("c_1"), var("c_0")))


def test_gathers_are_split_inside() -> None:
    inner = Access("k", (c // 4, c % 4))
    before = statement("0 <= c < 8 and 0 <= d < N", written(Read(Access("X", (Indirect(inner, c // 4), d)))))
    after, dims, _ = linearise(before, ("c", "d"))
    assert dims == ("c_1", "c_0", "d")
    expected = Access("X", (Indirect(Access("k", (var("c_1"), var("c_0"))), var("c_1")), d))
    assert after.assign.value == Read(expected)


def test_constant_ranges() -> None:
    domain = Set.parse("[i, j, k] : 0 <= i < 8 and i <= j < 9 and 0 <= k < N", params=("N",))
    assert constant_ranges(domain) == {"i": (0, 7), "j": (0, 8), "k": (0, None)}
    assert constant_ranges(Set.empty("S", ["i"])) == {}


@st.composite
def subscripts(draw: st.DrawFn) -> Affine:
    total = affine(draw(st.integers(0, 3)))
    for name in draw(st.lists(st.sampled_from(["c", "d"]), max_size=2)):
        inner = var(name) * draw(st.sampled_from([1, 1, 2])) + draw(st.sampled_from([0, 0, 1]))
        divisor = draw(st.sampled_from([2, 3, 4]))
        total = total + draw(st.sampled_from([var(name), inner // divisor, inner % divisor, inner // 2 % divisor]))
    return total


@settings(max_examples=80)
@given(
    st.lists(subscripts(), min_size=1, max_size=3),
    st.sampled_from([4, 6, 8, 12]),
    st.sampled_from(["0 <= d < N", "0 <= d < 6", "0 <= d < 4 and d <= c", "0 <= d < 6 and c + d < 9", "d = c"]),
    st.sets(st.sampled_from("cd")),
)
def test_the_same_instances_touch_the_same_cells(own: list[Affine], extent: int, rest: str, free: set[str]) -> None:
    body = written(Apply("+", (Read(Access("X", tuple(own))), Index(own[0] * 2 - d))))
    before = statement(f"0 <= c < {extent} and {rest}", body)
    after, dims, _ = linearise(before, tuple(x for x in ("c", "d") if x in free))
    assert set(dims) <= set(after.iterators)
    assert len(floors(after)) <= len(floors(before))
    for n in (0, 3):
        assert values(after, {"N": n}) == values(before, {"N": n})


def test_shapes_of_many_splits() -> None:
    """Every way to cut 48 in three by divisors."""
    for a, b in itertools.product((2, 3, 4, 6), repeat=2):
        before = statement("0 <= c < 48 and 0 <= d < 1", written(read(c // (a * b), c // b % a, c % b)))
        after, _, _ = linearise(replace(before), ("c", "d"))
        assert values(after, {"N": 1}) == values(before, {"N": 1})
        if 48 % (a * b) == 0:
            assert not floors(after), (a, b)


@pytest.mark.parametrize("n", [0, 1, 5])
def test_nothing_happens_without_floors(n: int) -> None:
    before = statement("0 <= c < 8 and 0 <= d < N", written(read(c + d, d)))
    assert linearise(before, ("c", "d"))[0] == before
    assert values(before, {"N": n}) == values(linearise(before, ("c", "d"))[0], {"N": n})
