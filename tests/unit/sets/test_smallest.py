"""Smallest points."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyopt.errors import InputError
from polyopt.sets import Constraint, Set, affine, var
from polyopt.sets._smallest import smallest_point

rows = st.builds(
    lambda a, b, c, m: (
        Constraint((var("i") * a + var("j") * b) % m + var("i") * b + c)
        if m > 1
        else Constraint(var("i") * a + var("j") * b + c)
    ),
    st.integers(-2, 2),
    st.integers(-2, 2),
    st.integers(-3, 3),
    st.integers(1, 3),
)


@given(st.lists(rows, max_size=3))
def test_it_is_the_first_of_all_points(constraints: list[Constraint]) -> None:
    box = Set.box("", {"i": (affine(-3), affine(4)), "j": (affine(-3), affine(4))}).constrain(constraints)
    points = box.points()
    if points:
        assert smallest_point(box.isl) == list(points[0])
    else:
        assert box.smallest() is None


def test_what_is_unbounded_below_has_none() -> None:
    below = Set.parse("[i] : i <= 3")
    assert smallest_point(below.isl) is None
    with pytest.raises(InputError, match="unbounded below"):
        below.smallest()


@given(st.lists(st.lists(rows, max_size=3), min_size=2, max_size=3))
def test_of_a_union_too(parts: list[list[Constraint]]) -> None:
    box = Set.box("", {"i": (affine(-3), affine(4)), "j": (affine(-3), affine(4))})
    union = Set.empty("", ("i", "j"))
    for constraints in parts:
        union = Set(union.isl.union(box.constrain(constraints).isl))  # not coalesced: empty parts stay
    points = union.points()
    assert smallest_point(union.isl) == (list(points[0]) if points else None)


def test_an_empty_part_of_a_union_does_not_count() -> None:
    pairs = Set.parse(
        "[N, i, j, k] : N = 2 and ((i <= -2 + N and 0 <= j <= i and j < k <= i) or (i = N - 1 and 0 <= j < k < N))"
    )
    assert smallest_point(pairs.isl) == [2, 1, 0, 1]
