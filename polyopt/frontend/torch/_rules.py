"""The table of operators: name -> how a call becomes values and statements."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from polyopt.frontend.torch import _views as views
from polyopt.frontend.torch._build import Builder, Call
from polyopt.frontend.torch._contract import (
    adaptive_average_pool,
    average_pool,
    convolution,
    dot,
    matrix_product,
    max_pool,
)
from polyopt.frontend.torch._gather import embedding, gather_dim, index_select, index_tensors, nearest
from polyopt.frontend.torch._pointwise import POINTWISE, apply, clamp_tensor, elementwise, pointwise
from polyopt.frontend.torch._reduce import (
    any_all,
    arg_extremum,
    batch_norm_inference,
    batch_norm_statistics,
    cumulative,
    extremum,
    group_norm,
    layer_norm,
    mean,
    product,
    softmax,
    sum_dims,
    variance,
    vector_norm,
)
from polyopt.frontend.torch._value import Piece, Value
from polyopt.ir import Const, Index
from polyopt.sets import affine

__all__ = ["RULES", "VIEWS"]

Result = Value | Sequence[Value | None]
Rule = Callable[[Builder, Call], Result]


def _view(make: Callable[[Call, Value], Result]) -> Rule:
    return lambda _, call: make(call, call.value("self"))


def _reshaped(call: Call, value: Value) -> Value:
    return views.reshape(value, call.shape)


def _permuted(call: Call, value: Value) -> Value:
    return views.permute(value, [d % len(value) for d in call.integers("dims")])


def _transposed(call: Call, value: Value) -> Value:
    order = list(range(len(value)))
    a, b = (call.dim("dim0", len(value)), call.dim("dim1", len(value))) if "dim0" in call.arguments else (0, -1)
    if order:
        order[a], order[b] = order[b], order[a]
    return views.permute(value, order)


def _unsqueezed(call: Call, value: Value) -> Value:
    return views.unsqueeze(value, call.integer("dim") % (len(value) + 1))


def _squeezed(call: Call, value: Value) -> Value:
    dims = call.integers("dim") if call.arguments.get("dim") is not None else range(len(value))
    return views.squeeze(value, [d % max(1, len(value)) for d in dims])


def _selected(call: Call, value: Value) -> Value:
    dim = call.dim("dim", len(value))
    return views.select(value, dim, call.integer("index") % value.shape[dim])


def _sliced(call: Call, value: Value) -> Value:
    dim = call.dim("dim", len(value))
    start, _, step = slice(call.integer("start", 0), call.arguments.get("end"), call.integer("step", 1)).indices(
        value.shape[dim]
    )
    return views.slice_dim(value, dim, start, call.shape[dim], step)


def _split(call: Call, value: Value) -> list[Value]:
    dim = call.dim("dim", len(value))
    parts: list[Value] = []
    start = 0
    for shape in call.shapes:
        parts.append(views.slice_dim(value, dim, start, shape[dim]))
        start += shape[dim]
    return parts


def _unbound(call: Call, value: Value) -> list[Value]:
    dim = call.dim("dim", len(value))
    return [views.select(value, dim, k) for k in range(value.shape[dim])]


def _flipped(call: Call, value: Value) -> Value:
    return views.flip(value, [d % len(value) for d in call.integers("dims")])


def _rolled(call: Call, value: Value) -> Value:
    shifts, dims = call.integers("shifts"), call.integers("dims") if call.arguments.get("dims") else ()
    if not dims:
        raise call.refuse("roll without dims", help="name the dimensions to roll along")
    for shift, d in zip(shifts, dims, strict=True):
        dim, n = d % len(value), value.shape[d % len(value)]
        cut = -shift % n
        if cut:
            value = views.concatenate(
                [views.slice_dim(value, dim, cut, n - cut), views.slice_dim(value, dim, 0, cut)], dim
            )
    return value


def _diagonal(call: Call, value: Value) -> Value:
    dims = (call.integer("dim1", 0) % len(value), call.integer("dim2", 1) % len(value))
    return views.diagonal(value, call.integer("offset", 0), *dims)


def _unfolded(call: Call, value: Value) -> Value:
    return views.unfold(value, call.dim("dimension", len(value)), call.integer("size"), call.integer("step"))


def _padded(call: Call, value: Value) -> Value:
    given = call.integers("pad")
    pairs = [(given[2 * k], given[2 * k + 1]) for k in range(len(given) // 2)]
    amounts = [(0, 0)] * (len(value) - len(pairs)) + pairs[::-1]
    fill = call.number("value", 0)
    return views.pad(value, amounts, float(fill) if "float" in call.dtype else int(fill))


def _slice_scattered(b: Builder, call: Call) -> Value:
    """self with a slice along one dimension replaced by src."""
    x, src = call.value("self"), call.value("src")
    dim = call.dim("dim", len(x))
    n = x.shape[dim]
    start, stop, step = slice(call.integer("start", 0), call.arguments.get("end"), call.integer("step", 1)).indices(n)
    if step != 1:
        raise call.refuse(f"step {step}, expected 1")
    parts = [views.slice_dim(x, dim, 0, start), src, views.slice_dim(x, dim, stop, n - stop)]
    return views.concatenate([p for p in parts if p.shape[dim]], dim)


def _select_scattered(b: Builder, call: Call) -> Value:
    """self with one index of one dimension replaced by src."""
    x = call.value("self")
    dim = call.dim("dim", len(x))
    index, n = call.integer("index") % x.shape[dim], x.shape[dim]
    src = views.unsqueeze(call.value("src"), dim)
    parts = [views.slice_dim(x, dim, 0, index), src, views.slice_dim(x, dim, index + 1, n - index - 1)]
    return views.concatenate([p for p in parts if p.shape[dim]], dim)


def _concatenated(b: Builder, call: Call) -> Value:
    values = [v for v in call.values("tensors") if v.shape != (0,)]  # an empty vector is neutral, whatever the rank
    if not values:
        raise call.refuse("nothing but empty tensors", help="drop the concatenation")
    if any(v.dtype != call.dtype for v in values):
        raise call.refuse(f"element types {sorted({v.dtype for v in values})} differ", help="cast the operands first")
    return b.bounded(call, views.concatenate(values, call.dim("dim", len(values[0]))))


def _triangle(*, upper: bool) -> Rule:
    """Keep j - i <= diagonal (lower) or >= diagonal (upper) of the last two dimensions; 0 elsewhere."""

    def rule(b: Builder, call: Call) -> Value:
        x = call.value("self")
        rows = views.expand(_iota(x.shape[-2]), (x.shape[-1], x.shape[-2]))
        difference_of = (_iota(x.shape[-1]), views.permute(rows, (1, 0)))
        k = call.integer("diagonal", 0)
        op = ">=" if upper else "<="
        zero = Const(0.0 if "float" in call.dtype else 0)
        return elementwise(
            b, call, [x, *difference_of],
            lambda e: apply("select", apply(op, e[1], apply("+", e[2], Const(k))), e[0], zero),
        )  # fmt: skip

    return rule


def _iota(n: int) -> Value:
    from polyopt.frontend.torch._value import Digit

    digits = (Digit("d0", n),) if n != 1 else ()
    return Value("int64", (digits,), (Piece((), Index(affine("d0")) if digits else Const(0)),))


_VIEWS: dict[str, Rule] = {
    **dict.fromkeys(("aten.view.default", "aten._unsafe_view.default", "aten.reshape.default"), _view(_reshaped)),
    **dict.fromkeys(
        (
            "aten.alias.default",
            "aten.clone.default",
            "aten.contiguous.default",
            "aten.detach.default",
            "aten.lift_fresh_copy.default",
        ),
        _view(lambda _, v: v),
    ),
    "aten.permute.default": _view(_permuted),
    "aten.t.default": _view(_transposed),
    "aten.transpose.int": _view(_transposed),
    "aten.unsqueeze.default": _view(_unsqueezed),
    **dict.fromkeys(("aten.squeeze.default", "aten.squeeze.dim", "aten.squeeze.dims"), _view(_squeezed)),
    "aten.expand.default": _view(lambda call, v: views.expand(v, call.shape)),
    "aten.repeat.default": _view(lambda call, v: views.repeat(v, call.integers("repeats"))),
    "aten.select.int": _view(_selected),
    "aten.slice.Tensor": _view(_sliced),
    "aten.split.Tensor": _view(_split),
    "aten.split_with_sizes.default": _view(_split),
    "aten.unbind.int": _view(_unbound),
    "aten.flip.default": _view(_flipped),
    "aten.roll.default": _view(_rolled),
    "aten.diagonal.default": _view(_diagonal),
    "aten.unfold.default": _view(_unfolded),
    "aten.constant_pad_nd.default": _view(_padded),
    "aten.slice_scatter.default": _slice_scattered,
    "aten.select_scatter.default": _select_scattered,
    "aten.cat.default": _concatenated,
}
VIEWS: frozenset[str] = frozenset(_VIEWS)
"""Operators that make no statement."""

RULES: Mapping[str, Rule] = MappingProxyType(
    {
        **_VIEWS,
        **dict.fromkeys(POINTWISE, pointwise),
        "aten.clamp.Tensor": clamp_tensor,
        "aten.mm.default": matrix_product(("self", "mat2")),
        "aten.bmm.default": matrix_product(("self", "mat2"), batched=True),
        "aten.addmm.default": matrix_product(("mat1", "mat2"), added="self"),
        "aten.baddbmm.default": matrix_product(("batch1", "batch2"), batched=True, added="self"),
        "aten.dot.default": dot,
        "aten.mv.default": dot,
        "aten.convolution.default": convolution,
        "aten.max_pool2d_with_indices.default": max_pool,
        **dict.fromkeys(
            ("aten.avg_pool1d.default", "aten.avg_pool2d.default", "aten.avg_pool3d.default"), average_pool
        ),
        "aten._adaptive_avg_pool2d.default": adaptive_average_pool,
        "aten.upsample_nearest1d.vec": nearest,
        "aten.upsample_nearest2d.vec": nearest,
        "aten.upsample_nearest3d.vec": nearest,
        "aten.sum.default": sum_dims,
        "aten.sum.dim_IntList": sum_dims,
        "aten.mean.default": mean,
        "aten.mean.dim": mean,
        "aten.var.correction": variance,
        "aten.prod.default": product,
        "aten.prod.dim_int": product,
        "aten.amax.default": extremum("max"),
        "aten.amin.default": extremum("min"),
        "aten.max.default": extremum("max"),
        "aten.min.default": extremum("min"),
        "aten.max.dim": lambda b, call: (extremum("max")(b, call), arg_extremum("max")(b, call)),
        "aten.min.dim": lambda b, call: (extremum("min")(b, call), arg_extremum("min")(b, call)),
        "aten.argmax.default": arg_extremum("max"),
        "aten.argmin.default": arg_extremum("min"),
        "aten.linalg_vector_norm.default": vector_norm,
        **dict.fromkeys(("aten.any.default", "aten.any.dim", "aten.any.dims"), any_all("max")),
        **dict.fromkeys(("aten.all.default", "aten.all.dim", "aten.all.dims"), any_all("min")),
        "aten._softmax.default": softmax(log=False),
        "aten._log_softmax.default": softmax(log=True),
        "aten.native_layer_norm.default": layer_norm,
        "aten.native_group_norm.default": group_norm,
        "aten._native_batch_norm_legit_no_training.default": batch_norm_inference,
        "aten._native_batch_norm_legit.no_stats": batch_norm_statistics,
        "aten.cumsum.default": cumulative("+"),
        "aten.cumprod.default": cumulative("*"),
        "aten.embedding.default": embedding,
        "aten.gather.default": gather_dim,
        "aten.index.Tensor": index_tensors,
        "aten.index_select.default": index_select,
        "aten.tril.default": _triangle(upper=False),
        "aten.triu.default": _triangle(upper=True),
    }
)
"""Every operator that is taken in.  Operators whose arguments are all folded constants need no rule."""
