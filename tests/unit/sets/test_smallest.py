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
