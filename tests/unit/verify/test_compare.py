"""Comparison of values: no tolerance but the bound, and nothing non-finite slips through."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from polyopt.verify import Comparison, compare_values

inf, nan = np.inf, np.nan


def compare(found: npt.ArrayLike, expected: npt.ArrayLike, bound: npt.ArrayLike, dtype: Any = np.float32) -> Comparison:
    left, right = ({"y": np.asarray(a, dtype)} for a in (found, expected))
    return compare_values(left, right, {"y": np.asarray(bound, np.float64)})


def test_largest_error_and_worst_cell_are_found_apart() -> None:
    c = compare([[1.0, 2.5], [10.0, 4.0]], [[1.0, 2.0], [8.0, 4.0]], [[0, 0.1], [4.0, 0]])
    assert (c.max_abs_error, c.error_bound, c.error_ratio) == (2.0, 4.0, 5.0)
    assert c.worst == {"tensor": "y", "cell": [0, 1], "expected": 2.0, "found": 2.5, "bound": 0.1}
    assert not c.is_within


def test_the_bound_itself_is_within() -> None:
    assert compare([1.5], [1.0], [0.5]).is_within
    assert compare([1.0], [1.0], [0.0]).is_within


@pytest.mark.parametrize(
    ("found", "expected", "within"),
    [(inf, inf, True), (nan, nan, True), (-inf, inf, False), (nan, 1.0, False), (1.0, nan, False), (inf, 1.0, False)],
)
def test_non_finite(found: float, expected: float, within: bool) -> None:
    assert compare([found], [expected], [1e30]).is_within is within


def test_unknown_bound_allows_only_equality() -> None:
    assert compare([1.0], [1.0], [nan]).is_within
    assert not compare([1.5], [1.0], [nan]).is_within


def test_infinite_bound_allows_finite_errors() -> None:
    c = compare([1.5, 1.0], [1.0, 1.0], [inf, 0.0])
    assert c.is_within
    assert (c.num_cells, c.num_unbounded) == (2, 1)


def test_integers_do_not_wrap() -> None:
    c = compare([np.iinfo(np.int64).max], [-1], [0], np.int64)
    assert c.max_abs_error == 2.0**63
    assert not c.is_within
    assert compare([True, False], [True, True], [0, 0], np.bool_).error_ratio == inf


def test_nothing_to_compare() -> None:
    c = compare(np.zeros((0, 3)), np.zeros((0, 3)), np.zeros((0, 3)))
    assert (c.max_abs_error, c.error_ratio, c.worst, c.is_within) == (0.0, 0.0, {}, True)


def test_scalar() -> None:
    assert compare(2.0, 1.0, 0.5).worst["cell"] == []


def test_wrong_shape() -> None:
    with pytest.raises(ValueError, match=r"y has shape \(2,\), expected \(1,\)"):
        compare([1.0, 2.0], [1.0], [0.0])
