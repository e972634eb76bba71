"""View-like operators as compositions of access relations: value in, value out, no statement.

Dimensions are counted from 0; callers resolve negative numbers.  Sizes are plain integers.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

from polyopt.frontend.torch._value import (
    Digit,
    Piece,
    Value,
    canonical,
    dim_index,
    split_index,
    substituted,
)
from polyopt.ir import Const
from polyopt.sets import Affine, Constraint, Interval, affine, var

__all__ = [
    "common_digits",
    "concatenate",
    "diagonal",
    "expand",
    "flip",
    "pad",
    "permute",
    "repeat",
    "reshape",
    "select",
    "slice_dim",
    "squeeze",
    "unfold",
    "unsqueeze",
]

Digits = tuple[Digit, ...]


def permute(value: Value, order: Sequence[int]) -> Value:
    """result[i_0, ...] = value with dimension order[k] indexed by i_k."""
    return canonical(value.dtype, [value.dims[k] for k in order], value.pieces, {})


def unsqueeze(value: Value, dim: int) -> Value:
    """A dimension of extent 1 in front of `dim`."""
    return canonical(value.dtype, [*value.dims[:dim], (), *value.dims[dim:]], value.pieces, {})


def squeeze(value: Value, dims: Sequence[int]) -> Value:
    """Drop those of `dims` whose extent is 1."""
    kept = [d for k, d in enumerate(value.dims) if k not in dims or d]
    return canonical(value.dtype, kept, value.pieces, {})


def expand(value: Value, shape: Sequence[int]) -> Value:
    """Broadcast to `shape` (no -1); new dimensions come in front."""
    lead = len(shape) - len(value)
    dims: list[Digits] = []
    for k, n in enumerate(shape):
        own = value.dims[k - lead] if k >= lead else ()
        dims.append(own or (Digit(f"x{k}", n),))
    return canonical(value.dtype, dims, value.pieces, {})


def flip(value: Value, dims: Sequence[int]) -> Value:
    """result[i] = value[n - 1 - i] along `dims`: every digit is reversed."""
    new: list[Digits] = list(value.dims)
    values: dict[str, Affine] = {}
    for k in dims:
        new[k] = tuple(Digit(f"r_{d.name}", d.extent) for d in value.dims[k])
        values |= {d.name: affine(d.extent - 1) - f"r_{d.name}" for d in value.dims[k]}
    return canonical(value.dtype, new, value.pieces, values)


def repeat(value: Value, times: Sequence[int]) -> Value:
    """Tile the value `times[k]` times along dimension k; new dimensions come in front."""
    lead = len(times) - len(value)
    dims: list[Digits] = []
    for k, n in enumerate(times):
        own = value.dims[k - lead] if k >= lead else ()
        dims.append((Digit(f"x{k}", n), *own))
    return canonical(value.dtype, dims, value.pieces, {})


def select(value: Value, dim: int, index: int) -> Value:
    """Drop `dim` by fixing it to `index` >= 0."""
    values = split_index(affine(index), value.dims[dim], {})
    return canonical(value.dtype, [*value.dims[:dim], *value.dims[dim + 1 :]], value.pieces, values)


def slice_dim(value: Value, dim: int, start: int, extent: int, step: int = 1) -> Value:
    """result[.., i, ..] = value[.., start + step*i, ..] for 0 <= i < extent."""
    if start == 0 and extent == value.shape[dim]:
        return value
    digits, values = _slice_digits(value.dims[dim], start, extent, step)
    return canonical(value.dtype, [*value.dims[:dim], digits, *value.dims[dim + 1 :]], value.pieces, values)


def _slice_digits(digits: Digits, start: int, extent: int, step: int) -> tuple[Digits, dict[str, Affine]]:
    """New digits of the sliced dimension, and the old ones in terms of them."""
    if extent == 1:
        return (), split_index(affine(start), digits, {})
    if extent == 0:
        return (Digit("none", 0),), {d.name: affine(0) for d in digits}
    head, *tail = digits
    block = math.prod(d.extent for d in tail)
    if tail and (start + step * (extent - 1)) // block == start // block:  # inside one block
        inner, values = _slice_digits(tuple(tail), start % block, extent, step)
        return inner, {head.name: affine(start // block), **values}
    if tail and step == 1 and start % block == 0 and extent % block == 0:  # whole blocks
        fresh = Digit(f"s_{head.name}", extent // block)
        return (fresh, *tail), {head.name: var(fresh.name) + start // block}
    fresh = Digit(f"s_{head.name}", extent)
    ranges: dict[str, Interval] = {fresh.name: (0, extent - 1)}
    return (fresh,), split_index(var(fresh.name) * step + start, digits, ranges)


def diagonal(value: Value, offset: int, dim1: int, dim2: int) -> Value:
    """result[.., i] = value with dim1 at i + max(-offset, 0), dim2 at i + max(offset, 0); the new dimension is last."""
    first, second = max(-offset, 0), max(offset, 0)
    extent = max(0, min(value.shape[dim1] - first, value.shape[dim2] - second))
    fresh = Digit("diag", extent)
    index = var("diag") if extent != 1 else affine(0)
    ranges: dict[str, Interval] = {"diag": (0, extent - 1)}
    values = split_index(index + first, value.dims[dim1], ranges)
    values |= split_index(index + second, value.dims[dim2], ranges)
    dims = [d for k, d in enumerate(value.dims) if k not in (dim1, dim2)]
    return canonical(value.dtype, [*dims, (fresh,)], value.pieces, values)


def unfold(value: Value, dim: int, window: int, step: int) -> Value:
    """result[.., i, .., j] = value[.., step*i + j, ..] for 0 <= j < window; the window is the last dimension."""
    count = (value.shape[dim] - window) // step + 1
    outer, inner = Digit("win", count), Digit("tap", window)
    ranges: dict[str, Interval] = {"win": (0, count - 1), "tap": (0, window - 1)}
    index = (var("win") * step if count != 1 else affine(0)) + (var("tap") if window != 1 else affine(0))
    values = split_index(index, value.dims[dim], ranges)
    dims = [*value.dims[:dim], (outer,), *value.dims[dim + 1 :], (inner,)]
    return canonical(value.dtype, dims, value.pieces, values)


def reshape(value: Value, shape: Sequence[int]) -> Value:
    """The same elements in row-major order under another shape (no -1)."""
    if math.prod(shape) == 0:
        return Value(value.dtype, tuple((Digit(f"d{k}", n),) for k, n in enumerate(shape)), ())
    dims: list[Digits] = [()] * len(shape)
    values: dict[str, Affine] = {}
    for digits, places in _blocks([d for dim in value.dims for d in dim], shape):
        extents = [shape[k] for k in places]
        aligned = _aligned(digits, extents)
        new, mapping = aligned if aligned is not None else _relinearised(digits, extents)
        values |= mapping
        for k, d in zip(places, new, strict=True):
            dims[k] = d
    return canonical(value.dtype, dims, value.pieces, values)


def _blocks(digits: Sequence[Digit], shape: Sequence[int]) -> Iterator[tuple[list[Digit], list[int]]]:
    """Smallest runs of digits and of dimensions (extent 1 left out) with equal products, innermost first."""
    left, places = list(digits), [k for k, n in enumerate(shape) if n != 1]
    while left:
        block, taken = [left.pop()], [places.pop()]
        old, new = block[0].extent, shape[taken[0]]
        while old != new:
            if old < new:
                block.insert(0, left.pop())
                old *= block[0].extent
            else:
                taken.insert(0, places.pop())
                new *= shape[taken[0]]
        yield block, taken


def _aligned(digits: Sequence[Digit], extents: Sequence[int]) -> tuple[list[Digits], dict[str, Affine]] | None:
    """`digits` distributed over dimensions of `extents`, split where needed; None if the factors do not line up."""
    left = list(digits)
    values: dict[str, Affine] = {}
    new: list[Digits] = []
    for need in reversed(extents):
        own: list[Digit] = []
        while need > 1:
            d = left.pop()
            if need % d.extent == 0:
                own.insert(0, d)
                need //= d.extent
            elif d.extent % need == 0:
                high, low = Digit(f"{d.name}h", d.extent // need), Digit(f"{d.name}l", need)
                split = var(high.name) * need + low.name
                values = {k: e.substitute({d.name: split}) for k, e in values.items()}
                if d in digits:
                    values[d.name] = split
                left.append(high)
                own.insert(0, low)
                need = 1
            else:
                return None
        new.insert(0, tuple(own))
    return new, values


def _relinearised(digits: Sequence[Digit], extents: Sequence[int]) -> tuple[list[Digits], dict[str, Affine]]:
    """One digit per dimension; the old digits become floors and remainders of the row-major index."""
    fresh = [Digit(f"{digits[0].name}_{k}", n) for k, n in enumerate(extents)]
    ranges: dict[str, Interval] = {d.name: (0, d.extent - 1) for d in fresh}
    return [(d,) for d in fresh], split_index(dim_index(fresh), digits, ranges)


def common_digits(candidates: Sequence[Digits], extent: int) -> tuple[int, ...]:
    """Extents, outermost first, of a refinement of the candidate splits of one dimension that line up (first come).

    >>> common_digits([(Digit("a", 3), Digit("b", 8)), (Digit("c", 6), Digit("d", 4))], 24)
    (3, 2, 4)
    """
    if extent == 0:
        return (0,)
    chosen = {1, extent}
    for digits in candidates:
        weights = {1}
        for d in reversed(digits):
            weights.add(max(weights) * d.extent)
        ordered = sorted(chosen | weights)
        if all(b % a == 0 for a, b in itertools.pairwise(ordered)):
            chosen |= weights
    ordered = sorted(chosen, reverse=True)
    return tuple(a // b for a, b in itertools.pairwise(ordered))


def concatenate(values: Sequence[Value], dim: int) -> Value:
    """The values one after the other along `dim`; their other extents are equal.  One piece per piece of each value."""
    values = [v for v in values if v.shape[dim]] or list(values[:1])
    total = sum(v.shape[dim] for v in values)
    tail = _tail_digits([v.dims[dim] for v in values])
    block = math.prod(tail)
    dims: list[Digits] = []
    for k, n in enumerate(values[0].shape):
        extents = (total // block, *tail) if k == dim else common_digits([v.dims[k] for v in values], n)
        dims.append(tuple(Digit(f"c{k}_{j}", m) for j, m in enumerate(extents) if m != 1))
    pieces: list[Piece] = []
    offset = 0
    for v in values:
        pieces += _shifted(v, dims, dim, offset, block)
        offset += v.shape[dim]
    return canonical(values[0].dtype, dims, pieces, {})


def _shifted(value: Value, dims: Sequence[Digits], dim: int, offset: int, block: int) -> Iterator[Piece]:
    """The pieces of `value` placed at `offset` along `dim`, whose outermost digit counts blocks of `block` elements."""
    ranges: dict[str, Interval] = {d.name: (0, d.extent - 1) for own in dims for d in own}
    inside: tuple[Constraint, ...] = ()
    if dims[dim]:
        first = affine(dims[dim][0].name) - offset // block
        inside = (Constraint(first), Constraint(affine(value.shape[dim] // block - 1) - first))
    mapping: dict[str, Affine] = {}
    for k, digits in enumerate(value.dims):
        index = dim_index(dims[k]) - (offset if k == dim else 0)
        mapping |= split_index(index, digits, ranges)
    for piece in value.pieces:
        new = substituted(piece, mapping, ranges, inside)
        if new is not None:
            yield new


def _tail_digits(candidates: Sequence[Digits]) -> tuple[int, ...]:
    """The longest inner split that all operands of a concatenation share, as extents."""
    extents = [math.prod(d.extent for d in digits) for digits in candidates]
    tail = [d.extent for d in candidates[0][1:]] if candidates[0] else []
    while tail:
        block = math.prod(tail)
        if all(n % block == 0 for n in extents) and all(
            common_digits([digits, (Digit("h", n // block), *(Digit(f"t{k}", t) for k, t in enumerate(tail)))], n)[
                -len(tail) :
            ]
            == tuple(tail)
            for digits, n in zip(candidates, extents, strict=True)
        ):
            break
        tail.pop(0)
    return tuple(tail)


def pad(value: Value, amounts: Sequence[tuple[int, int]], fill: float | int | bool) -> Value:
    """`fill` around the value: amounts[k] is (before, after) of dimension k, negative to crop."""
    for k, (before, after) in enumerate(amounts):
        value = _pad_dim(value, k, before, after, fill)
    return value


def _pad_dim(value: Value, dim: int, before: int, after: int, fill: float | int | bool) -> Value:
    start, stop = max(0, -before), value.shape[dim] - max(0, -after)
    value = slice_dim(value, dim, start, stop - start) if (start, stop) != (0, value.shape[dim]) else value
    parts = [_constant(value, dim, before, fill), value, _constant(value, dim, after, fill)]
    kept = [p for p in parts if p is not None]
    return concatenate(kept, dim) if len(kept) > 1 else value


def _constant(like: Value, dim: int, extent: int, fill: float | int | bool) -> Value | None:
    if extent <= 0:
        return None
    dims = [d if k != dim else (Digit("pad", extent),) for k, d in enumerate(like.dims)]
    return canonical(like.dtype, dims, (Piece((), Const(fill)),), {})
