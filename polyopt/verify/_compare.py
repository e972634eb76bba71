"""Values of a run against those of the reference, cell by cell, without any tolerance but a computed bound."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["Comparison", "compare_values"]

Arrays = Mapping[str, npt.NDArray[Any]]


@dataclass(frozen=True, slots=True)
class Comparison:
    """max_abs_error and error_bound: the largest over all cells; error_ratio: the largest error / bound of one cell.

    Two infinities of one sign agree, two NaNs agree; any other non-finite pair has an infinite error.
    worst: where the ratio is largest (tensor, cell, expected, found, bound), empty when there are no cells.
    num_unbounded: cells, of all `num_cells`, whose bound is infinite, so that they say nothing (but for an infinity
    or a NaN that is found just where it is expected).  num_sampled: cells whose bound was sampled, not derived.
    """

    max_abs_error: float
    error_bound: float
    error_ratio: float
    worst: Mapping[str, object]
    num_cells: int = 0
    num_unbounded: int = 0
    num_sampled: int = 0

    @property
    def is_within(self) -> bool:
        return self.error_ratio <= 1.0


def compare_values(found: Arrays, expected: Arrays, bounds: Arrays) -> Comparison:
    """Compare every array of `expected` with the one of that name in `found`; shapes must agree (ValueError)."""
    error, bound, ratio = 0.0, 0.0, 0.0
    cells, unbounded = 0, 0
    worst: dict[str, object] = {}
    for name, right in expected.items():
        if found[name].shape != right.shape:
            raise ValueError(f"{name} has shape {found[name].shape}, expected {right.shape}")
        if not right.size:
            continue
        errors = _absolute_errors(found[name], right)
        limits = np.broadcast_to(np.asarray(bounds[name], dtype=np.float64), right.shape)
        ratios = _ratios(errors, limits)
        surely_equal = (errors == 0) & ~np.isfinite(np.asarray(right, dtype=np.float64))
        cells, unbounded = cells + right.size, unbounded + int((np.isposinf(limits) & ~surely_equal).sum())
        error, bound = max(error, float(errors.max())), max(bound, float(limits.max()))
        place = np.unravel_index(int(ratios.argmax()), ratios.shape)
        if not worst or float(ratios[place]) > ratio:
            ratio = float(ratios[place])
            worst = {
                "tensor": name,
                "cell": [int(k) for k in place],
                "expected": _number(right[place]),
                "found": _number(found[name][place]),
                "bound": float(limits[place]),
            }
    return Comparison(error, bound, ratio, worst, cells, unbounded)


def _absolute_errors(found: npt.NDArray[Any], expected: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Integers are subtracted exactly, everything else in float64."""
    errors = np.zeros(expected.shape, np.float64)
    if np.issubdtype(expected.dtype, np.integer) and np.issubdtype(found.dtype, np.integer):
        differ = np.asarray(found != expected)
        errors[differ] = np.abs(found[differ].astype(object) - expected[differ].astype(object)).astype(np.float64)
        return errors
    a, b = found.astype(np.float64), expected.astype(np.float64)
    differ = np.asarray(~((a == b) | (np.isnan(a) & np.isnan(b))))
    with np.errstate(invalid="ignore", over="ignore"):
        errors[differ] = np.nan_to_num(np.abs(a[differ] - b[differ]), nan=np.inf, posinf=np.inf)
    return errors


def _ratios(errors: npt.NDArray[np.float64], limits: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """error / limit; 0 where there is no error or the limit is infinite, infinite where there is one and the limit is 0
    or no number.
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratios = np.where((errors == 0.0) | np.isposinf(limits), 0.0, errors / limits)
    return np.where(np.isnan(ratios), np.inf, ratios)


def _number(value: Any) -> float | int | bool:
    if isinstance(value, (np.bool_, bool)):
        return bool(value)
    return int(value) if isinstance(value, np.integer) else float(value)
