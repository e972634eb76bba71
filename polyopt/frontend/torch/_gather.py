"""Data-dependent indexing: may-accesses.  Indices that are folded constants become exact subscripts instead."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from polyopt.errors import InternalError
from polyopt.frontend.torch._build import Axis, Builder, Call
from polyopt.frontend.torch._fold import as_expression
from polyopt.frontend.torch._pointwise import apply
from polyopt.frontend.torch._value import Piece, Value, canonical, gather, split_index, substituted
from polyopt.ir import Const, Index, Indirect, Read
from polyopt.sets import Affine, Interval, affine

__all__ = ["embedding", "gather_dim", "index_select", "index_tensors"]

Position = Affine | Indirect


def embedding(b: Builder, call: Call) -> Value:
    """weight[indices[...], :]."""
    weight, indices = call.value("weight"), call.value("indices")
    axes = [b.axis(f"i{k}", n, (indices, k)) for k, n in enumerate(indices.shape)]
    columns = b.axis("j", weight.shape[1], (weight, 1))
    return _lookup(b, call, weight, [(indices, axes), columns.index], [*axes, columns])


def gather_dim(b: Builder, call: Call) -> Value:
    """out[i] = self[i with position `dim` replaced by index[i]]."""
    x, index = call.value("self"), call.value("index")
    dim = call.dim("dim", len(x))
    axes = [b.axis(f"i{k}", n, (index, k)) for k, n in enumerate(call.shape)]
    places: list[tuple[Value, Sequence[Axis]] | Affine] = [a.index for a in axes]
    if len(x):
        places[dim] = (index, axes)
    return _lookup(b, call, x, places, axes)


def index_select(b: Builder, call: Call) -> Value:
    """out[.., i, ..] = self[.., index[i], ..]."""
    x, index = call.value("self"), call.value("index")
    dim = call.dim("dim", len(x))
    axes = [b.axis(f"i{k}", n, *([] if k == dim else [(x, k)])) for k, n in enumerate(call.shape)]
    places: list[tuple[Value, Sequence[Axis]] | Affine] = [a.index for a in axes]
    places[dim] = (_wrapped(b, call, index, x.shape[dim], 0), [axes[dim]])
    return _lookup(b, call, x, places, axes)


def index_tensors(b: Builder, call: Call) -> Value:
    """self[indices] with some indices None: the others broadcast; their dimensions stand where the first stood.

    When a None separates them, the broadcast dimensions come first, as in NumPy.
    """
    x = call.value("self")
    given = call.arguments["indices"]
    if not isinstance(given, (list, tuple)):
        raise call.refuse(f"indices are {given!r}, expected a list of tensors")
    used = {k: v for k, v in enumerate(given) if isinstance(v, Value)}
    if any(v.dtype in ("bool", "uint8") for v in used.values()):
        raise call.refuse(
            "a mask of truth values as an index gives a result whose size depends on data",
            help="use torch.where or multiply by the mask",
        )
    rank = max(len(v) for v in used.values())
    adjacent = max(used) - min(used) + 1 == len(used)
    lead = min(used) if adjacent else 0
    axes = [b.axis(f"i{k}", n) for k, n in enumerate(call.shape)]
    shared = axes[lead : lead + rank]
    others = iter([*axes[:lead], *axes[lead + rank :]])
    places: list[tuple[Value, Sequence[Axis]] | Affine] = []
    for k, n in enumerate(x.shape):
        if k in used:
            places.append((_wrapped(b, call, used[k], n, k), shared[rank - len(used[k]) :]))
        else:
            places.append(next(others).index)
    return _lookup(b, call, x, places, axes)


def _wrapped(b: Builder, call: Call, index: Value, extent: int, position: int) -> Value:
    """`index` with negative entries counted from the end."""
    if index.known is not None:
        known = np.asarray(index.known, dtype=np.int64)
        known = np.where(known < 0, known + extent, known)
        found = as_expression(known, "int64")
        return found if found is not None else b.constant(f"{call.name}_index{position}", known, "int64")
    axes = [b.axis(f"i{k}", n, (index, k)) for k, n in enumerate(index.shape)]
    target, result = b.temp(f"{call.name}_index{position}", axes, index.dtype)
    b.emit(
        call, f"index{position}", axes, target, [b.cases(index, [a.index for a in axes], axes)],
        lambda e: apply("select", apply("<", e[0], Const(0)), apply("+", e[0], Const(extent)), e[0]),
    )  # fmt: skip
    return result


def _lookup(
    b: Builder,
    call: Call,
    x: Value,
    places: Sequence[tuple[Value, Sequence[Axis]] | Affine],
    axes: Sequence[Axis],
) -> Value:
    """out[axes] = x[places], where a place is an index, or an integer tensor with the axes that index it.

    A view when every place is an expression of the iterators; else a statement with a may-access.
    """
    ranges: dict[str, Interval] = {}
    for a in axes:
        ranges |= a.ranges
    resolved = [p if isinstance(p, Affine) else _position(b, call, *p, axes) for p in places]
    x = b.bounded(call, x)
    if all(isinstance(p, Affine) for p in resolved):
        exact = [p for p in resolved if isinstance(p, Affine)]
        values: dict[str, Affine] = {}
        for digits, p in zip(x.dims, exact, strict=True):
            values |= split_index(p, digits, ranges)
        found = [substituted(piece, values, ranges) for piece in x.pieces]
        return canonical(call.dtype, [a.digits for a in axes], [p for p in found if p is not None], {})
    access = gather(x, resolved, ranges) or gather(_plain(b, call, x), resolved, ranges)
    if access is None:
        raise InternalError(f"{call.operator}: no access for {resolved} of a plain tensor")
    target, result = b.temp(call.name, axes, call.dtype)
    b.emit(call, "", axes, target, [[Piece((), Read(access))]], lambda e: e[0])
    return result


def _plain(b: Builder, call: Call, x: Value) -> Value:
    """`x` copied into a tensor of exactly its dimensions."""
    axes = [Axis(tuple(replace(d, name=f"i{k}", extent=n) for d in x.dims[k][:1])) for k, n in enumerate(x.shape)]
    target, result = b.temp(f"{call.name}_plain", axes, x.dtype)
    b.emit(call, "plain", axes, target, [b.cases(x, [a.index for a in axes], axes)], lambda e: e[0])
    return result


def _position(b: Builder, call: Call, index: Value, own: Sequence[Axis], axes: Sequence[Axis]) -> Position:
    """The subscript that `index` gives at the iterators of `own`: exact when it is an expression of them."""
    at = [a.index if n != 1 else affine(0) for a, n in zip(own, index.shape, strict=True)]
    cases = b.cases(index, at, axes)
    if len(cases) == 1 and not cases[0].constraints:
        expr = cases[0].expr
        if isinstance(expr, Index):
            return expr.value
        if isinstance(expr, Const):
            return affine(int(expr.value))
        if isinstance(expr, Read) and expr.access.is_exact:
            return Indirect(expr.access)
    copied = b.materialise(call, index, "index")
    (piece,) = b.cases(copied, at, axes)
    if not isinstance(piece.expr, Read):
        raise InternalError(f"{call.operator}: a copied index is {piece.expr}, expected a read")
    return Indirect(piece.expr.access)
