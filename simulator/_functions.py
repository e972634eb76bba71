"""Scalar operators on numpy arrays, in float32 (float64 beside a float64 operand), int64 or bool; exact stand-ins.

A Python float is weak: it takes the type of the array beside it.  Comparisons and logic give bool, which counts as 0 or
1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from polyopt.errors import ProgramError
from polyopt.ir import COMPARISONS, DType, dtype
from polyopt.ir.standins import canonical, standin, standin_call, standin_constant
from polyopt.simulator._result import Array

__all__ = ["REDUCERS", "Arithmetic", "contract"]

Value = Any
"""A numpy array or scalar, or a weak Python number."""

LARGEST_EXACT = 2.0**53
LARGEST_UNBOUNDED = 2**65536
"""A recurrence can double the digits in every step: beyond this, exact mode would not end."""

TWO_63 = 2.0**63

REDUCERS: dict[str, Any] = {"+": np.add, "*": np.multiply, "min": np.minimum, "max": np.maximum}
"""Combiner -> the ufunc that folds with it."""

_COMPARE: dict[str, Any] = dict(
    zip(COMPARISONS, (np.less, np.less_equal, np.greater, np.greater_equal, np.equal, np.not_equal), strict=True)
)
_SAME_KIND: dict[str, Any] = {
    "neg": np.negative,
    "abs": np.abs,
    "relu": lambda x: np.maximum(x, np.zeros((), x.dtype)),
    "floor": lambda x: x if x.dtype.kind in "iO" else np.floor(x),
}


REACH, NODES = 6.0, 8192
"""erf is 1 to the last bit of float32 beyond REACH; the nodes are where it is tabulated below."""


@cache
def _erf_table() -> tuple[Array, Array, Array]:
    """Nodes from 0 to REACH, erf there and its derivative there."""
    x = np.linspace(0.0, REACH, NODES + 1)
    return x, np.array([math.erf(v) for v in x]), 2 / math.sqrt(math.pi) * np.exp(-x * x)


def erf(x: Array) -> Array:
    """erf in float64 from the Taylor series at the nearest tabulated node; absolute error below 1e-13."""
    nodes, values, slopes = _erf_table()
    size = np.minimum(np.nan_to_num(np.abs(np.asarray(x, np.float64)), nan=0.0), REACH)
    k = np.rint(size * (NODES / REACH)).astype(np.intp)
    at, d = nodes[k], size - nodes[k]
    series = values[k] + slopes[k] * d * (1 - d * (at - d * ((2 * at * at - 1) / 3)))
    return np.where(np.isnan(x), np.nan, np.copysign(series, x))


def sigmoid(x: Array) -> Array:
    """1 / (1 + exp(-x)) without overflow."""
    small = np.exp(-np.abs(x))
    return np.asarray(np.where(x >= 0, 1 / (1 + small), small / (1 + small)))


def _gelu_tanh(x: Array) -> Array:
    inner = x * (1 + x.dtype.type(0.044715) * x * x) * x.dtype.type(2 * math.sqrt(2 / math.pi))
    return np.asarray(x * sigmoid(inner))


def _gelu(x: Array) -> Array:
    wide = x.astype(np.float64)
    return np.asarray(wide * (0.5 + 0.5 * erf(wide * math.sqrt(0.5))))


_FLOAT: dict[str, Callable[[Array], Array]] = {
    "exp": np.exp,
    "log": np.log,
    "sin": np.sin,
    "cos": np.cos,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "tanh": np.tanh,
    "sigmoid": sigmoid,
    "erf": erf,
    "gelu": _gelu,
    "gelu_tanh": _gelu_tanh,
    "silu": lambda x: x * sigmoid(x),
    "reciprocal": lambda x: 1 / x,
}


class Arithmetic:
    """How values are loaded, computed and stored.

    exact: integers only, floats modulo a prime, stand-ins for what is not exact on integers.  Float types are then held
    in float64, or with `unbounded` as Python integers in object arrays; a single operation that leaves these raises
    ProgramError with id `exact-range`.
    """

    __slots__ = ("exact", "functions", "unbounded")

    def __init__(
        self,
        *,
        exact: bool,
        unbounded: bool = False,
        functions: Mapping[str, Callable[..., Any]] | None = None,
    ) -> None:
        self.exact = exact
        self.unbounded = unbounded
        self.functions = functions or {}

    # -- element types --------------------------------------------------------------------------------------------
    def element_type(self, name: str) -> Any:
        """The numpy type that holds stored elements of type `name`."""
        if self.exact:
            return self.wide if dtype(name).is_float else np.dtype(np.int64)
        return dtype(name).numpy

    @property
    def wide(self) -> Any:
        """The numpy type of floats in exact mode."""
        return np.dtype(object if self.unbounded else np.float64)

    def given(self, values: Array, name: str) -> Array:
        """What the caller gives for elements of type `name`; floats of exact mode as their representatives."""
        return np.asarray(canonical(values)) if self.exact and dtype(name).is_float else values

    def load(self, raw: Array, name: str) -> Array:
        """Stored elements of type `name` as values to compute with."""
        kind = dtype(name)
        if self.exact:
            return raw
        if kind.is_float:
            return raw if name in ("float32", "float64") else raw.astype(np.float32)
        return raw if name == "bool" else raw.astype(np.int64)

    def store(self, value: Value, name: str) -> Array:
        """Values rounded (floats to nearest even, to integers towards zero) or wrapped to element type `name`."""
        kind = dtype(name)
        value = self.promote((value,), to_float=kind.is_float)[0] if isinstance(value, int) else np.asarray(value)
        if self.exact:
            return self.store_exact(value, kind)
        if name == "bool":
            return np.asarray(value != 0)
        if kind.is_float:
            if value.dtype.kind in "ib" and kind.element_bytes < 4:
                value = value.astype(np.float32)
            return np.asarray(value.astype(kind.numpy))
        return np.asarray(whole(value).astype(kind.numpy))

    def store_exact(self, value: Array, kind: DType) -> Array:
        """Floats are not rounded, integers are wrapped to their width."""
        if kind.name == "bool":
            return np.asarray(value != 0).astype(np.int64)
        if kind.is_float:
            return self.promote((value,), to_float=True)[0]
        if value.dtype == object:
            value = (value + 2**63) % 2**64 - 2**63
        return np.asarray(value.astype(np.int64).astype(kind.numpy).astype(np.int64))

    def constant(self, value: float | int | bool) -> Value:
        """A literal: weak, or the stand-in of a float."""
        return np.asarray(standin_constant(value), self.wide) if self.exact and isinstance(value, float) else value

    def fitting(self, value: Value) -> Array:
        """The value, when exact mode holds it; ProgramError otherwise."""
        found: Array = np.asarray(value)
        if self.exact and found.dtype.kind in "fO" and found.size:
            limit = LARGEST_EXACT if found.dtype.kind == "f" else LARGEST_UNBOUNDED
            if not np.max(np.abs(found)) < limit:
                raise ProgramError(
                    f"exact mode met a value of {'2**53' if limit == LARGEST_EXACT else '2**65536'} or more",
                    help="use smaller integers as inputs or fewer steps",
                    id="exact-range",
                )
        return found

    # -- operators ------------------------------------------------------------------------------------------------
    def promote(self, values: Sequence[Value], *, to_float: bool = False) -> list[Array]:
        """All values in one type: int64, or the float type that they call for."""
        floats = [v for v in values if _is_float(v)]
        if not floats and not to_float:
            return [np.asarray(v, np.int64) for v in values]
        if self.exact:
            return [self.exact_float(v) for v in values]
        wide = any(isinstance(v, (np.ndarray, np.generic)) and v.dtype == np.float64 for v in floats)
        return [np.asarray(v, np.float64 if wide else np.float32) for v in values]

    def exact_float(self, value: Value) -> Array:
        """A value as a float of exact mode; a literal integer as the stand-in of that float."""
        if isinstance(value, int):
            value = standin_constant(value)
        value = np.asarray(value)
        value = value.astype(np.int64) if value.dtype.kind == "b" else self.fitting(value)
        return np.asarray(canonical(value), self.wide)

    def apply(self, op: str, *args: Value) -> Value:
        """`op` of APPLY_OPS on values; select is not lazy here."""
        if op in _COMPARE:
            return np.asarray(_COMPARE[op](*self.promote(args)), np.bool_)
        if op in ("and", "or"):
            return (np.logical_and if op == "and" else np.logical_or)(truth(args[0]), truth(args[1]))
        if op == "not":
            return np.logical_not(truth(args[0]))
        if op == "select":
            a, b = self.promote(args[1:])
            return np.where(truth(args[0]), a, b)
        result = self.number(op, *args)
        return self.reduced(result) if self.exact else result

    def reduced(self, result: Array) -> Array:
        """A float result of exact mode as the representative that stands for it."""
        return np.asarray(canonical(self.fitting(result)), result.dtype) if result.dtype.kind in "fO" else result

    def number(self, op: str, *args: Value) -> Array:
        """`op` with a number as its result."""
        if op in REDUCERS or op == "-":
            a, b = self.promote(args)
            return np.asarray(np.subtract(a, b) if op == "-" else REDUCERS[op](a, b), a.dtype)
        if op in _SAME_KIND:
            (a,) = self.promote(args)
            return np.asarray(_SAME_KIND[op](a), a.dtype)
        if op == "**" and isinstance(args[1], int) and args[1] >= 0 and not _is_float(args[0]):
            a, b = self.promote(args)
            return np.asarray(np.power(a, b), a.dtype)
        values = self.promote(args, to_float=True)
        if self.exact:
            return np.asarray(standin(op, *values), self.wide)
        if op == "/":
            return np.asarray(np.true_divide(*values))
        if op == "**":
            return np.asarray(np.power(*values))
        return np.asarray(_FLOAT[op](values[0]), values[0].dtype)

    def call(self, name: str, *args: Value) -> Value:
        """An uninterpreted function: its stand-in, or the one that the caller of the simulator gave, value by value."""
        values = np.broadcast_arrays(*self.promote(args, to_float=True)) if args else []
        if self.exact:
            return np.asarray(standin_call(name, *values), self.wide)
        if name not in self.functions:
            raise ProgramError(
                f"the function {name!r} has no value",
                help="give it in `functions`, or run in exact mode",
                id="uninterpreted",
            )
        result = np.frompyfunc(lambda *v: float(self.functions[name](*v)), len(args), 1)(*values)
        return np.asarray(result, values[0].dtype if values else np.float32)

    def cast(self, value: Value, name: str) -> Value:
        """Rounded to an element type, as a value to compute with."""
        return self.load(self.store(value, name), name)

    # -- sums -----------------------------------------------------------------------------------------------------
    def fold(self, combine: str, value: Array, axes: tuple[int, ...]) -> Array:
        """`value` folded over `axes`, which stay with extent 1."""
        if self.exact and combine == "+":
            count = math.prod(value.shape[k] for k in axes)
            self.fitting(np.float64(largest(value) * count if value.dtype == np.float64 else 0))
        if self.exact and combine == "*" and value.dtype.kind in "fO":
            return self.product(value, axes)
        result = np.asarray(REDUCERS[combine].reduce(value, axis=axes, keepdims=True), value.dtype)
        return self.reduced(result) if self.exact else result

    def product(self, value: Array, axes: tuple[int, ...]) -> Array:
        """The product over `axes` in exact mode, reduced after every factor."""
        total = value
        for axis in axes:
            slices = np.split(total, total.shape[axis], axis=axis) if total.shape[axis] else []
            total = np.ones([1 if k == axis else n for k, n in enumerate(total.shape)], value.dtype)
            for factor in slices:
                total = self.reduced(total * factor)
        return total

    def fold_groups(self, combine: str, start: Array, groups: Array, values: Array) -> Array:
        """`start[g] = start[g] combine v` for every (g, v) in order; start and values of one type."""
        total: Array = start.copy()
        if self.exact and combine == "+" and total.dtype == np.float64:
            self.fitting(np.float64(largest(total) + float(np.abs(values).sum())))
        if self.exact and combine == "*" and total.dtype.kind in "fO":
            for g, v in zip(groups, values, strict=True):
                total[g] = self.reduced(np.asarray(total[g] * v))
            return total
        REDUCERS[combine].at(total, groups, values)
        return self.reduced(total) if self.exact else total

    def sum_of_products(self, a: Array, b: Array, axes: tuple[int, ...], repeats: int) -> Array:
        """`repeats` times the sum of a * b over `axes`, which stay with extent 1; a and b of one type."""
        if not self.exact:
            return np.asarray(contract(a, b, axes) * a.dtype.type(repeats))
        bound = largest(a) * largest(b) * repeats * math.prod(max(a.shape[k], b.shape[k]) for k in axes)
        if bound < LARGEST_EXACT:
            product = contract(a.astype(np.float64), b.astype(np.float64), axes) * repeats
            return self.reduced(np.asarray(product.astype(np.int64).astype(a.dtype)))
        if a.dtype == np.float64:
            self.fitting(np.float64(bound))
        return self.reduced(np.asarray(contract(a, b, axes) * repeats, a.dtype))


def largest(value: Array) -> Any:
    """The largest absolute value as a Python number, 0 for no values."""
    found = np.abs(value).max() if value.size else 0
    return found.item() if isinstance(found, np.generic) else found


def truth(value: Value) -> Array:
    """Nonzero."""
    value = np.asarray(value)
    return value if value.dtype.kind == "b" else np.asarray(value != 0)


def whole(value: Array) -> Array:
    """int64, towards zero, modulo 2**64; infinities and NaN give 0."""
    if value.dtype.kind != "f":
        return value.astype(np.int64)
    wide = np.trunc(np.where(np.isfinite(value), value, 0).astype(np.float64))
    if wide.size and np.abs(wide).max() >= TWO_63:
        wide = np.fmod(wide, 2 * TWO_63)
        wide = np.where(wide >= TWO_63, wide - 2 * TWO_63, np.where(wide < -TWO_63, wide + 2 * TWO_63, wide))
    return wide.astype(np.int64)


def _is_float(value: Value) -> bool:
    if isinstance(value, (np.ndarray, np.generic)):
        return bool(value.dtype.kind in "fO")
    return isinstance(value, float)


def contract(a: Array, b: Array, reduced: Sequence[int]) -> Array:
    """The sum of a * b over the axes `reduced`, which stay with extent 1.  The arrays broadcast against each other.

    An axis of extent 1 in both factors is not reduced here: repeated terms are the caller's to count.
    """
    axes = range(a.ndim)
    both = [k for k in axes if k in reduced and a.shape[k] > 1 and b.shape[k] > 1]
    only_a = tuple(k for k in axes if k in reduced and a.shape[k] > 1 and b.shape[k] == 1)
    only_b = tuple(k for k in axes if k in reduced and b.shape[k] > 1 and a.shape[k] == 1)
    a = a.sum(axis=only_a, keepdims=True) if only_a else a
    b = b.sum(axis=only_b, keepdims=True) if only_b else b
    if not both:
        return np.asarray(a * b)
    kept = [k for k in axes if k not in both]
    batch = [k for k in kept if a.shape[k] > 1 and b.shape[k] > 1]
    rows = [k for k in kept if k not in batch and b.shape[k] == 1]
    columns = [k for k in kept if k not in batch and k not in rows]
    left = _grouped(a, batch, rows, both)
    right = _grouped(b, batch, both, columns)
    product = _matmul(left, right)
    order = [*batch, *rows, *columns]
    sizes = {k: max(a.shape[k], b.shape[k]) for k in order}
    shaped = product.reshape([sizes[k] for k in order] + [1] * len(both))
    return np.asarray(np.transpose(shaped, np.argsort([*order, *both])))


SMALL_PRODUCT = 2**18
"""Multiply-adds up to which OpenBLAS keeps to one thread: on a busy machine its threads cost a hundredfold."""


def _matmul(left: Array, right: Array) -> Array:
    """left[b, m, k] @ right[b, k, n], in pieces of few rows that stay in this thread."""
    batch, rows, depth = left.shape
    piece = max(1, SMALL_PRODUCT // max(1, depth * right.shape[2]))
    whole_rows = rows // piece * piece
    if piece >= rows or left.dtype.kind != "f":
        return np.asarray(np.matmul(left, right))
    pieces = left[:, :whole_rows].reshape(batch, -1, piece, depth)
    body: Array = np.matmul(pieces, right[:, None]).reshape(batch, whole_rows, -1)
    if whole_rows == rows:
        return body
    return np.concatenate([body, np.matmul(left[:, whole_rows:], right)], axis=1)


def _grouped(x: Array, *groups: Sequence[int]) -> Array:
    """One axis per group; axes in no group have extent 1.  Copied unless its last two axes lie as BLAS wants them."""
    order = [k for g in groups for k in g]
    rest = [k for k in range(x.ndim) if k not in order]
    sizes = [math.prod(x.shape[k] for k in g) for g in groups]
    grouped = np.transpose(x, [*order, *rest]).reshape(sizes)
    return grouped if grouped.itemsize in grouped.strides[-2:] else np.ascontiguousarray(grouped)
