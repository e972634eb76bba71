"""What the evaluator computes with: plain float64 values, exact integers, or anything else that follows `Algebra`.

A `Value` is a tuple of arrays that broadcast over the dimensions of a region (0-dimensional when they depend on none);
the first one holds the values.  `polyopt.verify` adds error bounds as a second one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from functools import reduce
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from polyopt.ir import DType, dtype
from polyopt.ir.standins import STANDINS, canonical, standin_call, standin_constant
from polyopt.reference._cells import Array, Cells, round_array, truncate_array, wrap_array
from polyopt.reference._contract import contract, magnitude
from polyopt.reference._node import Node, dtype_kind
from polyopt.reference._scalar import Functions, missing_function

__all__ = [
    "COMBINERS",
    "Algebra",
    "ExactAlgebra",
    "Float64Algebra",
    "Value",
    "apply_float64",
    "apply_integer",
    "reduce_array",
]

Value = tuple[Array, ...]
BoolArray = npt.NDArray[np.bool_]

COMBINERS: dict[str, Any] = {"+": np.add, "*": np.multiply, "min": np.minimum, "max": np.maximum}
_SAFE = 2**62
_SMALL = 2**20


class Algebra(Protocol):
    """mode: how tensors are stored, `float64` or `exact`.  scalar: small pieces may be interpreted instead."""

    mode: str
    scalar: bool

    def prepare(self, cells: Cells, combines: frozenset[str]) -> None:
        """Add the parts that a tensor needs; `combines` are the operators that statements combine into it with."""

    def const(self, node: Node) -> Value:
        """A literal."""

    def index(self, values: Array) -> Value:
        """Integers from iterators."""

    def read(self, cells: Cells, parts: Sequence[Array]) -> Value:
        """The value held by some cells; `parts` are views or copies."""

    def apply(self, node: Node, args: Sequence[Value]) -> Value:
        """An operator, cast or call."""

    def branches(self, test: Value) -> tuple[BoolArray, BoolArray]:
        """Where a test may be true and where it may be false."""

    def keep(self, value: Value, mask: BoolArray) -> Value:
        """0 outside the mask."""

    def reduce(
        self, node: Node, combine: str, value: Value, mask: BoolArray | None, axes: Sequence[int], sizes: Sequence[int]
    ) -> Value:
        """Combine over axes (kept with size 1), points outside the mask left out."""

    def contract(
        self, node: Node, factors: Sequence[Value], keep: Collection[int], sizes: Sequence[int], negative: bool
    ) -> Value:
        """Sum of products over all axes not in `keep`, negated if asked."""

    def add(self, a: Value, b: Value) -> Value:
        """The sum of two results of `reduce` with '+' or `contract` over the same points."""

    def segments(self, node: Node, combine: str, value: Value, starts: Array) -> Value:
        """Combine runs of a flat value that begin at `starts`."""

    def accumulate(
        self, cells: Cells, combine: str, old: Sequence[Array], new: Value, *, repeated: bool
    ) -> tuple[Array, ...]:
        """The parts after a reduced value was combined into cells with parts `old`.

        repeated: the program may store the tensor and go on combining later.
        """

    def store(self, cells: Cells, node: Node, value: Value) -> tuple[Array, ...]:
        """The parts for cells that are assigned `value`, the value of `node`."""

    def doubtful(self, parts: Sequence[Array]) -> BoolArray | None:
        """Where an integer that serves as a subscript may have another value; None for nowhere."""

    def spoil(self, parts: Sequence[Array], where: BoolArray) -> list[Array]:
        """The parts of cells of which it is in doubt whether they are the right ones."""


def _sigmoid(x: Array) -> Array:
    return 1.0 / (1.0 + np.exp(-x))


def _erf(x: Array) -> Array:
    return np.array(list(map(math.erf, x.ravel().tolist())), np.float64).reshape(x.shape)


def _gelu_tanh(x: Array) -> Array:
    return 0.5 * x * (1.0 + np.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * x * x * x)))


_FLOAT: dict[str, Callable[..., Array]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.divide,
    "**": np.power,
    "min": np.minimum,
    "max": np.maximum,
    "neg": np.negative,
    "abs": np.abs,
    "exp": np.exp,
    "log": np.log,
    "sin": np.sin,
    "cos": np.cos,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1.0 / np.sqrt(x),
    "tanh": np.tanh,
    "sigmoid": _sigmoid,
    "erf": _erf,
    "gelu": lambda x: 0.5 * x * (1.0 + _erf(x / math.sqrt(2.0))),
    "gelu_tanh": _gelu_tanh,
    "silu": lambda x: x * _sigmoid(x),
    "relu": lambda x: np.maximum(x, 0.0),
    "floor": np.floor,
}
_INTEGER: dict[str, Callable[..., Array]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "**": np.power,
    "min": np.minimum,
    "max": np.maximum,
    "neg": np.negative,
    "abs": np.abs,
    "relu": lambda x: np.maximum(x, 0),
    "floor": lambda x: x,
}
_COMPARE: dict[str, Callable[..., Any]] = {
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
    "==": np.equal,
    "!=": np.not_equal,
}


def _truth(x: Array) -> BoolArray:
    return np.asarray(x != 0, dtype=np.bool_)


def _apply_common(node: Node, args: Sequence[Array]) -> Array | None:
    """Comparisons, logic and selection, which are the same for all plain values."""
    if node.op in _COMPARE:
        return np.asarray(_COMPARE[node.op](*args), dtype=np.bool_)
    if node.op == "select":
        return np.asarray(np.where(_truth(args[0]), args[1], args[2]))
    if node.op == "not":
        return ~_truth(args[0])
    if node.op in ("and", "or"):
        return (np.logical_and if node.op == "and" else np.logical_or)(_truth(args[0]), _truth(args[1]))
    return None


def apply_integer(node: Node, args: Sequence[Array]) -> Array:
    """Integer arithmetic modulo 2**64; min and max of bools stay bools."""
    if node.kind == "int":
        args = [a.astype(np.int64) if a.dtype == np.bool_ else a for a in args]
    return np.asarray(_INTEGER[node.op](*args))


def apply_float64(node: Node, args: Sequence[Array], functions: Functions | None = None) -> Array:
    """The value of an operator, cast or call in float64 mode."""
    common = _apply_common(node, args)
    if common is not None:
        return common
    if node.op == "cast":
        return _convert(args[0], node.args[0].kind, dtype(node.payload), rounding=True)
    if node.kind != "float":
        return apply_integer(node, args)
    floats = [np.asarray(a, np.float64) for a in args]
    if node.op == "call":
        if functions is None or node.payload not in functions:
            raise missing_function(node.payload)
        function = np.frompyfunc(functions[node.payload], len(floats), 1)
        return np.asarray(function(*floats), np.float64)
    return np.asarray(_FLOAT[node.op](*floats))


def _convert(values: Array, kind: str, element: DType, *, rounding: bool) -> Array:
    """Values of a kind as values of an element type, in float64 mode."""
    target = dtype_kind(element.name)
    if target == "bool":
        return _truth(values)
    if target == "int":
        return wrap_array(truncate_array(values) if kind == "float" else values.astype(np.int64), element)
    wide = np.asarray(values, np.float64)
    return round_array(wide, element).astype(np.float64) if rounding and element.name != "float64" else wide


def reduce_array(
    combine: str, values: Array, mask: BoolArray | None, axes: Sequence[int], sizes: Sequence[int]
) -> Array:
    """Combine an array over axes (kept with size 1); an axis that it does not have counts with its size."""
    ndim = len(sizes)
    full = values.reshape((1,) * ndim) if values.ndim == 0 else values
    if full.dtype == np.bool_ and combine in ("+", "*"):
        full = full.astype(np.int64)
    if mask is not None:
        full = np.where(mask, full, _neutral(combine, full))
    present = tuple(a for a in axes if full.shape[a] != 1)
    times = math.prod(sizes[a] for a in axes if full.shape[a] == 1)
    result = np.asarray(COMBINERS[combine].reduce(full, axis=present, keepdims=True)) if present else full
    if times != 1 and combine == "+":
        return result * times
    return result**times if times != 1 and combine == "*" else result


def _neutral(combine: str, values: Array) -> Any:
    if combine in ("+", "*"):
        return 0 if combine == "+" else 1
    if values.dtype == np.float64:
        return np.inf if combine == "min" else -np.inf
    return values.max() if combine == "min" else values.min()


def _segments(combine: str, values: Array, starts: Array) -> Array:
    if values.dtype == np.bool_ and combine in ("+", "*"):
        values = values.astype(np.int64)
    return np.asarray(COMBINERS[combine].reduceat(values, starts))


class Float64Algebra:
    """Floats in float64, integers in int64."""

    mode = "float64"
    scalar = True

    def __init__(self, functions: Functions | None = None) -> None:
        self.functions = functions

    def prepare(self, cells: Cells, combines: frozenset[str]) -> None:
        """The values are all there is."""

    def const(self, node: Node) -> Value:
        return (np.asarray(node.payload),)

    def index(self, values: Array) -> Value:
        return (values,)

    def read(self, cells: Cells, parts: Sequence[Array]) -> Value:
        return (parts[0],)

    def apply(self, node: Node, args: Sequence[Value]) -> Value:
        return (apply_float64(node, [a[0] for a in args], self.functions),)

    def branches(self, test: Value) -> tuple[BoolArray, BoolArray]:
        true = _truth(test[0])
        return true, ~true

    def keep(self, value: Value, mask: BoolArray) -> Value:
        return (np.where(mask, value[0], 0),)

    def reduce(
        self, node: Node, combine: str, value: Value, mask: BoolArray | None, axes: Sequence[int], sizes: Sequence[int]
    ) -> Value:
        return (reduce_array(combine, value[0], mask, axes, sizes),)

    def contract(
        self, node: Node, factors: Sequence[Value], keep: Collection[int], sizes: Sequence[int], negative: bool
    ) -> Value:
        total = contract([f[0] for f in factors], keep, sizes)
        return (-total if negative else total,)

    def add(self, a: Value, b: Value) -> Value:
        return (a[0] + b[0],)

    def segments(self, node: Node, combine: str, value: Value, starts: Array) -> Value:
        return (_segments(combine, value[0], starts),)

    def accumulate(
        self, cells: Cells, combine: str, old: Sequence[Array], new: Value, *, repeated: bool
    ) -> tuple[Array, ...]:
        total = np.asarray(COMBINERS[combine](old[0], new[0]))
        if cells.kind == "float":
            return (total,)
        return (_convert(total, cells.kind, cells.tensor.element, rounding=False),)

    def store(self, cells: Cells, node: Node, value: Value) -> tuple[Array, ...]:
        return (_convert(value[0], node.kind, cells.tensor.element, rounding=False),)

    def doubtful(self, parts: Sequence[Array]) -> BoolArray | None:
        return None

    def spoil(self, parts: Sequence[Array], where: BoolArray) -> list[Array]:
        return list(parts)


class ExactAlgebra(Float64Algebra):
    """Integers, floats modulo a prime: int64 arrays, of Python integers where one operation might leave 64 bits."""

    mode = "exact"

    def const(self, node: Node) -> Value:
        value = standin_constant(node.payload) if node.kind == "float" else node.payload
        return (np.asarray(value),)

    def apply(self, node: Node, args: Sequence[Value]) -> Value:
        return (self._apply(node, [a[0] for a in args]),)

    def _apply(self, node: Node, args: list[Array]) -> Array:
        if node.op == "cast":
            return self._convert(args[0], dtype(node.payload))
        if any(n.kind == "float" for n in (node, *node.args)):
            args = [_representative(a) for a in args]
        common = _apply_common(node, args)
        if common is not None:
            return common
        if node.kind != "float":
            return apply_integer(node, args)
        return _representative(self._in_field(node, args))

    def _in_field(self, node: Node, args: list[Array]) -> Array:
        """An operator on representatives, not reduced yet."""
        whole = [a.astype(np.int64) if a.dtype == np.bool_ else a for a in args]
        if node.op == "call" or node.op in STANDINS:
            small = all(a.dtype != object and magnitude(a) < _SMALL for a in whole)
            ready = whole if small else [a.astype(object) for a in whole]
            return np.asarray(standin_call(node.payload, *ready) if node.op == "call" else STANDINS[node.op](*ready))
        return np.asarray(_INTEGER[node.op](*_widen(node.op, whole)))

    @staticmethod
    def _convert(values: Array, element: DType) -> Array:
        target = dtype_kind(element.name)
        if target == "bool":
            return _truth(values)
        whole = values if values.dtype == object else values.astype(np.int64)
        return wrap_array(whole, element) if target == "int" else _representative(whole)

    def reduce(
        self, node: Node, combine: str, value: Value, mask: BoolArray | None, axes: Sequence[int], sizes: Sequence[int]
    ) -> Value:
        values = value[0]
        if node.kind == "float" and combine in ("+", "*"):
            count = math.prod(sizes[a] for a in axes)
            top = max(2, magnitude(values))
            fits = top * count < _SAFE if combine == "+" else count * math.log2(top) < 62
            values = values if fits else values.astype(object)
        return (_of_kind(node, reduce_array(combine, values, mask, axes, sizes)),)

    def contract(
        self, node: Node, factors: Sequence[Value], keep: Collection[int], sizes: Sequence[int], negative: bool
    ) -> Value:
        return (_of_kind(node, super().contract(node, factors, keep, sizes, negative)[0]),)

    def add(self, a: Value, b: Value) -> Value:
        return (np.add(*_widen("+", [a[0], b[0]])),)

    def segments(self, node: Node, combine: str, value: Value, starts: Array) -> Value:
        values = value[0]
        if node.kind == "float" and combine in ("+", "*") and magnitude(values) > 1:
            fits = magnitude(values) * values.size < _SAFE if combine == "+" else False
            values = values if fits else values.astype(object)
        return (_of_kind(node, _segments(combine, values, starts)),)

    def accumulate(
        self, cells: Cells, combine: str, old: Sequence[Array], new: Value, *, repeated: bool
    ) -> tuple[Array, ...]:
        operands = [old[0], new[0]]
        if cells.kind == "float":
            operands = _widen(combine, [_representative(x) for x in operands])
        return (self._convert(np.asarray(COMBINERS[combine](*operands)), cells.tensor.element),)

    def store(self, cells: Cells, node: Node, value: Value) -> tuple[Array, ...]:
        return (self._convert(value[0], cells.tensor.element),)


def _representative(values: Array) -> Array:
    """Integers as the representatives of exact mode's floats; bools stay."""
    if values.dtype == np.bool_:
        return values
    whole = np.asarray(canonical(values))
    return whole.astype(np.int64) if whole.dtype == object else whole


def _of_kind(node: Node, values: Array) -> Array:
    """A result of summing up values of `node`."""
    return _representative(values) if node.kind == "float" else values


def _widen(op: str, args: list[Array]) -> list[Array]:
    """Python integers where the result of `+ - *` or a power might not fit in 64 bits."""
    if op not in ("+", "-", "*", "**"):
        return args
    sizes = [magnitude(a) for a in args]
    if op == "**":
        bound = sizes[0] ** sizes[1]
    else:
        bound = reduce(lambda a, b: a * b if op == "*" else a + b, sizes, 1 if op == "*" else 0)
    return args if bound < _SAFE else [a.astype(object) for a in args]
