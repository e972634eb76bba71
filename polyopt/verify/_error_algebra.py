"""Pairs of values and error bounds for the reference's evaluator; `_rounding.py` says what the bounds mean."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import reduce
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from polyopt.ir import COMPARISONS, DTYPES, DType, Scop, dtype
from polyopt.reference import Cells, Float64Algebra, Functions, Node, Value, apply_float64, contract, reduce_array
from polyopt.verify._error_rules import (
    EXACT,
    Array,
    largest_value,
    nan_to_inf,
    own_rounding,
    product_bound,
    propagate,
    round_to,
    store_error,
)

__all__ = ["ErrorAlgebra"]

BoolArray = npt.NDArray[np.bool_]
_ZERO = np.zeros(())
_UFUNCS: dict[str, Any] = {"+": np.add, "*": np.multiply, "min": np.minimum, "max": np.maximum}


class ErrorAlgebra:
    """Values are (values, bounds).

    Cells hold (values, bounds), or only values for inputs.  Cells that are combined into hold bounds before the
    rounding of the last store, and for '+' also the sum of the magnitudes of all terms and their number.
    """

    mode = "float64"
    scalar = False

    def __init__(self, scop: Scop, accumulate: DType, arithmetic: DType, functions: Functions | None) -> None:
        self.plain = Float64Algebra(functions)
        self.accumulate_dtype, self.arithmetic = accumulate, arithmetic
        self.reassociate = scop.reassociate
        self.dtypes = {t.name: t.element for t in scop.tensors}
        self.combined: dict[str, frozenset[str]] = {}

    # -- cells ----------------------------------------------------------------------------------------------------
    def prepare(self, cells: Cells, combines: frozenset[str]) -> None:
        name = cells.tensor.name
        self.combined[name] = combines
        if cells.tensor.role == "input":
            return
        values = cells.parts[0]
        cells.parts.append(np.zeros(values.shape))
        if "+" in combines and cells.kind == "float":
            cells.parts += [np.array(np.abs(values)), np.ones(values.shape)]

    def read(self, cells: Cells, parts: Sequence[Array]) -> Value:
        if len(parts) == 1:
            return parts[0], _ZERO
        if cells.kind == "float" and self.combined[cells.tensor.name]:
            return parts[0], self.stored(cells, parts[0], parts[1], self.held_as(cells))
        return parts[0], parts[1]

    @staticmethod
    def stored(cells: Cells, values: Array, bound: Array, computed: DType) -> Array:
        """The bound after a value computed in one type is stored; nothing is rounded when the cells are as precise."""
        element = cells.tensor.element
        if element.unit_roundoff <= computed.unit_roundoff:
            return bound
        return store_error(values, bound, element)

    def final_bound(self, cells: Cells) -> Array:
        """The bound for the user: the last store and the reference's own rounding included."""
        values, bound = self.read(cells, cells.parts)
        if cells.kind != "float":
            return np.asarray(np.broadcast_to(bound, values.shape).astype(np.float64))
        element = cells.tensor.element
        own = 2 * bound if element.name == "float64" else store_error(values, bound * (1 + 2.0**-20), element)
        settled = self.is_settled(cells, bound)
        return np.where(np.isfinite(values), np.where(settled, 0.0, own), np.inf)

    def is_settled(self, cells: Cells, bound: Array) -> BoolArray:
        """Where run and reference round one and the same number, once.

        A bound that is the rounding of the value itself comes from `store_error` for a number known exactly; any other
        bound is a unit roundoff at least.
        """
        if self.combined[cells.tensor.name]:
            return np.asarray(cells.parts[1] == 0)
        values, element = cells.parts[0], cells.tensor.element
        difference = np.abs(round_to(values, element) - values)
        once = (bound == difference) & (difference < 0.999 * element.unit_roundoff * np.abs(values))
        return np.asarray((bound == 0) | once)

    def accumulation(self, cells: Cells) -> DType:
        """The type in which terms are combined into a tensor."""
        own = cells.tensor.element
        if own.name == "float64":
            return own
        narrow = own.unit_roundoff > self.accumulate_dtype.unit_roundoff and not self.reassociate
        return own if narrow else self.accumulate_dtype

    def held_as(self, cells: Cells) -> DType:
        """The type of a combined value before it is stored: min and max do not round what they are given."""
        if self.combined[cells.tensor.name] <= {"+", "*"}:
            return self.accumulation(cells)
        return DTYPES["float64"]

    # -- scalars --------------------------------------------------------------------------------------------------
    def const(self, node: Node) -> Value:
        return np.asarray(node.payload), _ZERO

    def index(self, values: Array) -> Value:
        return values, _ZERO

    def element(self, node: Node) -> DType:
        """The type an operation computes in."""
        return DTYPES["float64"] if self.is_wide(node) or any(self.is_wide(a) for a in node.args) else self.arithmetic

    def precision(self, node: Node) -> DType:
        """The type that holds the value of a node in a run exactly; float64 for literals and integers."""
        if node.op == "read" and node.kind == "float":
            return self.dtypes[node.payload.tensor]
        if node.op == "cast" and node.kind == "float":
            return dtype(node.payload)
        if node.kind == "float" and (node.op in EXACT or node.op == "select"):
            return min((self.precision(a) for a in node.args if a.kind == "float"), key=lambda d: d.unit_roundoff)
        if node.op == "const" and node.payload == round_to(np.asarray(float(node.payload)), DTYPES["float8_e5m2"]):
            return DTYPES["float8_e5m2"]
        return self.element(node) if node.kind == "float" and node.op != "const" else DTYPES["float64"]

    def is_wide(self, node: Node) -> bool:
        if node.op == "read":
            return self.dtypes[node.payload.tensor].name == "float64"
        if node.op == "cast":
            return bool(node.payload == "float64")
        return node.kind == "float" and any(self.is_wide(a) for a in node.args)

    def apply(self, node: Node, args: Sequence[Value]) -> Value:
        values = apply_float64(node, [a[0] for a in args], self.plain.functions)
        if node.op in COMPARISONS:
            return values, self.comparison(node, args)
        if node.op in ("and", "or", "not"):
            return values, _logic(node.op, args)
        if node.op == "select":
            return values, _selection(args, values)
        if node.op == "cast":
            return values, _cast(args[0], node, values)
        if node.kind == "float":
            return values, self.operation(node, args, values)
        return values, _integers(node, args, values)

    def operation(self, node: Node, args: Sequence[Value], values: Array) -> Array:
        element = self.element(node)
        ready = [self.converted(a, x, element) for a, x in zip(node.args, args, strict=True)]
        floats, errors = [v for v, _ in ready], [e for _, e in ready]
        if node.op == "call":
            bound = np.where(reduce(np.logical_and, [e == 0 for e in errors]), 0.0, np.inf) if errors else _ZERO
            return nan_to_inf(bound + own_rounding(node.op, values, bound, floats, errors, element))
        bound = propagate(node.op, lambda *xs: apply_float64(node, xs), floats, errors, values)
        if node.op in EXACT:
            return bound
        return nan_to_inf(bound + own_rounding(node.op, values, bound, floats, errors, element))

    @staticmethod
    def converted(node: Node, value: Value, element: DType) -> Value:
        """An argument as a number of the operation's type: literals and integers are rounded to it."""
        floats = np.asarray(value[0], np.float64)
        if node.op == "const" or node.kind != "float":
            difference = np.abs(round_to(floats, element) - floats)
            return floats, value[1] + np.where(np.isnan(difference), 0.0, difference)
        return floats, value[1]

    def comparison(self, node: Node, args: Sequence[Value]) -> Array:
        element = self.element(node)
        if any(a.kind == "float" for a in node.args):
            args = [self.converted(a, x, element) for a, x in zip(node.args, args, strict=True)]
        (a, ea), (b, eb) = args
        reach = ea + eb
        if not reach.any():
            return _ZERO
        apart = np.abs(np.asarray(a, np.float64) - np.asarray(b, np.float64)) > reach
        return np.asarray((reach > 0) & ~apart, np.float64)

    def branches(self, test: Value) -> tuple[BoolArray, BoolArray]:
        true, unsure = np.asarray(test[0] != 0), _unsure(test)
        return true | unsure, ~true | unsure

    def keep(self, value: Value, mask: BoolArray) -> Value:
        return np.where(mask, value[0], 0), np.where(mask, value[1], 0.0)

    # -- reductions -----------------------------------------------------------------------------------------------
    def reduce(
        self, node: Node, combine: str, value: Value, mask: BoolArray | None, axes: Sequence[int], sizes: Sequence[int]
    ) -> Value:
        v, e = self.term(node, value)
        total = reduce_array(combine, v, mask, axes, sizes)
        if combine in ("min", "max"):
            ends = [reduce_array(combine, v + s * e, mask, axes, sizes) for s in (-1, 1)]
            return total, nan_to_inf(np.maximum(*(np.abs(end - total) for end in ends)))
        magnitude = np.abs(v) + e
        number = _count(mask, axes, sizes)
        if combine == "+":
            bound = reduce_array("+", e, mask, axes, sizes)
            return total, bound, reduce_array("+", magnitude, mask, axes, sizes), number
        largest = reduce_array("*", magnitude, mask, axes, sizes)
        return total, nan_to_inf(largest - np.abs(total) if e.any() else _ZERO), largest, number

    def arithmetic_unit(self, node: Node) -> float:
        """The unit roundoff of arithmetic on values of a node; integers are exact."""
        if node.kind != "float":
            return 0.0
        return DTYPES["float64"].unit_roundoff if self.is_wide(node) else self.arithmetic.unit_roundoff

    def term(self, node: Node, value: Value) -> Value:
        return self.converted(node, value, self.element(node)) if node.kind == "float" else value

    def contract(
        self, node: Node, factors: Sequence[Value], keep: Collection[int], sizes: Sequence[int], negative: bool
    ) -> Value:
        (total,) = self.plain.contract(node, [(v,) for v, _ in factors], keep, sizes, negative)
        uncertain = any(e.any() for _, e in factors)
        magnitude = contract([np.abs(np.asarray(v, np.float64)) + e for v, e in factors], keep, sizes)
        bound = _ZERO
        if uncertain:
            certain = contract([np.abs(np.asarray(v, np.float64)) for v, _ in factors], keep, sizes)
            bound = np.maximum(magnitude - certain, 0.0) + 2.0**-48 * magnitude
        number = prod(n for a, n in enumerate(sizes) if a not in keep)
        u = self.arithmetic_unit(node)
        if u:
            bound = bound + (len(factors) - 1) * (u * magnitude + number * self.arithmetic.smallest_normal)
        return total, nan_to_inf(bound), magnitude, np.asarray(float(number))

    def add(self, a: Value, b: Value) -> Value:
        magnitude = a[2] + b[2]
        bound = a[1] + b[1] + self.arithmetic.unit_roundoff * magnitude
        return a[0] + b[0], bound, magnitude, np.maximum(a[3], b[3])

    def segments(self, node: Node, combine: str, value: Value, starts: Array) -> Value:
        v, e = self.term(node, value)
        fold = _UFUNCS[combine].reduceat
        total = fold(v.astype(np.int64) if v.dtype == np.bool_ else v, starts)
        if combine in ("min", "max"):
            return total, nan_to_inf(np.maximum(*(np.abs(fold(v + s * e, starts) - total) for s in (-1, 1))))
        magnitude = np.abs(v) + e
        number = np.diff(np.append(starts, v.size)).astype(np.float64)
        if combine == "+":
            return total, fold(e, starts), fold(magnitude, starts), number
        largest = fold(magnitude, starts)
        uncertain = np.add.reduceat(e, starts) > 0
        return total, nan_to_inf(np.where(uncertain, largest - np.abs(total), 0.0)), largest, number

    def accumulate(
        self, cells: Cells, combine: str, old: Sequence[Array], new: Value, *, repeated: bool
    ) -> tuple[Array, ...]:
        (total,) = self.plain.accumulate(cells, combine, old[:1], new[:1], repeated=repeated)
        if cells.kind != "float":
            return total, _wrapped(_exact_sum(combine, old, new, total), total, cells.tensor.element)
        element = self.accumulation(cells)
        if combine == "+":
            return self.add_terms(cells, old, new, total, element, repeated)
        if combine in ("min", "max"):
            fold = _UFUNCS[combine]
            ends = [fold(old[0] + s * old[1], new[0] + s * new[1]) for s in (-1, 1)]
            bound = nan_to_inf(np.maximum(*(np.abs(end - total) for end in ends)))
        else:
            bound = self.multiply_terms(old, new, total, element)
            bound = self.stored_again(cells, total, bound, element, repeated)
        if len(old) == 2:
            return total, bound
        return total, bound, np.abs(total) + bound, np.ones(total.shape)

    @staticmethod
    def multiply_terms(old: Sequence[Array], new: Value, total: Array, element: DType) -> Array:
        """One rounding for every factor, whatever the order."""
        largest = (np.abs(old[0]) + old[1]) * new[2]
        rounding = np.expm1(new[3] * np.log1p(element.unit_roundoff)) * largest
        underflow = np.where(largest == 0, 0.0, new[3] * element.smallest_normal)
        overflow = np.isfinite(total) & (largest > largest_value(element))
        bound = product_bound(old[0], old[1], new[0], new[1]) + rounding + underflow
        return np.where(overflow, np.inf, nan_to_inf(bound))

    def add_terms(
        self, cells: Cells, old: Sequence[Array], new: Value, total: Array, element: DType, repeated: bool
    ) -> tuple[Array, ...]:
        """The sum gets the rounding of the longer chain instead of that of the chain so far."""
        u = element.unit_roundoff
        magnitude, number = old[2] + new[2], old[3] + new[3]
        started = np.where(old[2] == 0, 1.0, old[3])
        chain = u * ((number - 1 - (old[2] == 0)) * magnitude - (started - 1) * old[2])
        bound = old[1] + new[1] + chain
        overflow = np.isfinite(total) & (magnitude > largest_value(element))
        bound = np.where(overflow, np.inf, nan_to_inf(bound))
        bound = self.stored_again(cells, total, bound, element, repeated)
        return total, bound, magnitude, np.broadcast_to(number, total.shape)

    def stored_again(self, cells: Cells, total: Array, bound: Array, element: DType, repeated: bool) -> Array:
        """A tensor narrower than its accumulator may be stored between the rounds of a sequential loop."""
        return self.stored(cells, total, bound, element) if repeated else bound

    def store(self, cells: Cells, node: Node, value: Value) -> tuple[Array, ...]:
        (values,) = self.plain.store(cells, node, value[:1])
        if cells.kind != "float":
            return values, _to_integer(value, node, values, cells.tensor.element)
        bound = self.stored(cells, values, value[1], self.precision(node))
        if len(cells.parts) == 2:
            return values, bound
        return values, bound, np.abs(values) + bound, np.ones(np.shape(values))

    # -- subscripts -----------------------------------------------------------------------------------------------
    def doubtful(self, parts: Sequence[Array]) -> BoolArray | None:
        if len(parts) == 1 or not parts[1].any():
            return None
        return np.asarray(parts[1] > 0)

    def spoil(self, parts: Sequence[Array], where: BoolArray) -> list[Array]:
        if len(parts) == 1:
            return [parts[0], np.where(np.broadcast_to(where, parts[0].shape), np.inf, 0.0)]
        return [parts[0], np.where(where, np.inf, parts[1]), *parts[2:]]


def _unsure(test: Value) -> BoolArray:
    """Where a value may be zero or not."""
    return np.asarray((test[1] > 0) & (np.abs(np.asarray(test[0], np.float64)) <= test[1]))


def _logic(op: str, args: Sequence[Value]) -> Array:
    maybe = [np.asarray(a[0] != 0) | _unsure(a) for a in args]
    surely = [np.asarray(a[0] != 0) & ~_unsure(a) for a in args]
    if op == "not":
        return np.asarray(maybe[0] & ~surely[0], np.float64)
    join = np.logical_and if op == "and" else np.logical_or
    return np.asarray(join(*maybe) & ~join(*surely), np.float64)


def _selection(args: Sequence[Value], values: Array) -> Array:
    """The chosen branch's bound; where the test is in doubt, the distance to the other branch's interval end."""
    test, (a, ea), (b, eb) = args
    chosen = np.where(test[0] != 0, ea, eb)
    unsure = _unsure(test)
    if not unsure.any():
        return np.asarray(chosen)
    gap = np.abs(np.asarray(a, np.float64) - np.asarray(b, np.float64))
    other = np.where(test[0] != 0, eb, ea) + np.where(np.equal(a, b), 0.0, gap)
    return nan_to_inf(np.where(unsure, np.maximum(chosen, other), chosen))


def _cast(arg: Value, node: Node, values: Array) -> Array:
    element = dtype(node.payload)
    if not element.is_float:
        return _to_integer(arg, node.args[0], values, element)
    bound = arg[1]
    if not np.any(bound):
        return _ZERO  # both sides round the same number
    rounded = store_error(np.asarray(arg[0], np.float64), bound, element) + np.abs(values - arg[0])
    return nan_to_inf(np.where(bound == 0, 0.0, rounded))


def _to_integer(value: Value, node: Node, whole: Array, element: DType) -> Array:
    """The bound of a value cut off, wrapped, or compared with 0."""
    v, e = value
    if not np.any(e):
        return np.zeros(np.shape(whole))
    if element.name == "bool":
        return np.asarray(_unsure(value), np.float64)
    if node.kind != "float":
        return _wrapped(e, whole, element)
    ends = [np.trunc(v + s * e) for s in (-1, 1)]
    change = np.maximum(*(np.abs(end - np.trunc(v)) for end in ends))
    return _wrapped(np.where(e == 0, 0.0, nan_to_inf(change)), whole, element)


def _wrapped(bound: Array, whole: Array, element: DType) -> Array:
    """Infinite where an uncertain integer may leave its type."""
    if element.name == "bool":
        return bound
    info = np.iinfo(element.numpy)
    values = np.asarray(whole, np.float64)
    leaves = (values + bound > info.max) | (values - bound < info.min)
    return np.where((bound > 0) & (leaves | ~np.isfinite(bound)), np.inf, bound)


def _integers(node: Node, args: Sequence[Value], values: Array) -> Array:
    """Integer arithmetic is exact: only errors of its arguments pass through."""
    errors = [e for _, e in args]
    if not any(np.any(e) for e in errors):
        return _ZERO
    known = reduce(np.logical_and, [e == 0 for e in errors])
    if node.op == "**":
        return np.where(known, 0.0, np.inf)
    floats = [np.asarray(v, np.float64) for v, _ in args]
    as_float = Node(node.op, "float", node.args, node.payload, node.names)
    y = np.asarray(values, np.float64)
    bound = propagate(node.op, lambda *xs: apply_float64(as_float, xs), floats, errors, y)
    return np.where(known, 0.0, _wrapped(np.ceil(bound), values, DTYPES["int64"]))


def _exact_sum(combine: str, old: Sequence[Array], new: Value, total: Array) -> Array:
    """The bound of combining integers."""
    (a, ea), (b, eb) = old[:2], new[:2]
    if not (np.any(ea) or np.any(eb)):
        return np.zeros(np.shape(total))
    if combine == "+":
        return np.asarray(ea + eb)
    if combine == "*":
        return product_bound(np.asarray(a, np.float64), ea, np.asarray(b, np.float64), eb)
    return np.maximum(ea, eb)


def _count(mask: BoolArray | None, axes: Sequence[int], sizes: Sequence[int]) -> Array:
    """How many points are combined per result."""
    if mask is None:
        return np.asarray(float(prod(sizes[a] for a in axes)))
    return reduce_array("+", mask, None, axes, sizes).astype(np.float64)
