"""One instance after the other: statements compiled to Python functions of their iterators.

float64 mode computes floats as IEEE double precision without traps (1/0 is inf, log(-1) is nan, min and max propagate
nan); integers wrap at 64 bits.  exact mode computes with integers, floats modulo a prime, and the stand-ins of
`polyopt.ir.standins`.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from polyopt.errors import UnsupportedError
from polyopt.ir import DTYPES, Access, Assign, DType, Indirect, Tensor, dtype
from polyopt.ir.standins import STANDINS, canonical, standin_call, standin_constant
from polyopt.reference._affine import Env, compile_affine
from polyopt.reference._cells import CellError, wrap_int
from polyopt.reference._node import Node, build_node, dtype_kind, promote
from polyopt.sets import Affine

__all__ = ["FLOAT_FUNCTIONS", "Flat", "Functions", "compile_assign", "missing_function", "storer"]

Value = Callable[[Env], Any]
Functions = Mapping[str, Callable[..., float]]
"""Uninterpreted functions by name, for float64 mode."""

_INT64 = DTYPES["int64"]


class Flat:
    """The cells of one tensor as a flat sequence that scalar code reads and writes."""

    __slots__ = ("buf", "shape", "tensor", "written")

    def __init__(self, tensor: Tensor, shape: Sequence[int], buf: Any, written: Any) -> None:
        self.tensor, self.shape, self.buf, self.written = tensor, tuple(shape), buf, written


def missing_function(name: str) -> UnsupportedError:
    """The error for an uninterpreted function that has no value."""
    return UnsupportedError(
        f"the program calls the uninterpreted function {name!r}, whose values are unknown",
        help=f"pass functions={{{name!r}: ...}}, or use exact mode, which has a stand-in for it",
    )


def _guarded(function: Callable[[float], float], on_overflow: float = math.inf) -> Callable[[float], float]:
    def call(x: float) -> float:
        try:
            return function(x)
        except ValueError:
            return math.nan
        except OverflowError:
            return on_overflow

    return call


def _divide(a: float, b: float) -> float:
    try:
        return a / b
    except ZeroDivisionError:
        return math.nan if a == 0 or a != a else math.copysign(math.inf, a) * math.copysign(1.0, b)


def _log(x: float) -> float:
    return -math.inf if x == 0 else math.log(x) if x > 0 else math.nan


def _power(a: float, b: float) -> float:
    with np.errstate(all="ignore"):
        return float(np.float64(a) ** np.float64(b))


def _sigmoid(x: float) -> float:
    if x >= 0:
        return 1.0 / (1.0 + math.exp(-x))
    e = math.exp(x)
    return e / (1.0 + e) if x == x else x


def _minimum(a: float, b: float) -> float:
    return a if a != a or a < b else b


def _maximum(a: float, b: float) -> float:
    return a if a != a or a > b else b


def _gelu(x: float) -> float:
    return 0.5 * x * (1.0 + math.erf(x / math.sqrt(2.0)))


def _gelu_tanh(x: float) -> float:
    return 0.5 * x * (1.0 + math.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * x * x * x)))


FLOAT_FUNCTIONS: dict[str, Callable[..., float]] = {
    "/": _divide,
    "**": _power,
    "exp": _guarded(math.exp),
    "log": _log,
    "sin": _guarded(math.sin),
    "cos": _guarded(math.cos),
    "sqrt": _guarded(math.sqrt),
    "rsqrt": lambda x: _divide(1.0, _guarded(math.sqrt)(x)),
    "tanh": math.tanh,
    "sigmoid": _sigmoid,
    "erf": math.erf,
    "gelu": _gelu,
    "gelu_tanh": _gelu_tanh,
    "silu": lambda x: x * _sigmoid(x),
    "floor": lambda x: float(math.floor(x)) if math.isfinite(x) else x,
}
"""Operators on floats that are more than one Python operator."""

_ARITHMETIC: dict[str, Callable[..., Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "neg": operator.neg,
    "abs": abs,
    "min": min,
    "max": max,
    "relu": lambda x: max(x, 0),
    "floor": lambda x: x,
    "**": operator.pow,
}
_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}


class _Compiler:
    """Turns nodes into functions; one per statement."""

    def __init__(self, flats: Mapping[str, Flat], mode: str, functions: Functions) -> None:
        self.flats, self.mode, self.functions = flats, mode, functions

    def value(self, node: Node) -> Value:
        if node.op == "const":
            return self.const(node)
        if node.op == "index":
            return compile_affine(node.payload)
        if node.op == "read":
            return self.read(node.payload)
        args = [self.value(a) for a in node.args]
        if node.op == "select":
            test, then, other = args
            return lambda env: then(env) if test(env) else other(env)
        if node.op in ("and", "or", "not"):
            return _logic(node.op, args)
        function = self.function(node)
        if len(args) == 1:
            (only,) = args
            return lambda env: function(only(env))
        if len(args) == 2:
            left, right = args
            return lambda env: function(left(env), right(env))
        return lambda env: function(*(a(env) for a in args))

    def const(self, node: Node) -> Value:
        value = standin_constant(node.payload) if self.mode == "exact" and node.kind == "float" else node.payload
        return lambda env: value

    def function(self, node: Node) -> Callable[..., Any]:
        if self.mode == "exact" and node.op != "cast" and any(n.kind == "float" for n in (node, *node.args)):
            return _in_field(node)
        if node.op in _COMPARE:
            return _COMPARE[node.op]
        if node.op == "call":
            return self.call(node.payload)
        if node.op == "cast":
            return storer(dtype(node.payload), node.args[0].kind, self.mode, rounding=True)
        if node.kind != "float":
            return _integer(node)
        return self.float_function(node)

    def float_function(self, node: Node) -> Callable[..., Any]:
        op = node.op
        if op in FLOAT_FUNCTIONS:
            function = FLOAT_FUNCTIONS[op]
            if all(a.kind == "float" for a in node.args):
                return function
            return lambda *args: function(*map(float, args))
        if op in ("min", "max"):
            choose = _minimum if op == "min" else _maximum
            return lambda a, b: choose(float(a), float(b))
        if op == "relu":
            return lambda x: x if x > 0 or x != x else 0.0
        return _ARITHMETIC[op]

    def call(self, name: str) -> Callable[..., Any]:
        if name not in self.functions:
            raise missing_function(name)
        function = self.functions[name]
        return lambda *args: float(function(*args))

    def read(self, access: Access) -> Value:
        flat, locate = self.flats[access.tensor], self.locate(access)
        if flat.written is None:
            return lambda env: flat.buf[locate(env)]

        def checked(env: Env) -> Any:
            position = locate(env)
            if not flat.written[position]:
                raise CellError(access.tensor, _unravel(position, flat.shape), outside=False)
            return flat.buf[position]

        return checked

    def locate(self, access: Access) -> Callable[[Env], int]:
        """The flat position of the accessed cell; raises CellError outside the tensor."""
        shape = self.flats[access.tensor].shape
        subscripts = [self.subscript(s) for s in access.subscripts]
        pairs = list(zip(subscripts, shape, strict=True))

        def position(env: Env) -> int:
            total = 0
            for subscript, extent in pairs:
                k = subscript(env)
                if not 0 <= k < extent:
                    raise CellError(access.tensor, tuple(int(s(env)) for s in subscripts), outside=True)
                total = total * extent + k
            return total

        return position

    def subscript(self, s: Affine | Indirect) -> Callable[[Env], int]:
        if isinstance(s, Affine):
            return compile_affine(s)
        index, offset = self.read(s.access), compile_affine(s.offset)
        return lambda env: int(index(env)) + offset(env)


def _in_field(node: Node) -> Callable[..., Any]:
    """An operator of exact mode with a float among its operands or as its result: floats are integers modulo FIELD."""
    if node.op in _COMPARE:
        compare = _COMPARE[node.op]
        return lambda a, b: compare(canonical(int(a)), canonical(int(b)))
    if node.op == "call":
        name = node.payload
        return lambda *args: canonical(standin_call(name, *(canonical(int(a)) for a in args)))
    function = STANDINS.get(node.op) or _ARITHMETIC[node.op]
    return lambda *args: canonical(function(*(canonical(int(a)) for a in args)))


def _logic(op: str, args: list[Value]) -> Value:
    if op == "not":
        (only,) = args
        return lambda env: not only(env)
    left, right = args
    if op == "and":
        return lambda env: bool(left(env)) and bool(right(env))
    return lambda env: bool(left(env)) or bool(right(env))


def _integer(node: Node) -> Callable[..., Any]:
    """Arithmetic of integers (and of bools in min and max), wrapped at 64 bits."""
    function = _ARITHMETIC[node.op]

    def wrapped(*args: int) -> int:
        value: int = function(*args)
        return value if -(2**63) <= value < 2**63 else wrap_int(value, _INT64)

    return wrapped


def _unravel(position: int, shape: Sequence[int]) -> tuple[int, ...]:
    return tuple(int(k) for k in np.unravel_index(position, shape)) if shape else ()


def storer(element: DType, kind: str, mode: str, *, rounding: bool) -> Callable[[Any], Any]:
    """How a value of `kind` becomes a value of an element type.

    rounding: whether floats are rounded to the element type in float64 mode (a cast) or kept (a store).
    """
    target = dtype_kind(element.name)
    if target == "bool":
        return lambda v: v != 0
    if target == "int":
        whole = _truncate if kind == "float" and mode == "float64" else int
        return lambda v: wrap_int(whole(v), element)
    if mode == "exact":
        return lambda v: canonical(int(v))
    if not rounding or element.name == "float64":
        return float
    return lambda v: _rounded(float(v), element)


def _truncate(value: float) -> int:
    return int(value) if math.isfinite(value) else 0


def _rounded(value: float, element: DType) -> float:
    with np.errstate(all="ignore"):
        return float(np.float64(value).astype(element.numpy))


def compile_assign(
    assign: Assign, flats: Mapping[str, Flat], mode: str, functions: Functions | None = None
) -> Callable[[Env], None]:
    """Run one instance of `assign`; raises CellError for a cell outside its tensor or never written."""
    compiler = _Compiler(flats, mode, functions or {})
    tensors = {n: f.tensor for n, f in flats.items()}
    flat = flats[assign.target.tensor]
    kind = dtype_kind(flat.tensor.dtype)
    node = build_node(assign.full_value(), tensors)
    (node,) = promote((node,), kind)
    value, locate = compiler.value(node), compiler.locate(assign.target)
    store = storer(flat.tensor.element, node.kind, mode, rounding=False)

    def run(env: Env) -> None:
        result = store(value(env))
        position = locate(env)
        flat.buf[position] = result
        if flat.written is not None:
            flat.written[position] = 1

    return run
