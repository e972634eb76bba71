"""Element types: the names of INTERFACE.md, their numpy types, sizes and unit roundoffs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from polyopt.errors import InputError, nearest

__all__ = ["DTYPES", "DType", "dtype"]


@dataclass(frozen=True, slots=True)
class DType:
    """`unit_roundoff` is half the distance from 1 to the next value (0 for exact types)."""

    name: str
    numpy: Any
    element_bytes: int
    is_float: bool
    unit_roundoff: float = 0.0
    smallest_normal: float = 0.0


def _float(name: str, numpy: Any) -> DType:
    info: Any = ml_dtypes.finfo(numpy)  # type: ignore[no-untyped-call]
    return DType(name, np.dtype(numpy), np.dtype(numpy).itemsize, True, float(info.eps) / 2, float(info.tiny))


def _exact(name: str, numpy: Any) -> DType:
    return DType(name, np.dtype(numpy), np.dtype(numpy).itemsize, False)


DTYPES: dict[str, DType] = {
    d.name: d
    for d in (
        _float("float64", np.float64),
        _float("float32", np.float32),
        _float("float16", np.float16),
        _float("bfloat16", ml_dtypes.bfloat16),
        _float("float8_e4m3", ml_dtypes.float8_e4m3),
        _float("float8_e5m2", ml_dtypes.float8_e5m2),
        _exact("int64", np.int64),
        _exact("int32", np.int32),
        _exact("int16", np.int16),
        _exact("int8", np.int8),
        _exact("uint8", np.uint8),
        _exact("bool", np.bool_),
    )
}


def dtype(name: str) -> DType:
    """The element type called `name`; raises InputError naming the nearest known one.

    >>> dtype("bfloat16").element_bytes
    2
    """
    if name not in DTYPES:
        raise InputError(
            f"unknown dtype {name!r}{nearest(name, DTYPES)}", help=f"element types: {', '.join(DTYPES)}", id="dtype"
        )
    return DTYPES[name]
