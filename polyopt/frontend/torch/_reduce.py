"""Sums, products, extrema, softmax, normalisations and running sums: an initial value, then combining statements."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from polyopt.frontend.torch._build import Axis, Builder, Call, accumulator_dtype
from polyopt.frontend.torch._pointwise import apply, convert
from polyopt.frontend.torch._value import Piece, Value
from polyopt.frontend.torch._views import reshape, squeeze
from polyopt.ir import Access, Const, Expr, Index, Read, dtype
from polyopt.sets import Affine, Constraint, affine

__all__ = [
    "any_all",
    "arg_extremum",
    "batch_norm_inference",
    "batch_norm_statistics",
    "cumulative",
    "extremum",
    "group_norm",
    "layer_norm",
    "mean",
    "product",
    "softmax",
    "sum_dims",
    "variance",
    "vector_norm",
]

IDENTITY: dict[str, float | int] = {"+": 0, "*": 1, "min": math.inf, "max": -math.inf}


def _start(combine: str, kind: str) -> Const:
    value = IDENTITY[combine]
    if kind == "bool":
        return Const(combine == "min")
    if dtype(kind).is_float:
        return Const(float(value))
    if math.isinf(value):
        bits = 8 * dtype(kind).element_bytes - (kind != "uint8")
        low = 0 if kind == "uint8" else -(2**bits)
        return Const(2**bits - 1 if combine == "min" else low)
    return Const(int(value))


def _axes(b: Builder, value: Value, reduced: Sequence[int]) -> tuple[list[Axis], list[Axis], list[Axis]]:
    """All axes in the order of the dimensions, those kept, and those reduced."""
    every = [b.axis(f"{'k' if k in reduced else 'i'}{k}", n, (value, k)) for k, n in enumerate(value.shape)]
    kept = [a for k, a in enumerate(every) if k not in reduced]
    return every, kept, [a for k, a in enumerate(every) if k in reduced]


def _kept(value: Value, reduced: Sequence[int], rank: int) -> Value:
    """`value`, which lacks the dimensions `reduced` of `rank`, with those of extent 1 put back."""
    kept = iter(value.dims)
    return Value(value.dtype, tuple(() if k in reduced else next(kept) for k in range(rank)), value.pieces)


def _indices(axes: Sequence[Axis], value: Value) -> list[Affine]:
    """Indices of `value`, which has extent 1 where it is broadcast along `axes`."""
    return [a.index if n != 1 else affine(0) for a, n in zip(axes, value.shape, strict=True)]


def reduce_dims(
    b: Builder,
    call: Call,
    operands: Sequence[Value],
    reduced: Sequence[int],
    combine: str,
    kind: str,
    suffix: str,
    make: Callable[[Sequence[Expr]], Expr],
) -> Value:
    """`combine` over dimensions `reduced` of `make(operands)`, in a temporary of type `kind`; those dims get extent 1.

    The first operand has the full shape; the others have the same rank and may be broadcast.  Over dimensions of extent
    1 nothing is combined: the element is the result.
    """
    every, kept, inner = _axes(b, operands[0], reduced)
    target, result = b.temp(f"{call.name}_{suffix}", kept, kind)
    cases = [b.cases(v, _indices(every, v), every) for v in operands]
    if all(a.extent == 1 for a in inner):
        b.emit(call, suffix, every, target, cases, make)
    else:
        b.emit(call, f"{suffix}_init", kept, target, [], lambda _: _start(combine, kind))
        b.emit(call, suffix, every, target, cases, make, combine=combine)
    return _kept(result, reduced, len(every))


def map_full(
    b: Builder,
    call: Call,
    operands: Sequence[Value],
    kind: str,
    suffix: str,
    make: Callable[[Sequence[Expr]], Expr],
) -> Value:
    """One statement over the shape of the first operand; the others have the same rank and may be broadcast."""
    axes = [b.axis(f"i{k}", n, (operands[0], k)) for k, n in enumerate(operands[0].shape)]
    target, result = b.temp("_".join(filter(None, (call.name, suffix))), axes, kind)
    b.emit(call, suffix, axes, target, [b.cases(v, _indices(axes, v), axes) for v in operands], make)
    return result


def reduced_dims(call: Call, value: Value, name: str = "dim") -> tuple[int, ...]:
    """The dimensions named by argument `name`, counted from 0; missing or empty means all."""
    given = () if call.arguments.get(name) is None else call.integers(name)
    return tuple(sorted({d % len(value) for d in given})) if given and len(value) else tuple(range(len(value)))


def _finish(call: Call, value: Value, reduced: Sequence[int]) -> Value:
    return value if call.flag("keepdim") else squeeze(value, reduced)


def sum_dims(b: Builder, call: Call) -> Value:
    """sum over dims; the accumulator is the result itself."""
    x = b.bounded(call, call.value("self"))
    dims = reduced_dims(call, x)
    total = reduce_dims(b, call, [x], dims, "+", call.dtype, "sum", lambda e: convert(e[0], x.dtype, call.dtype))
    return _finish(call, total, dims)


def mean(b: Builder, call: Call) -> Value:
    """sum in the accumulator's type, then scaled by 1/count."""
    x = b.bounded(call, call.value("self"))
    dims = reduced_dims(call, x)
    kind = accumulator_dtype(call.dtype)
    total = reduce_dims(b, call, [x], dims, "+", kind, "sum", lambda e: convert(e[0], x.dtype, kind))
    scale = Const(1.0 / math.prod(x.shape[d] for d in dims))
    return _finish(call, map_full(b, call, [total], call.dtype, "", lambda e: apply("*", e[0], scale)), dims)


def variance(b: Builder, call: Call) -> Value:
    """sum((x - mean)^2) / max(count - correction, 0), the mean computed first."""
    x = b.bounded(call, call.value("self"))
    dims = reduced_dims(call, x)
    kind = accumulator_dtype(call.dtype)
    count = math.prod(x.shape[d] for d in dims)
    _, square = _moments(b, call, x, dims, kind)
    divisor = max(0.0, count - float(call.number("correction", 1)))
    scale = Const(1.0 / divisor if divisor else math.inf)
    return _finish(call, map_full(b, call, [square], call.dtype, "", lambda e: apply("*", e[0], scale)), dims)


def _moments(b: Builder, call: Call, x: Value, dims: Sequence[int], kind: str) -> tuple[Value, Value]:
    """The mean over `dims`, and the sum of squared distances from it."""
    scale = Const(1.0 / math.prod(x.shape[d] for d in dims))
    total = reduce_dims(b, call, [x], dims, "+", kind, "sum", lambda e: e[0])
    average = map_full(b, call, [total], kind, "mean", lambda e: apply("*", e[0], scale))

    def squared(e: Sequence[Expr]) -> Expr:
        distance = apply("-", e[0], e[1])
        return apply("*", distance, distance)

    return average, reduce_dims(b, call, [x, average], dims, "+", kind, "squares", squared)


def product(b: Builder, call: Call) -> Value:
    """Product over one dimension, or all."""
    x = b.bounded(call, call.value("self"))
    dims = reduced_dims(call, x)
    total = reduce_dims(b, call, [x], dims, "*", call.dtype, "prod", lambda e: convert(e[0], x.dtype, call.dtype))
    return _finish(call, total, dims)


def extremum(combine: str) -> Callable[[Builder, Call], Value]:
    """amax or amin."""

    def rule(b: Builder, call: Call) -> Value:
        x = b.bounded(call, call.value("self"))
        dims = reduced_dims(call, x)
        return _finish(call, reduce_dims(b, call, [x], dims, combine, call.dtype, combine, lambda e: e[0]), dims)

    return rule


def any_all(combine: str) -> Callable[[Builder, Call], Value]:
    """`any` is the maximum of truth values, `all` their minimum."""

    def rule(b: Builder, call: Call) -> Value:
        x = b.bounded(call, call.value("self"))
        dims = reduced_dims(call, x)
        truth = reduce_dims(b, call, [x], dims, combine, "bool", combine, lambda e: convert(e[0], x.dtype, "bool"))
        return _finish(call, truth, dims)

    return rule


def arg_extremum(combine: str) -> Callable[[Builder, Call], Value]:
    """argmax or argmin: the smallest index at which the extremum stands, over one dimension or over all flattened."""

    def rule(b: Builder, call: Call) -> Value:
        x = b.bounded(call, call.value("self"))
        if call.arguments.get("dim") is None:
            dims = tuple(range(len(x)))
        else:
            dims = (call.dim("dim", len(x)),)
        top = reduce_dims(b, call, [x], dims, combine, x.dtype, f"{combine}_of", lambda e: e[0])
        every, kept, inner = _axes(b, x, dims)
        position: Affine = affine(0)
        for a in inner:
            position = position * a.extent + a.index
        target, result = b.temp(f"{call.name}_index", kept, "int64")
        count = math.prod(a.extent for a in inner)
        b.emit(call, "index_init", kept, target, [], lambda _: Const(count))
        cases = [b.cases(v, _indices(every, v), every) for v in (x, top)]
        b.emit(
            call, "index", every, target, cases,
            lambda e: apply("select", apply("==", e[0], e[1]), Index(position), Const(count)), combine="min",
        )  # fmt: skip
        return _finish(call, _kept(result, dims, len(x)), dims)

    return rule


def vector_norm(b: Builder, call: Call) -> Value:
    """(sum |x|^p)^(1/p) over dims; the largest or smallest |x| for infinite p."""
    x = b.bounded(call, call.value("self"))
    dims = reduced_dims(call, x)
    order = float(call.number("ord", 2))
    kind = accumulator_dtype(call.dtype)
    if math.isinf(order):
        combine = "max" if order > 0 else "min"
        total = reduce_dims(b, call, [x], dims, combine, call.dtype, combine, lambda e: apply("abs", e[0]))
        return _finish(call, total, dims)
    if order == 2:
        total = reduce_dims(b, call, [x], dims, "+", kind, "sum", lambda e: apply("*", e[0], e[0]))
        return _finish(call, map_full(b, call, [total], call.dtype, "", lambda e: apply("sqrt", e[0])), dims)
    if order == 1:
        total = reduce_dims(b, call, [x], dims, "+", call.dtype, "sum", lambda e: apply("abs", e[0]))
        return _finish(call, total, dims)
    total = reduce_dims(
        b, call, [x], dims, "+", kind, "sum", lambda e: apply("**", apply("abs", e[0]), Const(order))
    )  # fmt: skip
    root = map_full(b, call, [total], call.dtype, "", lambda e: apply("**", e[0], Const(1.0 / order)))
    return _finish(call, root, dims)


def softmax(*, log: bool) -> Callable[[Builder, Call], Value]:
    """exp(x - max) / sum(exp(x - max)) along one dimension, or its logarithm; the inside in float32 at least."""

    def rule(b: Builder, call: Call) -> Value:
        x = b.bounded(call, call.value("self"))
        dims = (call.dim("dim", len(x)),)
        kind = accumulator_dtype(call.dtype)
        top = reduce_dims(b, call, [x], dims, "max", x.dtype, "max", lambda e: e[0])
        if log:
            total = reduce_dims(
                b, call, [x, top], dims, "+", kind, "sum", lambda e: apply("exp", apply("-", e[0], e[1]))
            )
            return map_full(
                b, call, [x, top, total], call.dtype, "",
                lambda e: apply("-", apply("-", e[0], e[1]), apply("log", e[2])),
            )  # fmt: skip
        powers = map_full(b, call, [x, top], kind, "exp", lambda e: apply("exp", apply("-", e[0], e[1])))
        total = reduce_dims(b, call, [powers], dims, "+", kind, "sum", lambda e: e[0])
        return map_full(b, call, [powers, total], call.dtype, "", lambda e: apply("/", e[0], e[1]))

    return rule


def layer_norm(b: Builder, call: Call) -> tuple[Value, Value, Value]:
    """(x - mean) * rsqrt(var + eps) * weight + bias over the trailing dimensions, statistics in float32 at least."""
    x = b.bounded(call, call.value("input"))
    rank = len(call.integers("normalized_shape"))
    dims = tuple(range(len(x) - rank, len(x)))
    factors = [None if v is None else _leading(v, len(x)) for v in (call.optional("weight"), call.optional("bias"))]
    return _normalised(b, call, x, dims, factors[0], factors[1])


def group_norm(b: Builder, call: Call) -> tuple[Value, Value, Value]:
    """Normalisation over groups of channels and all positions, then a scale and a shift per channel."""
    x = b.bounded(call, call.value("input"))
    n, channels, *_ = x.shape
    groups = call.integer("group")
    grouped = reshape(x, (n, groups, channels // groups, math.prod(x.shape[2:])))
    factors = [
        None if v is None else reshape(v, (1, groups, channels // groups, 1))
        for v in (call.optional("weight"), call.optional("bias"))
    ]
    y, average, rstd = _normalised(b, call, grouped, (2, 3), factors[0], factors[1])
    return reshape(y, x.shape), squeeze(average, (2, 3)), squeeze(rstd, (2, 3))


def _normalised(
    b: Builder, call: Call, x: Value, dims: Sequence[int], weight: Value | None, bias: Value | None
) -> tuple[Value, Value, Value]:
    """(x - mean) * rsqrt(var + eps), scaled and shifted where factors are given; and mean and rsqrt themselves."""
    kind = accumulator_dtype(call.dtype)
    scale, eps = Const(1.0 / math.prod(x.shape[d] for d in dims)), Const(float(call.number("eps")))
    average, square = _moments(b, call, x, dims, kind)
    rstd = map_full(b, call, [square], kind, "rstd", lambda e: apply("rsqrt", apply("+", apply("*", e[0], scale), eps)))

    def scaled(e: Sequence[Expr]) -> Expr:
        result = apply("*", apply("-", e[0], e[1]), e[2])
        result = apply("*", result, e[3]) if weight is not None else result
        return apply("+", result, e[-1]) if bias is not None else result

    operands = [x, average, rstd, *(v for v in (weight, bias) if v is not None)]
    return map_full(b, call, operands, call.dtype, "", scaled), average, rstd


def _leading(value: Value, rank: int) -> Value:
    """`value` with dimensions of extent 1 in front."""
    return Value(value.dtype, (*(((),) * (rank - len(value))), *value.dims), value.pieces, None)


def batch_norm_inference(b: Builder, call: Call) -> tuple[Value, Value, Value]:
    """x * alpha + beta per channel, with alpha = weight * rsqrt(var + eps) and beta = bias - mean * alpha."""
    x = b.bounded(call, call.value("input"))
    kind = accumulator_dtype(call.dtype)
    eps = Const(float(call.number("eps")))
    weight, bias = call.optional("weight"), call.optional("bias")
    average, var = call.value("running_mean"), call.value("running_var")

    def alpha(e: Sequence[Expr]) -> Expr:
        inverse = apply("rsqrt", apply("+", e[0], eps))
        return inverse if weight is None else apply("*", e[1], inverse)

    def beta(e: Sequence[Expr]) -> Expr:
        shift = apply("*", e[0], e[1])
        return apply("neg", shift) if bias is None else apply("-", e[2], shift)

    scale = map_full(b, call, [v for v in (var, weight) if v is not None], kind, "alpha", alpha)
    shift = map_full(b, call, [v for v in (average, scale, bias) if v is not None], kind, "beta", beta)
    operands = [x, *(_channels(v, len(x)) for v in (scale, shift))]
    y = map_full(b, call, operands, call.dtype, "", lambda e: apply("+", apply("*", e[0], e[1]), e[2]))
    return y, average, var


def batch_norm_statistics(b: Builder, call: Call) -> tuple[Value, Value, Value]:
    """Normalisation by the statistics of the batch itself, over all dimensions but the channels (dimension 1)."""
    x = b.bounded(call, call.value("input"))
    if not call.flag("training"):
        raise call.refuse("no statistics are given and training is off", help="give running statistics")
    factors = [None if v is None else _channels(v, len(x)) for v in (call.optional("weight"), call.optional("bias"))]
    dims = tuple(k for k in range(len(x)) if k != 1)
    y, average, rstd = _normalised(b, call, x, dims, factors[0], factors[1])
    return y, squeeze(average, dims), squeeze(rstd, dims)


def _channels(value: Value, rank: int) -> Value:
    """A vector as a value of `rank` dimensions along dimension 1."""
    return Value(value.dtype, ((), value.dims[0], *(() for _ in range(rank - 2))), value.pieces)


def cumulative(combine: str) -> Callable[[Builder, Call], Value]:
    """y[0] = x[0]; y[k] = y[k-1] combined with x[k] along one dimension."""

    def rule(b: Builder, call: Call) -> Value:
        x = b.bounded(call, call.value("self"))
        dim = call.dim("dim", len(x)) if len(x) else 0
        axes = [b.axis(f"i{k}", n, *([] if k == dim else [(x, k)])) for k, n in enumerate(x.shape)]
        target, result = b.temp(call.name, axes, call.dtype)
        cases = b.cases(x, [a.index for a in axes], axes)
        if not len(x) or x.shape[dim] == 1:
            b.emit(call, "", axes, target, [cases], lambda e: convert(e[0], x.dtype, call.dtype))
            return result
        step = axes[dim].index
        before = _before(target, axes[dim].digits[0].name)
        b.emit(
            call, "first", axes, target, [cases], lambda e: convert(e[0], x.dtype, call.dtype),
            guards=[Constraint(step, equality=True)],
        )  # fmt: skip
        b.emit(
            call, "next", axes, target, [[Piece((), Read(before))], cases],
            lambda e: apply(combine, e[0], convert(e[1], x.dtype, call.dtype)), guards=[Constraint(step - 1)],
        )  # fmt: skip
        return result

    return rule


def _before(target: Access, iterator: str) -> Access:
    subscripts = tuple(s - 1 if isinstance(s, Affine) and s.coefficient(iterator) else s for s in target.subscripts)
    return Access(target.tensor, subscripts)
