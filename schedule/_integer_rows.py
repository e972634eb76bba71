"""Linear constraints over the integers, kept short: equalities eliminated, coefficients without common divisors.

Every row remembers of which given rows it is a combination, so that whatever is derived can be shown.  Equalities are
solved by unimodular changes of variables, inequalities are divided and rounded (idea: Pugh, "The Omega Test", 1991).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import gcd, lcm

from polyopt.schedule._farkas import BasicRow, Contradiction, solve_inequalities

__all__ = ["Cuts", "Form", "IntegerRows", "Point", "Sum"]

Form = Mapping[str, int]
"""variable -> coefficient; the constant's name is empty."""

Sum = dict[int, int]
"""number of a row -> its multiplier."""


@dataclass(frozen=True, slots=True)
class _Derived:
    """scale * (coefficients + const) is the sum of given rows, identically in the given variables."""

    coefficients: Mapping[str, int]
    const: int
    scale: int
    sum: Sum

    def plus(self, factor: int, other: _Derived) -> _Derived:
        """self + factor * other, factor >= 0."""
        if not factor:
            return self
        total = dict(self.coefficients)
        _add(total, factor, other.coefficients)
        scale = lcm(self.scale, other.scale)
        made: Sum = {k: m * (scale // self.scale) for k, m in self.sum.items()}
        for k, m in other.sum.items():
            made[k] = made.get(k, 0) + m * factor * (scale // other.scale)
        return _reduced(total, self.const + factor * other.const, scale, {k: m for k, m in made.items() if m})

    def divided(self, divisor: int) -> _Derived:
        """The same with a common divisor of coefficients and constant taken out."""
        coefficients = {v: c // divisor for v, c in self.coefficients.items()}
        return _reduced(coefficients, self.const // divisor, self.scale * divisor, self.sum)


def _reduced(coefficients: Mapping[str, int], const: int, scale: int, made: Sum) -> _Derived:
    common = gcd(scale, *made.values())
    if common > 1:
        scale, made = scale // common, {k: m // common for k, m in made.items()}
    return _Derived(coefficients, const, scale, made)


def _add(total: dict[str, int], factor: int, other: Mapping[str, int]) -> None:
    for v, c in other.items():
        value = total.get(v, 0) + factor * c
        if value:
            total[v] = value
        else:
            total.pop(v, None)


_Equality = tuple[_Derived, _Derived]
"""A row that is 0, and its negative."""


@dataclass(frozen=True, slots=True)
class _Eliminate:
    """Replace a variable, whose coefficient in the equality is 1 or -1."""

    variable: str
    equality: _Equality

    def apply(self, row: _Derived) -> _Derived:
        c = row.coefficients.get(self.variable, 0)
        factor = -c * self.equality[0].coefficients[self.variable]
        return row.plus(abs(factor), self.equality[0 if factor > 0 else 1]) if c else row


@dataclass(frozen=True, slots=True)
class _Shear:
    """The variable now stands for itself + sum of multiples of others."""

    variable: str
    multiples: Mapping[str, int]

    def apply(self, row: _Derived) -> _Derived:
        c = row.coefficients.get(self.variable, 0)
        if not c:
            return row
        total = dict(row.coefficients)
        _add(total, -c, self.multiples)
        return _Derived(total, row.const, row.scale, row.sum)


@dataclass(slots=True)
class Cuts:
    """Numbers for rows, and the rows that are cuts: number -> (sum of earlier rows, what divides it)."""

    next_number: int = 0
    made: dict[int, tuple[Sum, int]] = field(default_factory=dict)

    def number(self) -> int:
        self.next_number += 1
        return self.next_number - 1

    def cut(self, row: _Derived, divisor: int) -> _Derived:
        """The row divided and rounded down."""
        number = self.number()
        self.made[number] = (row.sum, row.scale * divisor)
        coefficients = {v: c // divisor for v, c in row.coefficients.items()}
        return _Derived(coefficients, row.const // divisor, 1, {number: 1})


@dataclass(frozen=True, slots=True)
class Point:
    """A rational solution.  fractional: for each variable that is, its form in the given variables, its value rounded
    down, and its row in the tableau of `rows`.
    """

    fractional: tuple[tuple[Form, int, BasicRow], ...]
    rows: tuple[_Derived, ...]


@dataclass(slots=True)
class IntegerRows:
    """A conjunction; `add` and `solve` give a sum of rows that is a negative constant when they find one."""

    cuts: Cuts
    _changes: list[_Eliminate | _Shear] = field(default_factory=list)
    _meaning: dict[str, dict[str, int]] = field(default_factory=dict)
    _kept: dict[tuple[tuple[str, int], ...], _Derived] = field(default_factory=dict)

    def copy(self) -> IntegerRows:
        return IntegerRows(self.cuts, list(self._changes), dict(self._meaning), dict(self._kept))

    def add(self, rows: Iterable[tuple[int, Form, bool]]) -> Sum | None:
        """rows: number, form, and whether it is 0 (else at least 0)."""
        equalities: list[_Equality] = []
        loose: list[_Derived] = []
        for number, form, is_equality in rows:
            row = self._changed(form, number, 1)
            if is_equality:
                equalities.append((row, self._changed(form, number, -1)))
            else:
                loose.append(row)
        return self._settle(equalities, loose)

    def _settle(self, equalities: list[_Equality], loose: list[_Derived]) -> Sum | None:
        while equalities or loose:
            found = self._solve_one(equalities, loose) if equalities else self._keep(loose.pop(), equalities)
            if found is not None:
                return found
        return None

    def tighten(self, point: Point) -> Sum | None:
        """Add the cuts that take away a fractional point (Gomory's, rounding up and down)."""
        made = [c for _, _, row in point.fractional for sign in (1, -1) for c in _gomory_cut(row, sign, point.rows)]
        return self._settle([], made)

    def solve(self) -> Sum | Point:
        """Over the rationals."""
        rows = tuple(self._kept.values())
        answer = solve_inequalities([(r.coefficients, r.const) for r in rows])
        if isinstance(answer, Contradiction):
            scale = lcm(*(rows[k].scale for k in answer.multipliers))
            total: Sum = {}
            for k, m in answer.multipliers.items():
                for number, c in rows[k].sum.items():
                    total[number] = total.get(number, 0) + c * m * (scale // rows[k].scale)
            return _shortest(total)
        fractional = ((v, row) for v, row in answer.basic.items() if row.const % row.scale)
        return Point(tuple((self._form(v), row.const // row.scale, row) for v, row in fractional), rows)

    def _form(self, variable: str) -> dict[str, int]:
        return self._meaning.get(variable, {variable: 1})

    def _changed(self, form: Form, number: int, sign: int) -> _Derived:
        """A given row in the present variables."""
        row = _Derived({v: sign * c for v, c in form.items() if v}, sign * form.get("", 0), 1, {number: sign})
        for change in self._changes:
            row = change.apply(row)
        return row

    def _solve_one(self, equalities: list[_Equality], loose: list[_Derived]) -> Sum | None:
        """Use up one equality, or bring it nearer to a coefficient 1."""
        row, negative = equalities.pop()
        if not row.coefficients:
            return None if not row.const else _shortest((row if row.const < 0 else negative).sum)
        common = gcd(*row.coefficients.values())
        if row.const % common:
            low, high = self.cuts.cut(row, common), self.cuts.cut(negative, common)
            return {**low.sum, **high.sum}
        row, negative = row.divided(common), negative.divided(common)
        units = [v for v, c in row.coefficients.items() if abs(c) == 1]
        if units:
            change: _Eliminate | _Shear = _Eliminate(self._rarest(units), (row, negative))
        else:
            equalities.append((row, negative))
            change = self._shear(row)
        self._changes.append(change)
        equalities[:] = [(change.apply(r), change.apply(n)) for r, n in equalities]
        loose[:] = [change.apply(r) for r in loose]
        for key in [k for k, r in self._kept.items() if change.variable in r.coefficients]:
            loose.append(change.apply(self._kept.pop(key)))
        return None

    def _rarest(self, variables: list[str]) -> str:
        count = {v: sum(v in r.coefficients for r in self._kept.values()) for v in variables}
        return min(variables, key=lambda v: (count[v], v))

    def _shear(self, row: _Derived) -> _Shear:
        variable = min(row.coefficients, key=lambda v: (abs(row.coefficients[v]), v))
        c = row.coefficients[variable]
        multiples = {v: a // c for v, a in row.coefficients.items() if v != variable and a // c}
        meaning = dict(self._form(variable))
        for v, m in multiples.items():
            _add(meaning, m, self._form(v))
        self._meaning[variable] = meaning
        return _Shear(variable, multiples)

    def _keep(self, row: _Derived, equalities: list[_Equality]) -> Sum | None:
        """Take in an inequality; opposite ones are an equality or a contradiction."""
        if not row.coefficients:
            return _shortest(row.sum) if row.const < 0 else None
        common = gcd(*row.coefficients.values())
        if common > 1:
            row = self.cuts.cut(row, common) if row.const % common else row.divided(common)
        key = tuple(sorted(row.coefficients.items()))
        known = self._kept.get(key)
        if known is not None and known.const <= row.const:
            return None
        self._kept[key] = row
        opposite = tuple((v, -c) for v, c in key)
        other = self._kept.get(opposite)
        if other is None or row.const + other.const > 0:
            return None
        if row.const + other.const < 0:
            return _shortest(row.plus(1, other).sum)
        del self._kept[key], self._kept[opposite]
        equalities.append((row, other))
        return None


def _gomory_cut(row: BasicRow, sign: int, rows: Sequence[_Derived]) -> Iterator[_Derived]:
    """A sum of rows whose coefficients, but not its constant, are multiples of `row.scale`.

    From x = c + sum a_j s_j with slacks s_j >= 0 comes sum (ceil(a_j) - a_j) s_j >= 0, the same with floors and signs
    for -x; none where x depends on a variable that is no slack by a fraction.
    """
    total = _Derived({}, 0, 1, {})
    for key, c in row.coefficients.items():
        missing = -sign * c % row.scale
        if isinstance(key, int):
            total = total.plus(missing, rows[key])
        elif missing:
            return
    yield total


def _shortest(total: Sum) -> Sum:
    common = gcd(*total.values())
    return {k: m // common for k, m in sorted(total.items()) if m}
