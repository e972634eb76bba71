"""How absolute error bounds pass through one scalar operation, and how large its own rounding is.

Every rule takes values v and bounds e (|computed - v| <= e) as float64 arrays and gives the propagated bound, with no
rounding of the operation itself.  Rules of smooth functions take the larger change towards either end of [v - e, v + e]
when the function is monotone, else |f'(v)| e + max|f''| e**2 / 2, at most the Lipschitz constant times e.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from polyopt.ir import DType

__all__ = [
    "EXACT",
    "Array",
    "Function",
    "largest_value",
    "nan_to_inf",
    "own_rounding",
    "product_bound",
    "propagate",
    "round_to",
    "store_error",
]

Array = npt.NDArray[Any]
Function = Callable[..., Array]
"""The operation itself, on float64 arrays."""

_SLACK = 2.0**-50
"""Covers the rounding of differences of function values in the rules themselves, relative to the value."""

FUNCTION_ULPS = 4
"""Unit roundoffs that a division or function may be off."""

_MONOTONE = frozenset(("exp", "log", "sqrt", "rsqrt", "tanh", "sigmoid", "erf"))


def nan_to_inf(bound: Array) -> Array:
    """No bound where the rules give none."""
    return np.where(np.isnan(bound), np.inf, bound)


def round_to(values: Array, element: DType) -> Array:
    """Values rounded to an element type, as float64."""
    if element.name == "float64":
        return values
    with np.errstate(all="ignore"):
        return np.asarray(values.astype(element.numpy).astype(np.float64))


def largest_value(element: DType) -> float:
    """The largest finite value of a floating element type (anything below it plus half a unit rounds to it)."""
    return float(ml_dtypes.finfo(element.numpy).max)  # type: ignore[no-untyped-call]


def store_error(values: Array, bound: Array, element: DType) -> Array:
    """The rounding error of storing, added to `bound`: exact where the stored value is known exactly (bound 0)."""
    top = np.abs(values) + bound
    rounding = element.unit_roundoff * np.maximum(top, element.smallest_normal)
    known = np.asarray(bound == 0)
    if known.any() and element.name != "float64":
        difference = np.abs(round_to(values, element) - values)
        rounding = np.where(known, np.where(np.isnan(difference), 0.0, difference), rounding)
    elif known.any():
        rounding = np.where(known, 0.0, rounding)
    total = bound + rounding
    overflow = np.isfinite(values) & (top > largest_value(element) * (1 + element.unit_roundoff))
    return nan_to_inf(np.where(overflow, np.inf, total))


def own_rounding(
    op: str, values: Array, bound: Array, args: Sequence[Array], errors: Sequence[Array], element: DType
) -> Array:
    """The rounding error of one operation in `element` arithmetic whose exact result is within `bound` of `values`.

    Infinite where the result may overflow.  Computed arguments are numbers of the type: none exceeds its largest.
    """
    u = element.unit_roundoff
    top = np.abs(values) + bound
    reach = top
    if op in ("+", "-"):
        rounding = u * top
        reach = np.minimum(top, _sum_of_ends(args, errors, element))
    elif op == "*":
        rounding = u * top + np.minimum(top, element.smallest_normal)
    else:
        rounding = FUNCTION_ULPS * u * _scale(op, top, args) + element.smallest_normal
    if top.size and float(top.max()) <= largest_value(element):
        return np.asarray(rounding)
    overflow = np.isfinite(values) & (reach > largest_value(element) * (1 + u))
    return np.where(overflow, np.inf, np.where(np.isinf(values) & (bound == 0), 0.0, rounding))


def _sum_of_ends(args: Sequence[Array], errors: Sequence[Array], element: DType) -> Array:
    """The largest magnitude that a sum or difference of two numbers of the type can have."""
    ends = [np.minimum(np.abs(a) + e, largest_value(element)) for a, e in zip(args, errors, strict=True)]
    return np.asarray(ends[0] + ends[1])


def _scale(op: str, top: Array, args: Sequence[Array]) -> Array:
    """What the error of a function is relative to: its value, or an absolute size where implementations cancel."""
    if op in ("sin", "cos"):
        return np.ones_like(top)
    if op in ("gelu", "gelu_tanh", "silu"):
        return np.maximum(top, np.minimum(np.abs(args[0]), 1.0))
    if op == "**":
        with np.errstate(all="ignore"):
            exponent = np.abs(args[1] * np.log(np.abs(args[0])))
        return np.asarray(top * (1 + np.where(np.isfinite(exponent), exponent, 0.0)))
    return top


def product_bound(a: Array, ea: Array, b: Array, eb: Array) -> Array:
    """|a b - a' b'|."""
    bound: Array = np.abs(a) * eb + np.abs(b) * ea + ea * eb
    return bound


def _plus(f: Function, v: Sequence[Array], e: Sequence[Array], y: Array) -> Array:
    bound: Array = e[0] + e[1]
    return bound


def _times(f: Function, v: Sequence[Array], e: Sequence[Array], y: Array) -> Array:
    return product_bound(v[0], e[0], v[1], e[1])


def _divide(f: Function, v: Sequence[Array], e: Sequence[Array], y: Array) -> Array:
    least = np.abs(v[1]) - e[1]
    return np.where(least > 0, (e[0] + np.abs(y) * e[1]) / least, np.inf)


def _power(f: Function, v: Sequence[Array], e: Sequence[Array], y: Array) -> Array:
    """For a positive base the corners of the box, for a fixed whole exponent the derivative at the largest base."""
    a, b = v
    ea, eb = e
    whole = (eb == 0) & (b == np.floor(b)) & (b >= 1)
    reach = np.abs(a) + ea
    polynomial = np.abs(b) * f(reach, b - 1) * ea
    corners = reduce(np.maximum, [np.abs(f(a + i * ea, b + j * eb) - y) for i in (-1, 1) for j in (-1, 1)])
    return np.where(whole, polynomial, np.where(a - ea > 0, corners + _SLACK * np.abs(y), np.inf))


def _extreme(f: Function, v: Sequence[Array], e: Sequence[Array], y: Array) -> Array:
    """min and max: only arguments whose intervals reach the result matter."""
    ends = [np.abs(f(v[0] + s * e[0], v[1] + s * e[1]) - y) for s in (-1, 1)]
    return np.asarray(np.maximum(*ends))


def _same(f: Function, v: Sequence[Array], e: Sequence[Array], y: Array) -> Array:
    return e[0]


def _monotone(f: Function, v: Sequence[Array], e: Sequence[Array], y: Array) -> Array:
    change = np.maximum(np.abs(f(v[0] + e[0]) - y), np.abs(f(v[0] - e[0]) - y))
    return nan_to_inf(change + _SLACK * np.abs(y))


def _step(f: Function, v: Sequence[Array], e: Sequence[Array], y: Array) -> Array:
    """Monotone and computed without rounding."""
    return np.asarray(np.maximum(np.abs(f(v[0] + e[0]) - y), np.abs(f(v[0] - e[0]) - y)))


def _curved(slope: Callable[[Array], Array], curvature: float, lipschitz: float) -> Callable[..., Array]:
    def rule(f: Function, v: Sequence[Array], e: Sequence[Array], y: Array) -> Array:
        local = np.abs(slope(v[0])) * e[0] + 0.5 * curvature * e[0] * e[0]
        return np.minimum(nan_to_inf(local), lipschitz * e[0])

    return rule


def _gelu_slope(x: Array) -> Array:
    t = np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))
    inner = math.sqrt(2 / math.pi) * (1 + 3 * 0.044715 * x * x)
    return np.asarray(0.5 * (1 + t) + 0.5 * x * (1 - t * t) * inner)


def _silu_slope(x: Array) -> Array:
    s = 1 / (1 + np.exp(-x))
    return np.asarray(s * (1 + x * (1 - s)))


def _near(slope: Callable[[Array], Array], off: float) -> Callable[[Array], Array]:
    """A slope known up to `off`."""
    return lambda x: np.abs(slope(x)) + off


_RULES: dict[str, Callable[..., Array]] = {
    "+": _plus,
    "-": _plus,
    "*": _times,
    "/": _divide,
    "**": _power,
    "min": _extreme,
    "max": _extreme,
    "neg": _same,
    "abs": _same,
    "sin": _curved(np.cos, 1.0, 1.0),
    "cos": _curved(np.sin, 1.0, 1.0),
    "gelu": _curved(_near(_gelu_slope, 2.0**-9), 0.8, 1.13),
    "gelu_tanh": _curved(_gelu_slope, 0.9, 1.13),
    "silu": _curved(_silu_slope, 0.5, 1.1),
    **dict.fromkeys(_MONOTONE, _monotone),
    **dict.fromkeys(("floor", "relu"), _step),
}


_ZERO_WHEN_KNOWN = frozenset(("+", "-", "*", "neg", "abs"))
"""Rules that give 0 for errors 0 by themselves, unless infinities meet."""

EXACT = frozenset(("neg", "abs", "min", "max", "relu", "floor"))
"""Operations without a rounding of their own."""


def propagate(op: str, f: Function, v: Sequence[Array], e: Sequence[Array], y: Array) -> Array:
    """The bound on |f(v') - y|, y = f(v), when |v' - v| <= e; infinite where that is unknown, 0 where all e are 0."""
    if all(not b.any() for b in e):
        return np.zeros(())
    bound = np.asarray(_RULES[op](f, v, e, y))
    if op in _ZERO_WHEN_KNOWN and not np.isnan(bound).any():
        return bound
    known = reduce(np.logical_and, [b == 0 for b in e])
    return np.asarray(np.where(known, 0.0, nan_to_inf(bound)))
