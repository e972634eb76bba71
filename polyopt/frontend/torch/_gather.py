"""Data-dependent indexing: may-accesses.  Indices that are folded constants become exact subscripts instead."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from polyopt.errors import InternalError
from polyopt.frontend.torch._build import Axis, Builder, Call
from polyopt.frontend.torch._fold import as_expression
from polyopt.frontend.torch._pointwise import apply
from polyopt.frontend.torch._value import Array, Piece, Value, canonical, gather, split_index, substituted
from polyopt.ir import Const, Index, Indirect, Read
from polyopt.sets import Affine, Constraint, Interval, affine

__all__ = ["embedding", "gather_dim", "index_select", "index_tensors", "nearest"]

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
    places: list[Place] = [a.index for a in axes]
    if len(x):
        places[dim] = (index, axes)
    return _lookup(b, call, x, places, axes)


def index_select(b: Builder, call: Call) -> Value:
    """out[.., i, ..] = self[.., index[i], ..]."""
    x, index = call.value("self"), call.value("index")
    dim = call.dim("dim", len(x))
    index = _wrapped(b, call, index, x.shape[dim], 0)
    axes = [b.axis(f"i{k}", n, (index, 0) if k == dim else (x, k)) for k, n in enumerate(call.shape)]
    places: list[Place] = [a.index for a in axes]
    places[dim] = (index, [axes[dim]])
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
    wrapped = {k: _wrapped(b, call, v, x.shape[k], k) for k, v in used.items()}
    plain = [k for k in range(len(x)) if k not in used]
    uses: list[list[tuple[Value, int]]] = [[(x, k)] for k in plain]
    uses[lead:lead] = [[(v, j - rank + len(v)) for v in wrapped.values() if j >= rank - len(v)] for j in range(rank)]
    axes = [b.axis(f"i{k}", n, *uses[k]) for k, n in enumerate(call.shape)]
    shared, others = axes[lead : lead + rank], iter([*axes[:lead], *axes[lead + rank :]])
    places: list[Place] = [
        (wrapped[k], shared[rank - len(wrapped[k]) :]) if k in used else next(others).index for k in range(len(x))
    ]
    return _lookup(b, call, x, places, axes)


def nearest(b: Builder, call: Call) -> Value:
    """Nearest-neighbour resampling of the trailing dimensions: out[o] = in[min(floor(o / scale), n - 1)]."""
    x = call.value("input")
    scales = call.arguments.get("scale_factors")
    given = scales if isinstance(scales, (list, tuple)) else None
    indices: dict[int, Value] = {}
    for k, (n, m) in enumerate(zip(x.shape[2:], call.shape[2:], strict=True)):
        ratio = np.float32(1.0 / float(given[k]) if given is not None else n / m)
        known = np.minimum(np.floor(np.arange(m, dtype=np.float32) * ratio).astype(np.int64), n - 1)
        indices[k + 2] = _constant_index(b, f"{call.name}_index{k}", known)
    axes = [b.axis(f"i{k}", n, (indices[k], 0) if k in indices else (x, k)) for k, n in enumerate(call.shape)]
    places: list[Place] = [(indices[k], [a]) if k in indices else a.index for k, a in enumerate(axes)]
    return _lookup(b, call, x, places, axes)


def _constant_index(b: Builder, name: str, known: Array) -> Value:
    found = as_expression(known, "int64")
    return found if found is not None else b.constant(name, known, "int64")


def _wrapped(b: Builder, call: Call, index: Value, extent: int, position: int) -> Value:
    """`index` with negative entries counted from the end."""
    if index.known is not None:
        known = np.asarray(index.known, dtype=np.int64)
        return _constant_index(b, f"{call.name}_index{position}", np.where(known < 0, known + extent, known))
    axes = [b.axis(f"i{k}", n, (index, k)) for k, n in enumerate(index.shape)]
    target, result = b.temp(f"{call.name}_index{position}", axes, index.dtype)
    b.emit(
        call, f"index{position}", axes, target, [b.cases(index, [a.index for a in axes], axes)],
        lambda e: apply("select", apply("<", e[0], Const(0)), apply("+", e[0], Const(extent)), e[0]),
    )  # fmt: skip
    return result


Place = tuple[Value, Sequence[Axis]] | Affine


def _lookup(b: Builder, call: Call, x: Value, places: Sequence[Place], axes: Sequence[Axis]) -> Value:
    """out[axes] = x[places], where a place is an index, or an integer tensor with the axes that index it.

    A view when every place is an expression of the iterators; else a statement with a may-access.
    """
    ranges: dict[str, Interval] = {}
    for a in axes:
        ranges |= a.ranges
    x = b.bounded(call, x)
    exact = [_exact_parts(b, p, axes) for p in places]
    if all(exact):
        return _exact_view(call, x, exact, axes, ranges)
    resolved = [p if isinstance(p, Affine) else _position(b, call, *p, axes) for p in places]
    access = gather(x, resolved, ranges) or gather(_plain(b, call, x), resolved, ranges)
    if access is None:
        raise InternalError(f"{call.operator}: no access for {resolved} of a plain tensor")
    target, result = b.temp(call.name, axes, call.dtype)
    b.emit(call, "", axes, target, [[Piece((), Read(access))]], lambda e: e[0])
    return result


Part = tuple[tuple[Constraint, ...], Affine]


def _exact_view(
    call: Call, x: Value, parts: Sequence[Sequence[Part]], axes: Sequence[Axis], ranges: Mapping[str, Interval]
) -> Value:
    """x at indices that are expressions of the iterators, one view piece per combination of their parts."""
    pieces: list[Piece] = []
    for combination in itertools.product(*parts):
        values: dict[str, Affine] = {}
        for digits, (_, index) in zip(x.dims, combination, strict=True):
            values |= split_index(index, digits, ranges)
        guards = [g for own, _ in combination for g in own]
        pieces += [p for p in (substituted(q, values, ranges, guards) for q in x.pieces) if p is not None]
    return canonical(call.dtype, [a.digits for a in axes], pieces, {})


def _exact_parts(b: Builder, place: Place, axes: Sequence[Axis]) -> list[Part]:
    """The index at `place` as guarded expressions of the iterators; empty when it depends on data."""
    if isinstance(place, Affine):
        return [((), place)]
    value, own = place
    at = [a.index if n != 1 else affine(0) for a, n in zip(own, value.shape, strict=True)]
    parts: list[Part] = []
    for case in b.cases(value, at, axes):
        if isinstance(case.expr, Index):
            parts.append((case.constraints, case.expr.value))
        elif isinstance(case.expr, Const):
            parts.append((case.constraints, affine(int(case.expr.value))))
        else:
            return []
    return parts


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
        (piece,) = cases
        if isinstance(piece.expr, Index):
            return piece.expr.value
        if isinstance(piece.expr, Const):
            return affine(int(piece.expr.value))
        if isinstance(piece.expr, Read) and piece.expr.access.is_exact:
            return Indirect(piece.expr.access)
    copied = b.materialise(call, index, "index")
    (piece,) = b.cases(copied, at, axes)
    if not isinstance(piece.expr, Read):
        raise InternalError(f"{call.operator}: a copied index is {piece.expr}, expected a read")
    return Indirect(piece.expr.access)
