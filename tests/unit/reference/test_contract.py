"""Sums of products against einsum."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from polyopt.reference import contract

Array = npt.NDArray[Any]
SIZES = (2, 3, 4, 5)


def operand(axes: str, rng: np.random.Generator, dtype: type = np.float64) -> Array:
    shape = [n if "abcd"[k] in axes else 1 for k, n in enumerate(SIZES)]
    return rng.integers(-4, 5, shape).astype(dtype)


def oracle(factors: list[Array], keep: list[int]) -> Array:
    product = np.ones(SIZES, object)
    for f in factors:
        product = product * f.astype(object)
    summed = tuple(a for a in range(4) if a not in keep)
    total: Array = product.sum(axis=summed, keepdims=True)
    return total


@pytest.mark.parametrize("dtype", [np.float64, np.int64, object])
@pytest.mark.parametrize(
    ("axes", "keep"),
    [
        (["ab", "bc"], [0, 2]),
        (["abc", "abd"], [0, 2, 3]),
        (["abc", "acd"], [0, 1, 3]),
        (["ad", "bd", "cd"], [0, 1, 2]),
        (["ab", "bc", "cd"], [0, 3]),
        (["abcd"], [1]),
        (["a", "b"], []),
        (["a", "b"], [0, 1]),
        (["", "ab"], [0]),
        ([""], []),
        (["abcd", "abcd"], [0, 1, 2, 3]),
        (["bd", "bd", "bd"], [1]),
        (["ac"], [0, 1, 2, 3]),
    ],
)
def test_against_the_whole_product(axes: list[str], keep: list[int], dtype: type) -> None:
    rng = np.random.default_rng(0)
    factors = [operand(a, rng, dtype) for a in axes]
    got = contract(factors, keep, SIZES)
    assert np.array_equal(np.broadcast_to(got, oracle(factors, keep).shape).astype(object), oracle(factors, keep))


def test_integers_beyond_64_bits() -> None:
    a = np.full((1, 1, 4, 1), 2**40, np.int64)
    assert contract([a, a], [], (1, 1, 4, 1)).item() == 4 * 2**80
    b = np.full((1, 1, 4, 1), 2**29 + 1, np.int64)
    assert contract([b, b], [], (1, 1, 4, 1)).item() == 4 * (2**29 + 1) ** 2


def test_long_sums_of_large_integers_in_pieces() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.integers(-(2**21), 2**21, (7, 5000, 1)), rng.integers(-(2**21), 2**21, (1, 5000, 6))
    expected = a[:, :, 0].astype(object) @ b[0].astype(object)
    assert np.array_equal(contract([a, b], [0, 2], (7, 5000, 6))[:, 0], expected)


def test_operands_without_axes_and_views() -> None:
    a = np.arange(12.0).reshape(3, 4)
    got = contract([a.T[::-1], np.asarray(2.0)], [0], (4, 3))
    assert np.array_equal(got, 2 * a.T[::-1].sum(1, keepdims=True))
