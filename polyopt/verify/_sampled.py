"""A sampled bound of rounding errors, for programs whose rigorous bound says nothing.

Running error analysis assumes the worst at every operation; through many layers in a low precision its bound grows
beyond every value.  Here the program runs a few times, every result moved by a random relative error of at most one
unit roundoff of the type that it is computed or stored in, and the spread of the outputs is measured.  Sources:
Parker, "Monte Carlo arithmetic", UCLA CSD-970002, 1997; Vignes, "Discrete stochastic arithmetic", Numerical Algorithms
37, 2004; sums get the square root of their length (Higham and Mary, SIAM J. Sci. Comput. 41, 2019).

This is a statement about samples, never a proof: an error beyond the bound is unlikely, not impossible.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from math import prod, sqrt
from typing import Any

import numpy as np
import numpy.typing as npt

from polyopt.ir import COMPARISONS, DType, Scop, dtype
from polyopt.reference import Cells, Float64Algebra, Node, Value, contract, reduce_array, run_program
from polyopt.verify._error_algebra import ErrorAlgebra
from polyopt.verify._error_rules import EXACT, Array, round_to
from polyopt.verify._rounding import values_and_bounds

__all__ = ["SAMPLES", "bounds_that_say_something", "is_useless", "sampled_bounds"]

BoolArray = npt.NDArray[np.bool_]

SAMPLES = 4
"""Runs with random roundings."""

CONFIDENCE = 8.0
"""Root mean squares that a bound is wide: of a normal distribution less than one value in 10**14 is farther out."""

LAST_PLACES = 2
"""Units in the last place of the output, at least."""


def is_useless(bound: Array, values: Array) -> BoolArray:
    """Where a rigorous bound is infinite or exceeds every value of the tensor."""
    finite = np.abs(values[np.isfinite(values)])
    return np.asarray(~(bound <= finite.max(initial=0.0))) & (bound > 0) & np.isfinite(values)


def bounds_that_say_something(
    scop: Scop, inputs: Mapping[str, Any], sizes: Mapping[str, int], seed: int = 0
) -> tuple[dict[str, Array], int]:
    """`error_bounds`, the useless ones of floating outputs replaced by sampled ones, and how many cells these are."""
    values, bounds = values_and_bounds(scop, inputs, sizes)
    floats = [n for n in bounds if scop.tensor(n).element.is_float]
    useless = {n: is_useless(bounds[n], values[n]) for n in floats}
    num_sampled = sum(int(u.sum()) for u in useless.values())
    if num_sampled:
        sampled = sampled_bounds(scop, inputs, sizes, seed, values=values)
        bounds |= {n: np.where(u, sampled[n], bounds[n]) for n, u in useless.items()}
    return bounds, num_sampled


def sampled_bounds(
    scop: Scop,
    inputs: Mapping[str, Any],
    sizes: Mapping[str, int],
    seed: int = 0,
    *,
    values: Mapping[str, Array] | None = None,
) -> dict[str, Array]:
    """For every floating output and inout, a float64 array of bounds on |run - reference| per element.

    CONFIDENCE * (the cell's own root mean square deviation + that of its whole tensor) + a few units in the last place;
    infinite where that exceeds every value, so that it says nothing either.
    values: the reference's, not rounded, where they are known.  Errors as `polyopt.reference.evaluate`.
    """
    elements = {t.name: t.element for t in scop.with_role("output", "inout") if t.element.is_float}
    if values is None:
        values = _values(scop, inputs, sizes, Float64Algebra())
    squares: dict[str, Array] = {n: np.zeros(values[n].shape) for n in elements}
    for k in range(SAMPLES):
        rules = ErrorAlgebra(scop, dtype("float32"), dtype("float32"), None)
        moved = _values(scop, inputs, sizes, RandomRounding(rules, np.random.default_rng((seed, k))))
        with np.errstate(all="ignore"):
            for n in elements:
                squares[n] += np.square(moved[n] - values[n])
    return {n: _bound(values[n], squares[n] / SAMPLES, element) for n, element in elements.items()}


def _values(
    scop: Scop, inputs: Mapping[str, Any], sizes: Mapping[str, int], algebra: Float64Algebra
) -> dict[str, Array]:
    return {n: c.parts[0] for n, c in run_program(scop, inputs, sizes, algebra).items()}


def _bound(values: Array, squares: Array, element: DType) -> Array:
    finite = squares[np.isfinite(squares)]
    pooled = sqrt(float(finite.mean())) if finite.size else 0.0
    with np.errstate(all="ignore"):
        last_places = LAST_PLACES * (2 * element.unit_roundoff * np.abs(values) + element.smallest_normal)
        bound = CONFIDENCE * (np.sqrt(squares) + pooled) + last_places
    says_something = np.isfinite(values) & np.isfinite(bound) & ~is_useless(bound, values)
    return np.where(says_something, bound, np.inf)


class RandomRounding(Float64Algebra):
    """Float64 values, each moved by a random error of the type that a run would hold it in."""

    scalar = False

    def __init__(self, rules: ErrorAlgebra, random: np.random.Generator) -> None:
        super().__init__()
        self.rules, self.random = rules, random

    def moved(self, values: Array, unit_roundoff: float | Array, magnitude: Array | None = None) -> Array:
        """`values` plus a random error of at most unit_roundoff * magnitude (default: their own); infinities stay."""
        noise = self.random.uniform(-unit_roundoff, unit_roundoff, np.shape(values))
        with np.errstate(all="ignore"):
            moved = values + noise * (np.abs(values) if magnitude is None else magnitude)
        return np.where(np.isfinite(values), moved, values)

    def rounded(self, values: Array, element: DType) -> Array:
        """Rounded to one of the neighbours in `element`, at random; what the type holds stays."""
        values = np.asarray(values, np.float64)
        held = round_to(values, element) == values
        return np.where(held, values, round_to(self.moved(values, element.unit_roundoff), element))

    def prepare(self, cells: Cells, combines: frozenset[str]) -> None:
        if cells.tensor.role == "input":
            return
        self.rules.combined[cells.tensor.name] = combines

    def apply(self, node: Node, args: Sequence[Value]) -> Value:
        (values,) = super().apply(node, args)
        if node.kind != "float" or node.op in EXACT or node.op in COMPARISONS or node.op == "select":
            return (values,)
        if node.op == "cast":
            return (self.rounded(np.asarray(args[0][0], np.float64), dtype(node.payload)),)
        return (self.moved(values, self.rules.element(node).unit_roundoff),)

    def reduce(
        self, node: Node, combine: str, value: Value, mask: BoolArray | None, axes: Sequence[int], sizes: Sequence[int]
    ) -> Value:
        (total,) = super().reduce(node, combine, value, mask, axes, sizes)
        if node.kind != "float" or combine in ("min", "max"):
            return (total,)
        unit = self.rules.arithmetic_unit(node) * sqrt(prod(sizes[a] for a in axes))
        magnitude = reduce_array("+", np.abs(value[0]), mask, axes, sizes) if combine == "+" else None
        return (self.moved(total, unit, magnitude),)

    def contract(
        self, node: Node, factors: Sequence[Value], keep: Collection[int], sizes: Sequence[int], negative: bool
    ) -> Value:
        (total,) = super().contract(node, factors, keep, sizes, negative)
        if node.kind != "float":
            return (total,)
        magnitude = contract([np.abs(np.asarray(f[0], np.float64)) for f in factors], keep, sizes)
        length = prod(n for a, n in enumerate(sizes) if a not in keep)
        return (self.moved(total, self.rules.arithmetic_unit(node) * sqrt(length), magnitude),)

    def segments(self, node: Node, combine: str, value: Value, starts: Array) -> Value:
        (total,) = super().segments(node, combine, value, starts)
        if node.kind != "float" or combine in ("min", "max"):
            return (total,)
        unit = self.rules.arithmetic_unit(node) * np.sqrt(np.diff(np.append(starts, value[0].size)))
        magnitude = np.add.reduceat(np.abs(value[0]), starts) if combine == "+" else None
        return (self.moved(total, unit, magnitude),)

    def accumulate(
        self, cells: Cells, combine: str, old: Sequence[Array], new: Value, *, repeated: bool
    ) -> tuple[Array, ...]:
        (total,) = super().accumulate(cells, combine, old, new, repeated=repeated)
        if cells.kind != "float" or combine in ("min", "max"):
            return (total,)
        magnitude = np.abs(old[0]) + np.abs(new[0]) if combine == "+" else None
        total = self.moved(total, self.rules.accumulation(cells).unit_roundoff, magnitude)
        return (self.rounded(total, cells.tensor.element),)

    def store(self, cells: Cells, node: Node, value: Value) -> tuple[Array, ...]:
        (values,) = super().store(cells, node, value)
        if cells.kind != "float":
            return (values,)
        return (self.rounded(values, cells.tensor.element),)
