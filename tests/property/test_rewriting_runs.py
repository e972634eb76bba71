"""Substituted and absorbed statements: the program as rewritten computes what the program as written does."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from polyopt.ir import Scop, verify_scop
from polyopt.reference import inputs, interpret
from polyopt.schedule import absorb, compute_dependences, distribute, normalise, substitute_forward
from tests.property._absorbed import written_out
from tests.property._chains import chains

sizes = st.fixed_dictionaries({"N": st.integers(1, 4), "M": st.integers(1, 4)})


def assert_same(a: Scop, b: Scop, at: dict[str, int]) -> None:
    arrays = inputs(a, at, mode="exact")
    expected, found = (interpret(s, arrays, at, "exact") for s in (a, b))
    assert set(found) == set(expected)
    for name, values in expected.items():
        assert np.array_equal(values, found[name]), name


@settings(max_examples=120)
@given(chains(), sizes)
def test_substitution(scop: Scop, at: dict[str, int]) -> None:
    changed = substitute_forward(scop)
    verify_scop(changed)
    assert substitute_forward(changed) == changed
    assert_same(scop, changed, at)


@settings(max_examples=80)
@given(chains(), sizes)
def test_absorption(scop: Scop, at: dict[str, int]) -> None:
    normal = normalise(substitute_forward(scop))
    distributed, tree = distribute(normal, compute_dependences(normal))
    kept, taken = absorb(distributed, tree)
    assert_same(scop, written_out(distributed, kept, taken), at)
