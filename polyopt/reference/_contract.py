"""Sums of products of arrays through matrix multiplication.

Arrays have one axis for every dimension of a common box, of size 1 where they do not depend on it, or no axis at all.
The product space is never materialised: operands are multiplied in pairs, each a (batched) matrix product.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import combinations
from math import prod
from typing import Any

import numpy as np

from polyopt.reference._cells import Array

__all__ = ["contract", "magnitude"]

_EXACT_FLOAT = 2**53
_EXACT_INT = 2**62

Operand = tuple[Array, tuple[int, ...]]
"""An array and the axes of the box that its own axes stand for."""


def contract(factors: Sequence[Array], keep: Collection[int], sizes: Sequence[int]) -> Array:
    """sum over all axes not in `keep` of the product of `factors`; summed axes have size 1 in the result.

    Floats are summed in float64; integers exactly, through float64 while every partial sum is below 2**53, then int64,
    then Python integers.
    """
    operands = [_squeeze(np.asarray(f)) for f in factors]
    present = {a for _, axes in operands for a in axes}
    times = prod(n for a, n in enumerate(sizes) if a not in present and a not in keep)
    convert = _working_type([o for o, _ in operands], prod(n for a, n in enumerate(sizes) if a not in keep))
    operands = [(o if o.dtype == convert else o.astype(convert), axes) for o, axes in operands]
    total = _contract_all(operands, frozenset(keep))
    result = _aligned(total, {a: a for a in total[1]}, len(sizes))
    if times != 1:
        result = result * times
    if convert == np.float64 and all(np.asarray(f).dtype != np.float64 for f in factors):
        return result.astype(np.int64)
    return result


def magnitude(values: Array) -> int:
    """The largest absolute value among integers, 0 for none."""
    if values.size == 0:
        return 0
    return max(abs(int(values.max())), abs(int(values.min())))


def _working_type(arrays: Sequence[Array], terms: int) -> Any:
    if any(a.dtype == np.float64 for a in arrays):
        return np.dtype(np.float64)
    bound = max(1, terms) * prod(max(1, magnitude(a)) for a in arrays)
    if bound < _EXACT_FLOAT:
        return np.dtype(np.float64)
    return np.dtype(np.int64) if bound < _EXACT_INT else np.dtype(object)


def _squeeze(array: Array) -> Operand:
    axes = tuple(a for a, n in enumerate(array.shape) if n != 1)
    return array.reshape([array.shape[a] for a in axes]), axes


def _contract_all(operands: list[Operand], keep: frozenset[int]) -> Operand:
    """Pairs with the smallest result first."""
    while len(operands) > 1:
        operands = [_sum_own(k, operands, keep) for k in range(len(operands))]
        first, second = min(combinations(range(len(operands)), 2), key=lambda pair: _cost(pair, operands, keep))
        rest = [o for k, o in enumerate(operands) if k not in (first, second)]
        needed = keep.union(*(axes for _, axes in rest)) if rest else keep
        operands = [_multiply(operands[first], operands[second], needed), *rest]
    return _sum_axes(operands[0], frozenset(operands[0][1]) - keep)


def _sum_own(k: int, operands: Sequence[Operand], keep: frozenset[int]) -> Operand:
    """Sum operand k over the axes that no other operand has."""
    others = {a for j, (_, axes) in enumerate(operands) if j != k for a in axes}
    return _sum_axes(operands[k], frozenset(operands[k][1]) - keep - others)


def _sum_axes(operand: Operand, summed: frozenset[int]) -> Operand:
    array, axes = operand
    if not summed:
        return operand
    positions = tuple(p for p, a in enumerate(axes) if a in summed)
    return np.asarray(array.sum(axis=positions)), tuple(a for a in axes if a not in summed)


def _cost(pair: tuple[int, int], operands: Sequence[Operand], keep: frozenset[int]) -> tuple[int, int]:
    """(elements of the result, multiplications) of one pairwise product."""
    (x, xa), (y, ya) = operands[pair[0]], operands[pair[1]]
    size = {**dict(zip(xa, x.shape, strict=True)), **dict(zip(ya, y.shape, strict=True))}
    needed = keep.union(*(axes for k, (_, axes) in enumerate(operands) if k not in pair))
    return prod(n for a, n in size.items() if a in needed), prod(size.values())


def _multiply(x: Operand, y: Operand, needed: frozenset[int]) -> Operand:
    """One product, summed over the common axes that nothing else needs."""
    (first, xa), (second, ya) = x, y
    common = [a for a in xa if a in ya]
    summed = [a for a in common if a not in needed]
    batch = [a for a in common if a in needed]
    rows = [a for a in xa if a not in common]
    columns = [a for a in ya if a not in common]
    axes = (*batch, *rows, *columns)
    if not summed:
        ndim = len(axes)
        place = {a: k for k, a in enumerate(axes)}
        return _aligned(x, place, ndim) * _aligned(y, place, ndim), axes
    left = _matrix(first, xa, batch, rows, summed)
    right = _matrix(second, ya, batch, summed, columns)
    product = _integer_product(left, right) if left.dtype == np.int64 else np.matmul(left, right)
    size = {**dict(zip(xa, first.shape, strict=True)), **dict(zip(ya, second.shape, strict=True))}
    return product.reshape([size[a] for a in axes]), axes


def _integer_product(left: Array, right: Array) -> Array:
    """A product of int64 matrices, through float64 in pieces whose sums stay below 2**53 where that is worth it."""
    step = (_EXACT_FLOAT - 1) // max(1, magnitude(left) * magnitude(right))
    if step < 16:
        return np.asarray(np.matmul(left, right))
    total: Array = np.zeros((*left.shape[:-1], right.shape[-1]), np.int64)
    for start in range(0, left.shape[-1], step):
        piece = slice(start, start + step)
        part = np.matmul(left[..., piece].astype(np.float64), right[..., piece, :].astype(np.float64))
        total += part.astype(np.int64)
    return total


def _aligned(operand: Operand, place: dict[int, int], ndim: int) -> Array:
    """The array with its axes moved to their places among `ndim` axes, the others of size 1."""
    array, axes = operand
    order = sorted(range(len(axes)), key=lambda k: place[axes[k]])
    shape = [1] * ndim
    for a, n in zip(axes, array.shape, strict=True):
        shape[place[a]] = n
    aligned: Array = array.transpose(order).reshape(shape)
    return aligned


def _matrix(
    array: Array, axes: Sequence[int], batch: Sequence[int], rows: Sequence[int], columns: Sequence[int]
) -> Array:
    """array as [batch..., rows, columns], each of the last two flattened."""
    position = {a: k for k, a in enumerate(axes)}
    moved = array.transpose([position[a] for a in (*batch, *rows, *columns)])
    cut = len(batch)
    height = prod(moved.shape[cut : cut + len(rows)])
    flat: Array = moved.reshape((*moved.shape[:cut], height, prod(moved.shape[cut + len(rows) :])))
    return flat
