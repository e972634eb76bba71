"""Tensor values as access relations: what a view, a slice or a concatenation reads, without copying anything.

A value's element is an expression over *digits*.  A dimension of extent n is a list of digits whose extents multiply to
n, the outermost first (mixed radix); a dimension of extent 1 has none.  Splitting a digit is an affine substitution, so
reshapes whose factors line up stay affine; only those that do not line up get floors.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from polyopt.ir import Access, Apply, Cast, Expr, Index, Indirect, Read, Uninterpreted, access_variables
from polyopt.sets import Affine, Constraint, Interval, affine, interval, simplify, var

__all__ = [
    "Array",
    "Digit",
    "Piece",
    "Value",
    "dim_index",
    "map_affine",
    "read",
    "restrict",
    "stored",
    "substituted",
]

Array = np.ndarray[tuple[int, ...], np.dtype[np.generic]]
Ranges = Mapping[str, Interval]


@dataclass(frozen=True, slots=True)
class Digit:
    """A variable `0 <= name < extent`."""

    name: str
    extent: int


@dataclass(frozen=True, slots=True)
class Piece:
    """The element is `expr` where all `constraints` hold."""

    constraints: tuple[Constraint, ...]
    expr: Expr


@dataclass(frozen=True, slots=True)
class Value:
    """A tensor value: `dims` name digits, `pieces` partition them; `known` are the elements of a folded constant."""

    dtype: str
    dims: tuple[tuple[Digit, ...], ...]
    pieces: tuple[Piece, ...]
    known: Array | None = field(default=None, compare=False)

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(math.prod(d.extent for d in dim) for dim in self.dims)

    @property
    def ranges(self) -> dict[str, Interval]:
        return {d.name: (0, d.extent - 1) for dim in self.dims for d in dim}

    def __len__(self) -> int:
        return len(self.dims)


def stored(name: str, shape: Sequence[int], dtype: str) -> Value:
    """The value that reads tensor `name` as it lies."""
    dims = tuple((Digit(f"d{k}", n),) if n != 1 else () for k, n in enumerate(shape))
    subscripts = tuple(dim_index(dim) for dim in dims)
    return canonical(dtype, dims, (Piece((), Read(Access(name, subscripts))),), {})


def dim_index(digits: Sequence[Digit]) -> Affine:
    """The index that mixed-radix digits stand for.

    >>> str(dim_index((Digit("a", 3), Digit("b", 7))))
    '7*a + b'
    """
    total = affine(0)
    for d in digits:
        total = total * d.extent + d.name
    return total


def split_index(index: Affine, digits: Sequence[Digit], ranges: Ranges) -> dict[str, Affine]:
    """The digits of `index`, simplified under `ranges`; the outermost digit takes whatever is left."""
    values: dict[str, Affine] = {}
    weight = 1
    for k in range(len(digits) - 1, -1, -1):
        rest = simplify(index // weight, ranges)
        if k:
            rest = simplify(rest - simplify(rest // digits[k].extent, ranges) * digits[k].extent, ranges)
        values[digits[k].name] = rest
        weight *= digits[k].extent
    return values


def map_affine(expr: Expr, change: Callable[[Affine], Affine]) -> Expr:
    """Apply `change` to every subscript (those inside data-dependent subscripts too) and every index value."""
    if isinstance(expr, Index):
        return Index(change(expr.value))
    if isinstance(expr, Read):
        return Read(map_access(expr.access, change))
    if isinstance(expr, Apply):
        return Apply(expr.op, tuple(map_affine(a, change) for a in expr.args))
    if isinstance(expr, Cast):
        return Cast(expr.dtype, map_affine(expr.arg, change))
    if isinstance(expr, Uninterpreted):
        return Uninterpreted(expr.name, tuple(map_affine(a, change) for a in expr.args))
    return expr


def map_access(access: Access, change: Callable[[Affine], Affine]) -> Access:
    """Apply `change` to every subscript."""
    subscripts = tuple(
        change(s) if isinstance(s, Affine) else Indirect(map_access(s.access, change), change(s.offset))
        for s in access.subscripts
    )
    return Access(access.tensor, subscripts)


def restrict(constraints: Iterable[Constraint], ranges: Ranges) -> tuple[Constraint, ...] | None:
    """Drop what the ranges imply; None when a constraint cannot hold."""
    kept: list[Constraint] = []
    for c in constraints:
        low, high = interval(c.expr, ranges)
        if (high is not None and high < 0) or (c.equality and low is not None and low > 0):
            return None
        if (low is None or low < 0 or (c.equality and high != 0)) and c not in kept:
            kept.append(c)
    return tuple(kept)


def substituted(
    piece: Piece, values: Mapping[str, Affine], ranges: Ranges, extra: Iterable[Constraint] = ()
) -> Piece | None:
    """`piece` with digits replaced, simplified under `ranges` of the new variables; None when it is empty."""
    constraints = [
        Constraint(simplify(c.expr, ranges), c.equality)
        for c in (*(c.substitute(values) for c in piece.constraints), *extra)
    ]
    kept = restrict(constraints, ranges)
    if kept is None:
        return None
    return Piece(kept, map_affine(piece.expr, lambda e: simplify(e.substitute(values), ranges)))


def canonical(
    dtype: str, dims: Sequence[Sequence[Digit]], pieces: Iterable[Piece], values: Mapping[str, Affine]
) -> Value:
    """The value over new `dims` after replacing old digits by `values`; digits are renamed d0, d1, ... in order."""
    dims = tuple(tuple(d for d in dim if d.extent != 1) for dim in dims)
    names = {d.name: f"d{k}" for k, d in enumerate(d for dim in dims for d in dim)}
    fresh = tuple(tuple(Digit(names[d.name], d.extent) for d in dim) for dim in dims)
    ranges: dict[str, Interval] = {d.name: (0, d.extent - 1) for dim in fresh for d in dim}
    renaming = {old: var(new) for old, new in names.items()}
    total = {**renaming, **{old: e.substitute(renaming) for old, e in values.items()}}
    new = (substituted(p, total, ranges) for p in pieces)
    return Value(dtype, fresh, tuple(p for p in new if p is not None))


def read(value: Value, indices: Sequence[Affine], ranges: Ranges) -> list[Piece]:
    """The element at `indices` (one per dimension), as pieces over the variables of `ranges`."""
    values: dict[str, Affine] = {}
    for digits, index in zip(value.dims, indices, strict=True):
        values.update(split_index(index, digits, ranges))
    found = (substituted(p, values, ranges) for p in value.pieces)
    return [p for p in found if p is not None]


def gather(value: Value, indices: Sequence[Affine | Indirect], ranges: Ranges) -> Access | None:
    """The access at indices of which some are data-dependent; None when `value` is not a plain view there.

    A data-dependent index needs its dimension to be one digit that is, up to a constant, one subscript of one tensor.
    """
    if len(value.pieces) != 1 or value.pieces[0].constraints or not isinstance(value.pieces[0].expr, Read):
        return None
    access = value.pieces[0].expr.access
    exact: dict[str, Affine] = {}
    indirect: dict[str, Indirect] = {}
    for digits, index in zip(value.dims, indices, strict=True):
        if isinstance(index, Affine):
            exact.update(split_index(index, digits, ranges))
        elif len(digits) > 1:
            return None
        elif digits:
            indirect[digits[0].name] = index
    return _gathered(access, exact, indirect, ranges)


def _gathered(
    access: Access, exact: Mapping[str, Affine], indirect: Mapping[str, Indirect], ranges: Ranges
) -> Access | None:
    subscripts: list[Affine | Indirect] = []
    for s in access.subscripts:
        used = (s.variables() if isinstance(s, Affine) else access_variables(s.access)) & indirect.keys()
        if not used:
            plain = map_access(Access("", (s,)), lambda e: simplify(e.substitute(exact), ranges))
            subscripts.append(plain.subscripts[0])
            continue
        (name, *others) = sorted(used)
        if others or not isinstance(s, Affine) or not (s - name).is_constant:
            return None
        subscripts.append(Indirect(indirect[name].access, indirect[name].offset + (s - name)))
    return Access(access.tensor, tuple(subscripts))


def size(expr: Expr) -> int:
    """The number of nodes."""
    return 1 + sum(size(a) for a in _arguments(expr))


def _arguments(expr: Expr) -> Iterator[Expr]:
    if isinstance(expr, (Apply, Uninterpreted)):
        yield from expr.args
    elif isinstance(expr, Cast):
        yield expr.arg
