"""Folded constants as expressions of the indices: `arange`, `full`, repeats, rotations need no tensor."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace

import numpy as np

from polyopt.frontend.torch._value import Array, Digit, Piece, Value, canonical, dim_index, stored
from polyopt.ir import Const, Index
from polyopt.sets import Affine, Constraint, affine

__all__ = ["as_expression"]

Integers = np.ndarray[tuple[int, ...], np.dtype[np.int64]]
Part = tuple[tuple[Constraint, ...], Affine]


def as_expression(elements: Array, dtype: str) -> Value | None:
    """The value of `elements` as a literal or as quasi-affine expressions of its indices; None when it is neither.

    Found: constants; sums over dimensions of a*(i // p) + b*(i % p), so affine functions, repeats and periods (p that
    divides the extent splits the dimension into two digits); affine functions with one jump (two pieces): rotations.
    """
    if elements.size == 0:
        return stored("", elements.shape, dtype)
    first = elements.flat[0]
    if bool(np.all(elements == first)) or elements.size == 1:
        dims = [(Digit(f"x{k}", n),) for k, n in enumerate(elements.shape)]
        return replace(canonical(dtype, dims, [Piece((), Const(literal(first)))], {}), known=elements)
    if elements.dtype == np.bool_:
        return None
    numbers = elements.astype(np.float64)
    if not np.all(np.isfinite(numbers)) or not np.all(numbers == np.rint(numbers)) or np.abs(numbers).max() >= 2**53:
        return None
    lines = _fit(numbers.astype(np.int64))
    if lines is None:
        return None
    digits = [line.digits(f"x{k}") for k, line in enumerate(lines)]
    parts = [line.parts(own) for line, own in zip(lines, digits, strict=True)]
    pieces = [
        Piece(tuple(g for guards, _ in chosen for g in guards), Index(sum((e for _, e in chosen), affine(int(first)))))
        for chosen in itertools.product(*parts)
    ]
    return replace(canonical(dtype, digits, pieces, {}), known=elements)


def literal(element: np.generic) -> float | int | bool:
    """A Python number equal to `element`."""
    if isinstance(element, np.bool_):
        return bool(element)
    return int(element) if isinstance(element, np.integer) else float(element)


@dataclass(frozen=True, slots=True)
class Line:
    """`step*(i // period) + slope*(i % period)`, and `jump` more from position `start` on, for 0 <= i < extent."""

    extent: int
    slope: int
    period: int
    step: int = 0
    start: int = 0
    jump: int = 0

    def digits(self, name: str) -> tuple[Digit, ...]:
        if self.period < self.extent and self.extent % self.period == 0:
            return Digit(f"{name}h", self.extent // self.period), Digit(f"{name}l", self.period)
        return (Digit(name, self.extent),)

    def parts(self, digits: tuple[Digit, ...]) -> list[Part]:
        """Guarded expressions over `digits`."""
        if self.extent == 1:
            return [((), affine(0))]
        index = dim_index([d for d in digits if d.extent != 1])
        if len(digits) == 2:
            high, low = (affine(d.name) if d.extent != 1 else affine(0) for d in digits)
            return [((), high * self.step + low * self.slope)]
        if self.period < self.extent:
            return [((), (index // self.period) * self.step + (index % self.period) * self.slope)]
        if not self.jump:
            return [((), index * self.slope)]
        before, after = Constraint(affine(self.start - 1) - index), Constraint(index - self.start)
        return [((before,), index * self.slope), ((after,), index * self.slope + self.jump)]


def _fit(numbers: Integers) -> list[Line] | None:
    """One line per dimension whose sum, from the first element on, gives `numbers` everywhere; or None."""
    origin = numbers[(0,) * numbers.ndim]
    rebuilt = np.full(numbers.shape, origin, dtype=np.int64)
    lines: list[Line] = []
    for k, n in enumerate(numbers.shape):
        values = numbers[tuple(slice(None) if j == k else 0 for j in range(numbers.ndim))] - origin
        line = _fit_line(values)
        if line is None:
            return None
        lines.append(line)
        rebuilt += values.reshape([n if j == k else 1 for j in range(numbers.ndim)])
    return lines if np.array_equal(rebuilt, numbers) else None


def _fit_line(values: Integers) -> Line | None:
    """A line with these values, or None; values[0] is 0.  Whole periods are preferred, then jumps, then cut periods."""
    n = len(values)
    slope = int(values[1]) if n > 1 else 0
    (breaks,) = np.nonzero(values != slope * np.arange(n))
    if not len(breaks):
        return Line(n, slope, n)
    period = int(breaks[0])  # where the first slope ends
    step = int(values[period])
    where = np.arange(n)
    periodic = np.array_equal(step * (where // period) + slope * (where % period), values)
    if periodic and n % period == 0:
        return Line(n, slope, period, step)
    for candidate in (slope, int(values[-1] - values[-2])):
        jumped = _fit_jump(values, candidate)
        if jumped is not None:
            return jumped
    return Line(n, slope, period, step) if periodic else None


def _fit_jump(values: Integers, slope: int) -> Line | None:
    """slope*i, and one jump from some position on, or None."""
    n = len(values)
    rest = values - slope * np.arange(n)
    start = int(np.argmax(rest != 0))
    jump = int(rest[start])
    return Line(n, slope, n, 0, start, jump) if np.array_equal(rest, jump * (np.arange(n) >= start)) else None
