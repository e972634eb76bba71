"""Programs for the transformations, and what must hold of every result."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from polyopt.ir import Scop
from polyopt.reference import inputs, interpret
from polyopt.schedule import ScheduleTree, apply_tree, check
from tests.unit.schedule._scops import program

MATMUL = program(
    "A[N, N] float32 input; B[N, N] float32 input; C[N, N] float32 output",
    ("S", "[i, j] : 0 <= i < N and 0 <= j < N", "[0, i, j]", "C[i, j] = 0.0"),
    ("R", "[i, j, k] : 0 <= i < N and 0 <= j < N and 0 <= k < N", "[1, i, j, k]", "C[i, j] += A[i, k]*B[k, j]"),
)

STENCIL = program(
    "A[2, N] float32 inout",
    (
        "S",
        "[t, i] : 0 <= t < N and 1 <= i < N - 1",
        "[t, i]",
        "A[(t + 1) % 2, i] = A[t % 2, i - 1] + A[t % 2, i]*2.0 - A[t % 2, i + 1]",
    ),
)

PIPELINE = program(
    "A[N] float32 input; B[N] float32 inout; C[N] float32 inout",
    ("S", "[i] : 0 <= i < N", "[0, i]", "B[i] = A[i]*2.0"),
    ("T", "[j] : 1 <= j < N - 1", "[1, j]", "C[j] = B[j - 1] + B[j + 1]"),
)

TRIANGLE = program(
    "L[N, N] float32 input; x[N] float32 inout",
    ("D", "[i] : 0 <= i < N", "[i, 1, 0]", "x[i] = x[i]*L[i, i]"),
    ("S", "[i, j] : 0 <= j < i < N", "[i, 0, j]", "x[i] = x[i] - L[i, j]*x[j]"),
)

SIZES = (0, 1, 2, 3, 5, 8, 9)


def same_values(scop: Scop, other: Scop, sizes: tuple[int, ...] = SIZES) -> None:
    """Both programs leave the same values, bit for bit, at every size."""
    for n in sizes:
        at = dict.fromkeys(scop.params, n)
        given = inputs(scop, at, seed=n)
        for name, expected in interpret(scop, given, at).items():
            np.testing.assert_array_equal(interpret(other, given, at)[name], expected, err_msg=f"{name} at {n}")


def holds(scop: Scop, tree: ScheduleTree, sizes: tuple[int, ...] = SIZES) -> ScheduleTree:
    """The tree is legal, runs every instance once and leaves the same values."""
    assert check(scop, tree)
    applied = apply_tree(scop, tree)
    for n in sizes:
        at: Mapping[str, int] = dict.fromkeys(scop.params, n)
        assert sum(s.domain.count(at) for s in applied.statements) == sum(s.domain.count(at) for s in scop.statements)
    same_values(scop, applied, sizes)
    return tree
