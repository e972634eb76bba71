"""Contractions and windows: matrix products, convolutions and pooling, paddings as guards of the domain."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from polyopt.frontend.torch._build import Axis, Builder, Call, accumulator_dtype
from polyopt.frontend.torch._pointwise import apply, convert
from polyopt.frontend.torch._value import Digit, Piece, Value
from polyopt.ir import Access, Const, Expr, Index
from polyopt.sets import Affine, Constraint, affine, maximum, minimum

__all__ = ["adaptive_average_pool", "average_pool", "convolution", "dot", "matrix_product", "max_pool"]


def matrix_product(
    operands: tuple[str, str], *, batched: bool = False, added: str | None = None
) -> Callable[[Builder, Call], Value]:
    """alpha * a @ b of the arguments named `operands`; `added` names what beta scales and the result starts from."""

    def rule(b: Builder, call: Call) -> Value:
        first, second = operands
        x, w = b.bounded(call, call.value(first)), b.bounded(call, call.value(second))
        batch = [b.axis("b", x.shape[0], (x, 0), (w, 0))] if batched else []
        rows = b.axis("i", x.shape[-2], (x, len(x) - 2))
        columns = b.axis("j", w.shape[-1], (w, len(w) - 1))
        inner = b.axis("k", x.shape[-1], (x, len(x) - 1), (w, len(w) - 2))
        out, every = [*batch, rows, columns], [*batch, rows, columns, inner]
        target, result = b.temp(call.name, out, call.dtype)
        _initial(b, call, out, target, added)
        head = [a.index for a in batch]
        cases = [
            b.cases(x, [*head, rows.index, inner.index], every),
            b.cases(w, [*head, inner.index, columns.index], every),
        ]
        alpha = Const(call.number("alpha", 1))
        b.emit(
            call, "dot", every, target, cases,
            lambda e: apply("*", apply("*", alpha, e[0]), e[1]), combine="+", runs=True,
        )  # fmt: skip
        return result

    return rule


def _initial(b: Builder, call: Call, out: Sequence[Axis], target: Access, added: str | None) -> None:
    """target = beta * added, broadcast, or 0."""
    beta = call.number("beta", 1) if added else 0
    if added is None or beta == 0:
        b.emit(call, "init", out, target, [], lambda _: Const(0.0 if _floating(call) else 0))
        return
    start = b.bounded(call, call.value(added))
    axes = out[len(out) - len(start) :]
    indices = [a.index if n != 1 else affine(0) for a, n in zip(axes, start.shape, strict=True)]
    b.emit(call, "init", out, target, [b.cases(start, indices, out)], lambda e: apply("*", Const(beta), e[0]))


def _floating(call: Call) -> bool:
    return "float" in call.dtype


def dot(b: Builder, call: Call) -> Value:
    """Inner product of two vectors, or of a matrix's rows with a vector."""
    x, y = b.bounded(call, call.value("self")), b.bounded(call, call.value("tensor" if len(call.shape) == 0 else "vec"))
    rows = [b.axis("i", x.shape[0], (x, 0))] if len(x) == 2 else []
    inner = b.axis("k", y.shape[0], (x, len(x) - 1), (y, 0))
    target, result = b.temp(call.name, rows, call.dtype)
    _initial(b, call, rows, target, None)
    every = [*rows, inner]
    cases = [b.cases(x, [a.index for a in every], every), b.cases(y, [inner.index], every)]
    b.emit(call, "dot", every, target, cases, lambda e: apply("*", e[0], e[1]), combine="+", runs=True)
    return result


def _positions(
    outer: Sequence[Axis],
    window: Sequence[Axis],
    stride: Sequence[int],
    dilation: Sequence[int],
    padding: Sequence[int],
) -> list[Affine]:
    """stride*outer + dilation*window - padding, per dimension."""
    return [
        o.index * s + w.index * d - p for o, w, s, d, p in zip(outer, window, stride, dilation, padding, strict=True)
    ]


def _inside(index: Affine, extent: int) -> tuple[Constraint, Constraint]:
    return Constraint(index), Constraint(affine(extent - 1) - index)


def convolution(b: Builder, call: Call) -> Value:
    """N-dimensional convolution with stride, padding, dilation and groups; transposed too.  Padding is a guard.

    Direct: out[n, g, o, p] += x[n, g, c, stride*p + dilation*r - padding] * w[g, o, c, r].
    Transposed: out[n, g, o, stride*p + dilation*r - padding] += x[n, g, c, p] * w[g, c, o, r].
    """
    x, w = b.bounded(call, call.value("input")), b.bounded(call, call.value("weight"))
    rank, groups, transposed = len(x) - 2, call.integer("groups", 1), call.flag("transposed")
    stride, padding, dilation = (call.integers(n, rank) for n in ("stride", "padding", "dilation"))
    n_out, n_in = call.shape[1] // groups, x.shape[1] // groups
    uses = {"o": (w, 1 if transposed else 0), "c": (w, 0 if transposed else 1)} if groups == 1 else {}
    batch = b.axis("n", x.shape[0], (x, 0))
    group = b.axis("g", groups)
    outer = b.axis("o", n_out, *(uses[k] for k in ("o",) if k in uses))
    inner = b.axis("c", n_in, *(u for u in (uses.get("c"), (x, 1) if groups == 1 else None) if u))
    space = [b.axis(f"p{k}", call.shape[2 + k]) for k in range(rank)]
    source = [b.axis(f"q{k}", x.shape[2 + k]) for k in range(rank)] if transposed else space
    window = [b.axis(f"r{k}", w.shape[2 + k]) for k in range(rank)]
    moved = _positions(source, window, stride, dilation, padding)
    channel = Axis((*group.digits, *outer.digits))
    target, result = b.temp(call.name, [batch, channel, *space], call.dtype)
    _start_from_bias(b, call, [batch, channel, *space], target)
    every = [batch, group, outer, *source, inner, *window]
    from_channel = group.index * n_in + inner.index
    to_channel = group.index * n_out + outer.index
    at = [s.index for s in source] if transposed else moved
    rows, columns = (from_channel, outer.index) if transposed else (to_channel, inner.index)
    cases = [
        b.cases(x, [batch.index, from_channel, *at], every),
        b.cases(w, [rows, columns, *(r.index for r in window)], every),
    ]
    bounds = call.shape[2:] if transposed else x.shape[2:]
    guards = [g for m, n in zip(moved, bounds, strict=True) for g in _inside(m, n)]
    if transposed:
        target = _moved(target, space, moved)
    b.emit(call, "dot", every, target, cases, lambda e: apply("*", e[0], e[1]), combine="+", guards=guards, runs=True)
    return result


def _start_from_bias(b: Builder, call: Call, out: Sequence[Axis], target: Access) -> None:
    bias = call.optional("bias")
    cases = [] if bias is None else [b.cases(bias, [out[1].index], out)]
    b.emit(call, "init", out, target, cases, lambda e: e[0] if e else Const(0.0))


def _moved(target: Access, space: Sequence[Axis], moved: Sequence[Affine]) -> Access:
    """`target` with the spatial iterators replaced by the positions that a transposed convolution writes."""
    values = {d.name: m for s, m in zip(space, moved, strict=True) for d in s.digits}
    subscripts = tuple(s.substitute(values) if isinstance(s, Affine) else s for s in target.subscripts)
    return Access(target.tensor, subscripts)


def _windows(
    b: Builder, call: Call, x: Value
) -> tuple[list[Axis], list[Axis], list[Affine], tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Output axes, window axes, input positions, and kernel, stride and padding of a pooling."""
    rank = len(call.integers("kernel_size")) if isinstance(call.arguments["kernel_size"], (list, tuple)) else 2
    kernel, padding = call.integers("kernel_size", rank), call.integers("padding", rank)
    stride = call.integers("stride", rank) if call.arguments.get("stride") else kernel
    dilation = call.integers("dilation", rank) if call.arguments.get("dilation") else (1,) * rank
    lead = len(x) - rank
    out = [b.axis(f"i{k}", n, *([(x, k)] if k < lead else [])) for k, n in enumerate(call.shape)]
    window = [b.axis(f"r{k}", n) for k, n in enumerate(kernel)]
    moved = _positions(out[lead:], window, stride, dilation, padding)
    return out, window, moved, kernel, stride, padding


def max_pool(b: Builder, call: Call) -> tuple[Value, None]:
    """Maximum over windows; positions in the padding do not take part.  The indices are not computed."""
    x = b.bounded(call, call.value("self"))
    out, window, moved, *_ = _windows(b, call, x)
    lead = len(x) - len(window)
    target, result = b.temp(call.name, out, call.dtype)
    b.emit(call, "init", out, target, [], lambda _: Const(-math.inf))
    every = [*out, *window]
    cases = b.cases(x, [*(a.index for a in out[:lead]), *moved], every)
    guards = [g for m, n in zip(moved, x.shape[lead:], strict=True) for g in _inside(m, n)]
    b.emit(call, "max", every, target, [cases], lambda e: e[0], combine="max", guards=guards)
    return result, None


def average_pool(b: Builder, call: Call) -> Value:
    """Mean over windows; the divisor is the window's size, with or without the padding, or `divisor_override`."""
    x = b.bounded(call, call.value("self"))
    out, window, moved, kernel, stride, padding = _windows(b, call, x)
    lead = len(x) - len(window)
    kind = accumulator_dtype(call.dtype)
    target, total = b.temp(f"{call.name}_sum", out, kind)
    b.emit(call, "init", out, target, [], lambda _: Const(0.0))
    every = [*out, *window]
    cases = b.cases(x, [*(a.index for a in out[:lead]), *moved], every)
    guards = [g for m, n in zip(moved, x.shape[lead:], strict=True) for g in _inside(m, n)]
    b.emit(call, "sum", every, target, [cases], lambda e: convert(e[0], x.dtype, kind), combine="+", guards=guards)
    divisor = _divisor(call, x, out[lead:], kernel, stride, padding)
    averaged, result = b.temp(call.name, out, call.dtype)
    read_total = b.cases(total, [a.index for a in out], out)
    b.emit(call, "", out, averaged, [read_total, [Piece((), divisor)]], _scaled)
    return result


def adaptive_average_pool(b: Builder, call: Call) -> Value:
    """Mean over windows from floor(o*n/m) to ceil((o+1)*n/m), for output position o of m and n inputs."""
    x = b.bounded(call, call.value("self"))
    rank = len(call.integers("output_size"))
    lead = len(x) - rank
    out = [b.axis(f"i{k}", n, *([(x, k)] if k < lead else [])) for k, n in enumerate(call.shape)]
    starts: list[Affine] = []
    widths: list[Affine] = []
    window: list[Axis] = []
    for k, a in enumerate(out[lead:]):
        n, m = x.shape[lead + k], a.extent
        starts.append((a.index * n) // m)
        widths.append(((a.index + 1) * n + m - 1) // m - starts[-1])
        largest = max(-(-(p + 1) * n // m) - p * n // m for p in range(m))
        window.append(b.axis(f"r{k}", largest))
    kind = accumulator_dtype(call.dtype)
    target, total = b.temp(f"{call.name}_sum", out, kind)
    b.emit(call, "init", out, target, [], lambda _: Const(0.0))
    every = [*out, *window]
    at = [s + r.index for s, r in zip(starts, window, strict=True)]
    cases = b.cases(x, [*(a.index for a in out[:lead]), *at], every)
    guards = [Constraint(w - 1 - r.index) for w, r in zip(widths, window, strict=True)]
    b.emit(call, "sum", every, target, [cases], lambda e: convert(e[0], x.dtype, kind), combine="+", guards=guards)
    averaged, result = b.temp(call.name, out, call.dtype)
    divisor = _product([_constant_width(w, a) for w, a in zip(widths, out[lead:], strict=True)])
    b.emit(call, "", out, averaged, [b.cases(total, [a.index for a in out], out), [Piece((), divisor)]], _scaled)
    return result


def _scaled(e: Sequence[Expr]) -> Expr:
    if isinstance(e[1], Const):
        return apply("*", e[0], Const(1.0 / float(e[1].value)))
    return apply("/", e[0], e[1])


def _divisor(
    call: Call, x: Value, space: Sequence[Axis], kernel: Sequence[int], stride: Sequence[int], padding: Sequence[int]
) -> Expr:
    """The number of positions in the window of an output element; windows cut by the padded border count less."""
    if call.arguments.get("divisor_override") is not None:
        return Const(call.integer("divisor_override"))
    factors: list[Expr] = []
    counted = call.arguments.get("count_include_pad", True)
    for a, n, size, step, margin in zip(space, x.shape[len(x) - len(space) :], kernel, stride, padding, strict=True):
        start = a.index * step - margin
        low, high = (start, n + margin) if counted else (maximum(start, 0), n)
        factors.append(_constant_width(minimum(start + size, high) - low, a))
    return _product(factors)


def _constant_width(width: Affine, a: Axis) -> Expr:
    """`width` along axis `a`, a literal if it is the same everywhere."""
    values = {width.evaluate(_at(a.digits, p)) for p in range(a.extent)}
    return Const(values.pop()) if len(values) == 1 else Index(width)


def _product(factors: Sequence[Expr]) -> Expr:
    """The product, its literals multiplied out."""
    constant = math.prod(int(f.value) for f in factors if isinstance(f, Const))
    total: Expr = Const(constant)
    for f in factors:
        if not isinstance(f, Const):
            total = apply("*", total, f)
    return total


def _at(digits: Sequence[Digit], position: int) -> dict[str, int]:
    return {digits[0].name: position} if digits else {}
