"""Folded constants as expressions of the indices: `arange`, `full`, floors and remainders need no tensor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from polyopt.frontend.torch._value import Array, Digit, Piece, Value, canonical, dim_index, stored
from polyopt.ir import Const, Index
from polyopt.sets import Affine, affine

__all__ = ["as_expression", "as_tensor"]


def as_expression(elements: Array, dtype: str) -> Value | None:
    """The value of `elements` as a literal or as a quasi-affine expression of its indices; None when it is neither.

    Found: constants, and sums over dimensions of a*(i // p) + b*(i % p), so affine functions, repeats and periods.
    """
    if elements.size == 0:
        return stored("", elements.shape, dtype)
    dims = tuple((Digit(f"d{k}", n),) if n != 1 else () for k, n in enumerate(elements.shape))
    first = elements.flat[0]
    if bool(np.all(elements == first)) or elements.size == 1:
        return _value(dtype, dims, Piece((), Const(literal(first))), elements)
    if elements.dtype == np.bool_:
        return None
    numbers = elements.astype(np.float64)
    if not np.all(np.isfinite(numbers)) or not np.all(numbers == np.rint(numbers)) or np.abs(numbers).max() >= 2**53:
        return None
    index = _fit(numbers.astype(np.int64), [dim_index(d) for d in dims])
    return None if index is None else _value(dtype, dims, Piece((), Index(index)), elements)


def as_tensor(name: str, elements: Array, dtype: str) -> Value:
    """The value of `elements` read from a tensor called `name`."""
    value = stored(name, elements.shape, dtype)
    return Value(dtype, value.dims, value.pieces, elements)


def literal(element: np.generic) -> float | int | bool:
    """A Python number equal to `element`."""
    if isinstance(element, np.bool_):
        return bool(element)
    return int(element) if isinstance(element, np.integer) else float(element)


def _value(dtype: str, dims: Sequence[tuple[Digit, ...]], piece: Piece, known: Array) -> Value:
    return replace(canonical(dtype, dims, (piece,), {}), known=known)


def _fit(numbers: np.ndarray[tuple[int, ...], np.dtype[np.int64]], indices: Sequence[Affine]) -> Affine | None:
    """A quasi-affine expression of `indices` with these values everywhere, or None."""
    origin = (0,) * numbers.ndim
    total = affine(int(numbers[origin]))
    rebuilt = np.full(numbers.shape, numbers[origin], dtype=np.int64)
    for k, n in enumerate(numbers.shape):
        line = numbers[tuple(slice(None) if j == k else 0 for j in range(numbers.ndim))] - numbers[origin]
        fitted = _fit_line(line, indices[k])
        if fitted is None:
            return None
        total = total + fitted
        rebuilt += line.reshape([n if j == k else 1 for j in range(numbers.ndim)])
    return total if np.array_equal(rebuilt, numbers) else None


def _fit_line(line: np.ndarray[tuple[int, ...], np.dtype[np.int64]], index: Affine) -> Affine | None:
    """a*(index // p) + b*(index % p) with these values, or None; line[0] is 0.  p is where the first slope ends."""
    if len(line) == 1:
        return affine(0)
    where = np.arange(len(line))
    slope = int(line[1])
    (breaks,) = np.nonzero(line != slope * where)
    if not len(breaks):
        return index * slope
    p = int(breaks[0])
    step = int(line[p])
    if not np.array_equal(step * (where // p) + slope * (where % p), line):
        return None
    return (index // p) * step + (index % p) * slope
