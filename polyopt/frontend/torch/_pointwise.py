"""Elementwise operators: one expression per element, one statement per operator (none for folded constants)."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from polyopt.frontend.torch._build import Axis, Builder, Call, Operand
from polyopt.frontend.torch._value import Piece, Value, canonical
from polyopt.ir import COMPARISONS, Apply, Cast, Const, Expr, Index, dtype
from polyopt.sets import affine

__all__ = ["POINTWISE", "apply", "clamp_tensor", "convert", "elementwise", "pointwise"]

Exprs = Sequence[Expr]
Rule = tuple[tuple[str, ...], Callable[[Call, Exprs], Expr]]


def apply(op: str, *args: Expr) -> Expr:
    """`op(args)`, with logical constants and neutral elements folded away."""
    if op in ("and", "or"):
        a, b = args
        for constant, other in ((a, b), (b, a)):
            if isinstance(constant, Const):
                return other if bool(constant.value) == (op == "and") else Const(op == "or")
    if op == "not" and isinstance(args[0], Const):
        return Const(not args[0].value)
    if op == "select" and isinstance(args[0], Const):
        return args[1] if args[0].value else args[2]
    if op == "*" and any(_is_one(a) for a in args):
        return args[1] if _is_one(args[0]) else args[0]
    return Apply(op, args)


def _is_one(expr: Expr) -> bool:
    return isinstance(expr, Const) and not isinstance(expr.value, bool) and expr.value == 1


def convert(expr: Expr, source: str, target: str) -> Expr:
    """`expr` of element type `source` as a number of type `target`.

    Between floating types nothing is written: storing into a tensor rounds.  Between classes of types a cast is.
    """
    if source == target or (dtype(source).is_float and dtype(target).is_float):
        return expr
    if isinstance(expr, Const):
        return Const(_literal(expr.value, target))
    if isinstance(expr, Index) and target != "bool":
        return expr
    if target == "bool":
        return Apply("!=", (expr, Const(0)))
    return expr if _widens(source, target) else Cast(target, expr)


def _literal(value: float | int | bool, target: str) -> float | int | bool:
    if target == "bool":
        return bool(value)
    return float(value) if dtype(target).is_float else int(value)


def _kind(operand: Operand) -> str:
    if isinstance(operand, Value):
        return operand.dtype
    return "bool" if isinstance(operand, bool) else "int64" if isinstance(operand, int) else "float64"


def elementwise(b: Builder, call: Call, operands: Sequence[Operand], make: Callable[[Exprs], Expr]) -> Value:
    """The broadcast result of `make` over `operands`: folded when every operand is, else one statement."""
    values = [b.bounded(call, v) if isinstance(v, Value) else v for v in operands]
    rank = len(call.shape)
    axes: list[Axis] = []
    for k, n in enumerate(call.shape):
        uses = [(v, k - rank + len(v)) for v in values if isinstance(v, Value) and k - rank + len(v) >= 0]
        axes.append(b.axis(f"i{k}", n, *uses))
    cases: list[list[Piece]] = []
    for v in values:
        if not isinstance(v, Value):
            cases.append([Piece((), Const(v))])
            continue
        aligned = axes[rank - len(v) :]
        indices = [a.index if n != 1 else affine(0) for a, n in zip(aligned, v.shape, strict=True)]
        cases.append(b.cases(v, indices, axes))
    if all(v.known is not None for v in values if isinstance(v, Value)):
        return _folded(call.dtype, axes, cases, make)
    target, result = b.temp(call.name, axes, call.dtype)
    b.emit(call, "", axes, target, cases, make)
    return result


def _folded(kind: str, axes: Sequence[Axis], cases: Sequence[Sequence[Piece]], make: Callable[[Exprs], Expr]) -> Value:
    combined: list[tuple[Piece, ...]] = [()]
    for options in cases:
        combined = [(*c, o) for c in combined for o in options]
    pieces = [Piece(tuple(g for p in c for g in p.constraints), make([p.expr for p in c])) for c in combined]
    return canonical(kind, [a.digits for a in axes], pieces, {})


def identity(call: Call) -> Value | None:
    """The operand that the call returns unchanged, or None.

    `x*1`, `x/1`, `x+0` and `x-0` with a literal or a folded constant (the sign of a zero is not kept), and a cast that
    loses nothing.
    """
    names, _ = POINTWISE[call.operator]
    first = call.arguments.get(names[0])
    if not isinstance(first, Value) or first.shape != call.shape:
        return None
    if call.operator in CASTS:
        return replace(first, dtype=call.dtype) if _widens(first.dtype, call.dtype) else None
    neutral = NEUTRAL.get(call.operator)
    if neutral is None or first.dtype != call.dtype:
        return None
    return first if _is_constant(call.arguments.get("other"), neutral) else None


def _is_constant(operand: object, number: int) -> bool:
    if isinstance(operand, Value):
        return operand.known is not None and all(p.expr == Const(number) for p in operand.pieces)
    return operand == number


def _widens(source: str, target: str) -> bool:
    a, b = dtype(source), dtype(target)
    if source == target:
        return True
    signed = not {source, target} & {"bool", "uint8"}
    return a.is_float == b.is_float and (a.is_float or signed) and a.element_bytes < b.element_bytes


def pointwise(b: Builder, call: Call) -> Value:
    """Apply the rule of `call.operator` in POINTWISE; see `identity` for those that need no statement."""
    same = identity(call)
    if same is not None:
        return same
    names, make = POINTWISE[call.operator]
    return elementwise(b, call, [call.operand(n) for n in names], lambda e: make(call, e))


def _promoted(call: Call, names: Sequence[str], exprs: Exprs, target: str) -> list[Expr]:
    return [convert(e, _kind(call.operand(n)), target) for n, e in zip(names, exprs, strict=True)]


def _arithmetic(op: str, *names: str) -> Rule:
    return names, lambda call, e: apply(op, *_promoted(call, names, e, call.dtype))


def _scaled(op: str) -> Rule:
    """`self op alpha*other`."""
    names = ("self", "other")

    def make(call: Call, exprs: Exprs) -> Expr:
        a, c = _promoted(call, names, exprs, call.dtype)
        return apply(op, a, apply("*", Const(call.number("alpha", 1)), c))

    return names, make


def _reverse_subtract(call: Call, exprs: Exprs) -> Expr:
    a, c = _promoted(call, ("self", "other"), exprs, call.dtype)
    return apply("-", c, apply("*", Const(call.number("alpha", 1)), a))


def _common(call: Call, names: Sequence[str]) -> str:
    kinds = [_kind(call.operand(n)) for n in names]
    floats = [k for k in kinds if dtype(k).is_float]
    return floats[0] if floats else kinds[0] if len(set(kinds)) == 1 else "int64"


def _comparison(op: str) -> Rule:
    names = ("self", "other")
    return names, lambda call, e: apply(op, *_promoted(call, names, e, _common(call, names)))


def _logical(op: str, *names: str) -> Rule:
    return names, lambda call, e: apply(op, *_promoted(call, names, e, "bool"))


def _bitwise(op: str, *names: str) -> Rule:
    def make(call: Call, exprs: Exprs) -> Expr:
        if call.dtype != "bool":
            raise call.refuse(f"bitwise on {call.dtype}, expected bool", help="compute masks with comparisons")
        return apply(op, *exprs)

    return names, make


def _xor(call: Call, exprs: Exprs) -> Expr:
    a, c = _promoted(call, ("self", "other"), exprs, "bool")
    return apply("!=", a, c)


def _power(call: Call, exprs: Exprs) -> Expr:
    """Small integer and half exponents as the operations that machines have."""
    (base, exponent) = _promoted(call, ("self", "exponent"), exprs, call.dtype)
    value = exponent.value if isinstance(exponent, Const) else None
    if value == 0.5:
        return apply("sqrt", base)
    if value == -0.5:
        return apply("rsqrt", base)
    if value == -1:
        return apply("/", Const(1.0), base)
    if value in (1, 2, 3, 4):
        square = apply("*", base, base)
        return {1: base, 2: square, 3: apply("*", square, base), 4: apply("*", square, square)}[int(value)]
    return apply("**", base, exponent)


def _clamp(call: Call, exprs: Exprs) -> Expr:
    result = convert(exprs[0], call.value("self").dtype, call.dtype)
    for op, name in (("max", "min"), ("min", "max")):
        if call.arguments.get(name) is not None:
            result = apply(op, result, Const(_literal(call.number(name), call.dtype)))
    return result


def clamp_tensor(b: Builder, call: Call) -> Value:
    """min(max(self, low), high) with tensors as bounds, either of which may be missing."""
    bounds = [
        (op, call.value(name)) for op, name in (("max", "min"), ("min", "max")) if call.arguments.get(name) is not None
    ]
    kinds = [call.value("self").dtype, *(v.dtype for _, v in bounds)]

    def make(e: Exprs) -> Expr:
        result, *limits = [convert(x, k, call.dtype) for x, k in zip(e, kinds, strict=True)]
        for (op, _), limit in zip(bounds, limits, strict=True):
            result = apply(op, result, limit)
        return result

    return elementwise(b, call, [call.value("self"), *(v for _, v in bounds)], make)


def _divide_mode(call: Call, exprs: Exprs) -> Expr:
    a, c = _promoted(call, ("self", "other"), exprs, call.dtype)
    quotient = apply("/", a, c)
    mode = call.arguments.get("rounding_mode")
    if mode == "floor":
        return apply("floor", quotient)
    return _truncate(quotient) if mode == "trunc" else quotient


def _truncate(e: Expr) -> Expr:
    return apply("select", apply("<", e, Const(0)), apply("neg", apply("floor", apply("neg", e))), apply("floor", e))


def _remainder(call: Call, exprs: Exprs) -> Expr:
    a, c = _promoted(call, ("self", "other"), exprs, call.dtype)
    return apply("-", a, apply("*", c, apply("floor", apply("/", a, c))))


def _unary(make: Callable[[Call, Expr], Expr]) -> Rule:
    """`make` of the operand converted to the result's type."""
    return ("self",), lambda call, e: make(call, _promoted(call, ("self",), e, call.dtype)[0])


def _gelu(call: Call, e: Expr) -> Expr:
    return apply("gelu_tanh" if call.arguments.get("approximate") == "tanh" else "gelu", e)


def _leaky(call: Call, e: Expr) -> Expr:
    slope = Const(float(call.number("negative_slope", 0.01)))
    return apply("select", apply(">", e, Const(0.0)), e, apply("*", slope, e))


def _elu(call: Call, e: Expr) -> Expr:
    alpha, scale, inner = (float(call.number(n, 1.0)) for n in ("alpha", "scale", "input_scale"))
    below = apply("-", apply("exp", apply("*", Const(inner), e)), Const(1.0))
    chosen = apply("select", apply(">", e, Const(0.0)), e, apply("*", Const(alpha), below))
    return apply("*", Const(scale), chosen)


def _hardtanh(call: Call, e: Expr) -> Expr:
    low, high = float(call.number("min_val", -1.0)), float(call.number("max_val", 1.0))
    return apply("min", apply("max", e, Const(low)), Const(high))


def _select(call: Call, exprs: Exprs) -> Expr:
    condition, a, c = exprs
    names = ("self", "other")
    return apply("select", condition, *_promoted(call, names, (a, c), call.dtype))


def _masked_fill(call: Call, exprs: Exprs) -> Expr:
    kept, mask, value = exprs
    return apply("select", mask, convert(value, _kind(call.operand("value")), call.dtype), kept)


def _sign(call: Call, e: Expr) -> Expr:
    below = apply("select", apply("<", e, Const(0)), Const(-1), Const(0))
    return apply("select", apply(">", e, Const(0)), Const(1), below)


def _of(op: str, inner: Callable[[Expr], Expr]) -> Rule:
    return _unary(lambda _, e: apply(op, inner(e)))


def _round(_: Call, e: Expr) -> Expr:
    """The nearest integer, the even one of two."""
    up = apply("floor", apply("+", e, Const(0.5)))
    half = apply("==", apply("-", up, e), Const(0.5))
    odd = apply("!=", apply("floor", apply("*", up, Const(0.5))), apply("*", up, Const(0.5)))
    return apply("-", up, apply("select", apply("and", half, odd), Const(1.0), Const(0.0)))


def _is_nan(_: Call, exprs: Exprs) -> Expr:
    return apply("!=", exprs[0], exprs[0])


def _is_inf(_: Call, exprs: Exprs) -> Expr:
    return apply("==", apply("abs", exprs[0]), Const(float("inf")))


def _function(name: str, _: Call, e: Expr) -> Expr:
    return apply(name, e)


FUNCTIONS = (
    *("exp", "log", "sin", "cos", "sqrt", "rsqrt", "tanh", "sigmoid", "erf"),
    *("silu", "relu", "abs", "neg", "floor"),
)


def _table() -> dict[str, Rule]:
    rules: dict[str, Rule] = {}
    for name in FUNCTIONS:
        rules[f"aten.{name}.default"] = _unary(functools.partial(_function, name))
    for name, op in (("mul", "*"), ("div", "/")):
        rules |= {f"aten.{name}.{kind}": _arithmetic(op, "self", "other") for kind in ("Tensor", "Scalar")}
    for name, op in (("add", "+"), ("sub", "-")):
        rules |= {f"aten.{name}.{kind}": _scaled(op) for kind in ("Tensor", "Scalar")}
    for name, op in zip(("lt", "le", "gt", "ge", "eq", "ne"), COMPARISONS, strict=True):
        rules |= {f"aten.{name}.{kind}": _comparison(op) for kind in ("Tensor", "Scalar")}
    for name in ("and", "or"):
        rules[f"aten.logical_{name}.default"] = _logical(name, "self", "other")
        rules |= {f"aten.bitwise_{name}.{kind}": _bitwise(name, "self", "other") for kind in ("Tensor", "Scalar")}
    for kind in ("Scalar", "Tensor"):
        rules[f"aten.remainder.{kind}"] = (("self", "other"), _remainder)
        rules[f"aten.div.{kind}_mode"] = (("self", "other"), _divide_mode)
        rules[f"aten.masked_fill.{kind}"] = (("self", "mask", "value"), _masked_fill)
    for kind in ("Tensor_Scalar", "Tensor_Tensor", "Scalar"):
        rules[f"aten.pow.{kind}"] = (("self", "exponent"), _power)
    return rules | {
        "aten.bitwise_not.default": _bitwise("not", "self"),
        "aten.bitwise_xor.Tensor": _bitwise("!=", "self", "other"),
        "aten.logical_not.default": _logical("not", "self"),
        "aten.logical_xor.default": (("self", "other"), _xor),
        "aten.maximum.default": _arithmetic("max", "self", "other"),
        "aten.minimum.default": _arithmetic("min", "self", "other"),
        "aten.reciprocal.default": _unary(lambda _, e: apply("/", Const(1.0), e)),
        "aten.rsub.Scalar": (("self", "other"), _reverse_subtract),
        "aten.ceil.default": _unary(lambda _, e: apply("neg", apply("floor", apply("neg", e)))),
        "aten.trunc.default": _unary(lambda _, e: _truncate(e)),
        "aten.sign.default": _unary(_sign),
        "aten.round.default": _unary(_round),
        "aten.log1p.default": _of("log", lambda e: apply("+", e, Const(1.0))),
        "aten.expm1.default": _unary(lambda _, e: apply("-", apply("exp", e), Const(1.0))),
        "aten.exp2.default": _of("exp", lambda e: apply("*", e, Const(math.log(2.0)))),
        "aten.log2.default": _unary(lambda _, e: apply("*", apply("log", e), Const(1.0 / math.log(2.0)))),
        "aten.log10.default": _unary(lambda _, e: apply("*", apply("log", e), Const(1.0 / math.log(10.0)))),
        "aten.tan.default": _unary(lambda _, e: apply("/", apply("sin", e), apply("cos", e))),
        "aten.gelu.default": _unary(_gelu),
        "aten.leaky_relu.default": _unary(_leaky),
        "aten.elu.default": _unary(_elu),
        "aten.hardtanh.default": _unary(_hardtanh),
        "aten.clamp.default": (("self",), _clamp),
        "aten.where.self": (("condition", "self", "other"), _select),
        "aten.isnan.default": (("self",), _is_nan),
        "aten.isinf.default": (("self",), _is_inf),
        "aten._to_copy.default": _unary(lambda _, e: e),
    }


CASTS = frozenset({"aten._to_copy.default"})
NEUTRAL: Mapping[str, int] = MappingProxyType(
    {
        f"aten.{name}.{kind}": number
        for name, number in (("add", 0), ("sub", 0), ("mul", 1), ("div", 1))
        for kind in ("Tensor", "Scalar")
    }
)
"""Operators that return their first operand unchanged when the second is this number."""
POINTWISE: Mapping[str, Rule] = MappingProxyType(_table())
"""Operator -> names of its operands and the expression of one element."""
