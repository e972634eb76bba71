"""Exact integer stand-ins for scalar functions: two executions agree bit for bit or they do different things.

Floats are then the integers modulo the prime FIELD, every result written as the representative nearest to zero
(`canonical`): no chain of sums and products grows, and reordering them changes nothing.  Integer types stay integers.

In exact mode inputs are small non-zero integers, `+ - * min max abs neg relu floor` and comparisons are what they are,
and every other operation is replaced by a fixed integer function from this table.  A stand-in takes Python integers and
numpy arrays of int64, object or float64 (holding integers below 2**53) alike, and gives the same integers for each.

- They give small numbers: functions reduce their argument modulo 11 or 13 (values up to 12; `a / b` and `silu` multiply
  by at most 11).
- They respect the identities by which an operation may be taken apart: `a / b = a * (1 / b)`, `rsqrt(x) = 1 / sqrt(x)`,
  `sigmoid(x) = 1 / (1 + exp(-x))`, `silu(x) = x * sigmoid(x)`, `x * 0.25 = x / 4`, `a ** 2 = a * a`, odd functions are
  odd, `exp(0) = 1`.  They do not respect `exp(a + b) = exp(a) * exp(b)`.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np

from polyopt.errors import nearest

__all__ = ["FIELD", "INFINITY", "STANDINS", "canonical", "standin", "standin_call", "standin_constant"]

FIELD = 4_194_319
"""A prime a little above 2**22: products of two values stay below 2**42, sums of a thousand products below 2**53."""

INFINITY = FIELD // 2
"""Stands for inf: the largest representative; constants are clipped to +-INFINITY."""

_MODULUS = 13
_RECIPROCAL_MODULUS = 11

Number = Any
"""A Python integer or a numpy array."""


def canonical(x: Number) -> Number:
    """The representative of x modulo FIELD that is nearest to zero; the same type comes out.

    >>> canonical(FIELD - 1), canonical(5), canonical(-FIELD - 7)
    (-1, 5, -7)
    """
    return (x + FIELD // 2) % FIELD - FIELD // 2


def _reciprocal(x: Number) -> Number:
    """1..11, with reciprocal(1) = 1."""
    return (x % _RECIPROCAL_MODULUS * 4 + 7) % _RECIPROCAL_MODULUS + 1


def _even(factor: int, offset: int) -> Callable[[Number], Number]:
    """A map to 1..13."""
    return lambda x: (x % _MODULUS * factor + offset) % _MODULUS + 1


def _odd(factor: int) -> Callable[[Number], Number]:
    """A map to -6..6 with f(-x) = -f(x)."""
    half = _MODULUS // 2
    return lambda x: (x % _MODULUS * factor + half) % _MODULUS - half


_exp = _even(5, 0)
_sqrt = _even(3, 10)
_normal_cdf = _even(7, 3)
_normal_cdf_tanh = _even(4, 6)


def _sigmoid(x: Number) -> Number:
    return _reciprocal(_exp(-x) + 1)


def _cos(x: Number) -> Number:
    small = x % _MODULUS
    return small * small % _MODULUS + 1


def _power(a: Number, b: Number) -> Number:
    """a**b for b in 0, 1, 2, 3; otherwise a mixture of both in 1..13."""
    mixed = (a % _MODULUS * 3 + b % _MODULUS * 5) % _MODULUS + 1
    if not isinstance(a, np.ndarray) and not isinstance(b, np.ndarray):
        return a**b if 0 <= b <= 3 else mixed
    cases = [b == 0, b == 1, b == 2, b == 3]
    return np.select(cases, [a * 0 + 1, a + b * 0, a * a, a * a * a], mixed)


STANDINS: dict[str, Callable[..., Number]] = {
    "/": lambda a, b: a * _reciprocal(b),
    "**": _power,
    "exp": _exp,
    "log": _even(6, 4),
    "sin": _odd(4),
    "cos": _cos,
    "sqrt": _sqrt,
    "rsqrt": lambda x: _reciprocal(_sqrt(x)),
    "tanh": _odd(2),
    "sigmoid": _sigmoid,
    "erf": _odd(3),
    "gelu": lambda x: x * _normal_cdf(x),
    "gelu_tanh": lambda x: x * _normal_cdf_tanh(x),
    "silu": lambda x: x * _sigmoid(x),
    "reciprocal": _reciprocal,
}
"""Operators of `APPLY_OPS` that are not exact on integers, and `reciprocal`, into which `/` may be taken apart."""


def standin(op: str, *args: Number) -> Number:
    """The stand-in of `op`; KeyError for an operator that is exact as it is.

    >>> standin("/", 6, 1), standin("exp", 0), standin("**", 3, 2)
    (6, 1, 9)
    """
    if op not in STANDINS:
        raise KeyError(f"{op} has no stand-in{nearest(op, STANDINS)}")
    return STANDINS[op](*args)


def standin_call(name: str, *args: Number) -> Number:
    """An uninterpreted function: an affine map of its arguments modulo 13 that depends on the name, in 1..13."""
    seed = zlib.crc32(name.encode())
    total: Number = seed % _MODULUS
    for k, x in enumerate(args):
        total = total + x % _MODULUS * ((seed >> (4 * k + 4)) % (_MODULUS - 1) + 1)
    return total % _MODULUS + 1


def standin_constant(value: float | int | bool) -> int:
    """The integer for a literal: itself when it is one, clipped to +-INFINITY; 1/n becomes `1 / n`; nan becomes 0.

    Any other number becomes 2..8 with its sign; a literal and its float32 rounding have the same stand-in.

    >>> standin_constant(3.0), standin_constant(float("-inf")), standin_constant(0.25) == standin("/", 1, 4)
    (3, -2097159, True)
    """
    if math.isnan(value):
        return 0
    if abs(value) >= INFINITY:
        return INFINITY if value > 0 else -INFINITY
    if value == int(value):
        return int(value)
    single = np.float32(value)
    if single != 0 and abs(single) >= 1 / INFINITY:
        whole = round(1 / float(single))
        if np.float32(1 / whole) == single:
            return int(_reciprocal(whole))
    size = int(np.abs(single).view(np.uint32)) % 7 + 2
    return size if value > 0 else -size
