"""Linear inequalities over the rationals: a point, or multipliers that show that there is none (Farkas' lemma).

The dual simplex method in exact integers, by Bland's rule, on a tableau whose free variables enter the basis first and
never leave it (idea: Dutertre and de Moura, "A Fast Linear-Arithmetic Solver for DPLL(T)", CAV 2006).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import gcd

__all__ = ["BasicRow", "Contradiction", "Inequality", "Vertex", "solve_inequalities"]

Inequality = tuple[Mapping[str, int], int]
"""(variable -> coefficient, constant): their sum is at least 0."""

CAREFUL_AFTER = 60
"""Pivots by a quick rule that might go round in circles, before Bland's."""

_Key = int | str
"""The slack of an inequality by its position, or a variable by its name."""


@dataclass(frozen=True, slots=True)
class Contradiction:
    """position of an inequality -> positive multiplier: the sum has no variables and is negative."""

    multipliers: Mapping[int, int]


@dataclass(slots=True)
class BasicRow:
    """scale * basic = sum of coefficients * nonbasic + const, scale >= 1; nonbasic: slacks of rows, free variables."""

    scale: int
    coefficients: dict[_Key, int]
    const: int


@dataclass(frozen=True, slots=True)
class Vertex:
    """A point that fulfils all rows: a variable of `basic` is const / scale there, any other is 0.

    basic: variable -> what it is in terms of the slacks that are 0 at the point.
    """

    basic: Mapping[str, BasicRow]


def solve_inequalities(rows: Sequence[Inequality]) -> Contradiction | Vertex:
    """A rational point that fulfils all rows, or why there is none.

    >>> solve_inequalities([({"i": 1}, -3), ({"i": -2}, 7)])
    Vertex(basic={'i': BasicRow(scale=1, coefficients={0: 1}, const=3)})
    >>> solve_inequalities([({"i": 1}, -4), ({"i": -2}, 7)])
    Contradiction(multipliers={1: 1, 0: 2})
    """
    basis: dict[_Key, BasicRow] = {}
    for k, (coefficients, const) in enumerate(rows):
        basis[k] = BasicRow(1, {v: c for v, c in coefficients.items()}, const)  # noqa: C416  (a wider key type)
    pivots = 0
    while True:
        leaving = _leaving(basis, careful=pivots > CAREFUL_AFTER)
        pivots += 1
        if leaving is None:
            return Vertex({k: r for k, r in sorted(basis.items(), key=str) if isinstance(k, str)})
        row = basis[leaving]
        entering = _entering(row)
        if entering is None:
            slacks = {k: -c for k, c in row.coefficients.items() if isinstance(k, int)}
            return Contradiction({leaving: row.scale, **slacks})
        _pivot(basis, leaving, entering)


def _leaving(basis: Mapping[_Key, BasicRow], *, careful: bool) -> int | None:
    """A row that the point does not fulfil: the first one when careful, since that rule ends surely, else the worst."""
    wrong = [k for k, r in basis.items() if isinstance(k, int) and r.const < 0]
    if not wrong or careful:
        return min(wrong, default=None)
    return min(wrong, key=lambda k: (basis[k].const / basis[k].scale, k))


def _entering(row: BasicRow) -> _Key | None:
    """A free variable if there is one, else the first slack that may grow."""
    free = min((k for k in row.coefficients if isinstance(k, str)), default=None)
    if free is not None:
        return free
    return min((k for k, c in row.coefficients.items() if isinstance(k, int) and c > 0), default=None)


def _pivot(basis: dict[_Key, BasicRow], leaving: _Key, entering: _Key) -> None:
    old = basis.pop(leaving)
    factor = old.coefficients.pop(entering)
    sign = 1 if factor > 0 else -1
    solved = {k: -sign * c for k, c in old.coefficients.items()}
    solved[leaving] = sign * old.scale
    new = BasicRow(abs(factor), solved, -sign * old.const)
    for row in basis.values():
        multiple = row.coefficients.pop(entering, 0)
        if multiple:
            _substitute(row, multiple, new)
    basis[entering] = new


def _substitute(row: BasicRow, multiple: int, new: BasicRow) -> None:
    """Add multiple * (the variable that `new` gives) to the row."""
    scaled = {k: c * new.scale for k, c in row.coefficients.items()}
    for k, c in new.coefficients.items():
        total = scaled.get(k, 0) + multiple * c
        if total:
            scaled[k] = total
        else:
            scaled.pop(k, None)
    scale, const = row.scale * new.scale, row.const * new.scale + multiple * new.const
    common = gcd(scale, const, *scaled.values())
    row.scale, row.const = scale // common, const // common
    row.coefficients = {k: c // common for k, c in scaled.items()} if common > 1 else scaled
