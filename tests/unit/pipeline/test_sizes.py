"""Sizes from arrays: affine extents are solved, contradictions and gaps are named."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyopt.errors import InputError
from polyopt.ir import Scop, Tensor
from polyopt.pipeline import check_sizes, complete_sizes
from polyopt.sets import Affine, Set, affine, var

H, W, N = var("H"), var("W"), var("N")


def scop(*shapes: tuple[Affine | int, ...], context: str = ": H >= 0 and W >= 1") -> Scop:
    tensors = tuple(Tensor("ABC"[k], tuple(affine(e) for e in s), "float32", "input") for k, s in enumerate(shapes))
    return Scop("p", ("H", "W"), Set.parse(context, params=["H", "W"]), tensors, ())


@given(st.integers(0, 50), st.integers(1, 50))
def test_affine_extents_are_solved_in_any_order(h: int, w: int) -> None:
    program = scop((H + W * 3, 4), (W * 2 - 1,))
    assert complete_sizes(program, {}, {"A": (h + 3 * w, 4), "B": (2 * w - 1,)}) == {"H": h, "W": w}


def test_given_sizes_and_arrays_meet() -> None:
    assert complete_sizes(scop((H, W)), {"W": 3}, {"A": (5, 3)}) == {"H": 5, "W": 3}
    assert complete_sizes(scop((H, W)), {"W": 3, "H": 0}) == {"H": 0, "W": 3}
    assert complete_sizes(scop((H // 2, W)), {"H": 7}, {"A": (3, 2)}) == {"H": 7, "W": 2}


BAD: list[tuple[Scop, dict[str, int], dict[str, tuple[int, ...]], str]] = [
    (scop((H,)), {}, {"A": (5,)}, r"no size for W of p\nhelp: give it with --at W=\.\.\."),
    (scop((H,)), {"X": 1}, {}, "p has no parameter 'X'; known: H, W"),
    (scop((H, W)), {"W": 4}, {"A": (5, 3)}, "A has extent 3 in dimension 1, expected W = 4"),
    (scop((H * 2, W)), {}, {"A": (5, 3)}, r"A has extent 5 in dimension 0, which no integer H makes 2\*H"),
    (scop((H, W)), {}, {"A": (5,)}, r"A has shape \(5,\), expected 2 dimensions: \[H, W\]"),
    (scop((H, W)), {}, {"Z": (5,)}, "p has no tensor 'Z'"),
    (scop((H, W)), {"H": -1, "W": 1}, {}, "H=-1, W=1 is outside the context of p, which is"),
    (scop((H, W)), {"H": 1, "W": 0}, {}, "H=1, W=0 is outside the context of p, which is"),
]


@pytest.mark.parametrize(("program", "sizes", "shapes", "message"), BAD)
def test_refused(program: Scop, sizes: dict[str, int], shapes: dict[str, tuple[int, ...]], message: str) -> None:
    with pytest.raises(InputError, match=message):
        complete_sizes(program, check_sizes(program, sizes), shapes)


def test_a_part_of_the_sizes_may_already_be_impossible() -> None:
    assert check_sizes(scop(), {"W": 2}) == {"W": 2}
    with pytest.raises(InputError, match="W=0 is outside the context"):
        check_sizes(scop(), {"W": 0})
