"""Quasi-affine integer expressions as values: `3*i + floor((j + 1)/2) - min(N, 4)`.

One canonical form, a sum of integer multiples of atoms plus a constant, so that equal expressions are equal values.
Atoms are variable names, floor divisions by a positive constant, minima, maxima and affine selections.
`//` is floor and `%` is the non-negative remainder, as in Python.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from polyopt.errors import NotAffineError

__all__ = [
    "Affine",
    "AffineLike",
    "Constraint",
    "Extremum",
    "Floor",
    "Interval",
    "Select",
    "affine",
    "interval",
    "maximum",
    "minimum",
    "select",
    "simplify",
    "var",
]

Interval = tuple[int | None, int | None]
"""Inclusive bounds; None is unbounded."""


@dataclass(frozen=True, slots=True)
class Floor:
    """floor(arg / divisor), divisor >= 2."""

    arg: Affine
    divisor: int


@dataclass(frozen=True, slots=True)
class Extremum:
    """min or max of two or more expressions, in canonical order."""

    kind: str
    args: tuple[Affine, ...]


@dataclass(frozen=True, slots=True)
class Select:
    """`then` where every constraint holds, else `other`."""

    conditions: tuple[Constraint, ...]
    then: Affine
    other: Affine


Atom = str | Floor | Extremum | Select


def _key(atom: Atom) -> tuple[int, str]:
    return (0, atom) if isinstance(atom, str) else (1, repr(atom))


@dataclass(frozen=True, slots=True)
class Affine:
    """sum(coefficient * atom) + const; build with `affine`, `var` and the arithmetic operators."""

    terms: tuple[tuple[Atom, int], ...] = ()
    const: int = 0

    def __add__(self, other: AffineLike) -> Affine:
        other = affine(other)
        return _collect((*self.terms, *other.terms), self.const + other.const)

    __radd__ = __add__

    def __neg__(self) -> Affine:
        return self * -1

    def __sub__(self, other: AffineLike) -> Affine:
        return self + affine(other) * -1

    def __rsub__(self, other: AffineLike) -> Affine:
        return affine(other) - self

    def __mul__(self, factor: AffineLike) -> Affine:
        factor = affine(factor)
        if not factor.is_constant:
            if self.is_constant:
                return factor * self.const
            raise NotAffineError(
                f"the product ({self}) * ({factor}) of two unknowns is not affine", help="make one of them a constant"
            )
        return _collect(((a, c * factor.const) for a, c in self.terms), self.const * factor.const)

    __rmul__ = __mul__

    def __floordiv__(self, divisor: int) -> Affine:
        if divisor <= 0:
            raise NotAffineError(
                f"({self}) // {divisor}: the divisor must be a positive constant", help="divide by a positive constant"
            )
        whole = [(a, c // divisor) for a, c in self.terms if c % divisor == 0]
        rest = tuple((a, c) for a, c in self.terms if c % divisor)
        quotient = _collect(whole, self.const // divisor)
        if not rest:
            return quotient
        return quotient + _floor(Affine(rest, self.const % divisor), divisor)

    def __mod__(self, divisor: int) -> Affine:
        if divisor <= 0:
            raise NotAffineError(
                f"({self}) % {divisor}: the divisor must be a positive constant",
                help="take the remainder of a positive constant",
            )
        return self - (self // divisor) * divisor

    @property
    def is_constant(self) -> bool:
        return not self.terms

    def coefficient(self, name: str) -> int:
        """The multiple of variable `name` outside floors, minima and selections."""
        return next((c for a, c in self.terms if a == name), 0)

    def variables(self) -> frozenset[str]:
        """Every variable that occurs, inside floors too."""
        found: set[str] = set()
        for atom, _ in self.terms:
            found |= _atom_variables(atom)
        return frozenset(found)

    def is_linear(self) -> bool:
        """Whether only plain variables occur."""
        return all(isinstance(a, str) for a, _ in self.terms)

    def is_linear_in(self, names: Iterable[str]) -> bool:
        """Whether no name in `names` occurs inside a floor, minimum, maximum or selection."""
        wanted = frozenset(names)
        return not any(_atom_variables(a) & wanted for a, _ in self.terms if not isinstance(a, str))

    def substitute(self, values: Mapping[str, AffineLike]) -> Affine:
        """Replace variables by expressions, simultaneously."""
        total = Affine((), self.const)
        for atom, c in self.terms:
            total = total + _substitute_atom(atom, values) * c
        return total

    def evaluate(self, env: Mapping[str, int]) -> int:
        """The value at integers; KeyError on a variable that `env` lacks."""
        return self.const + sum(c * _evaluate_atom(a, env) for a, c in self.terms)

    def text(self) -> str:
        """Text of the set language; isl reads a selection only as a whole entry of a map's range, and none inside it.

        `python` gives what the grammar of subscripts and orders reads.
        """
        return _text(self, python=False)

    def python(self) -> str:
        """The expression in Python syntax."""
        return _text(self, python=True)

    def __str__(self) -> str:
        return self.text()


AffineLike = Affine | int | str


@dataclass(frozen=True, slots=True)
class Constraint:
    """`expr >= 0`, or `expr == 0` when `equality`."""

    expr: Affine
    equality: bool = False

    def substitute(self, values: Mapping[str, AffineLike]) -> Constraint:
        return Constraint(self.expr.substitute(values), self.equality)

    def holds(self, env: Mapping[str, int]) -> bool:
        value = self.expr.evaluate(env)
        return value == 0 if self.equality else value >= 0

    def text(self) -> str:
        return f"{self.expr.text()} {'=' if self.equality else '>='} 0"

    def python(self) -> str:
        return f"{self.expr.python()} {'==' if self.equality else '>='} 0"

    def __str__(self) -> str:
        return self.text()


def affine(value: AffineLike) -> Affine:
    """`value` as an Affine: an integer constant, a variable name, or itself.

    >>> str(affine("i") * 2 + 1)
    '2*i + 1'
    """
    if isinstance(value, Affine):
        return value
    if isinstance(value, str):
        return Affine(((value, 1),), 0)
    return Affine((), int(value))


def var(name: str) -> Affine:
    """The expression that is just the variable `name`."""
    return Affine(((name, 1),), 0)


def minimum(*args: AffineLike) -> Affine:
    """min(...), with equal and comparable arguments removed.

    >>> str(minimum("N", 4, 7))
    'min(4, N)'
    """
    return _extremum("min", args)


def maximum(*args: AffineLike) -> Affine:
    """max(...), with equal and comparable arguments removed."""
    return _extremum("max", args)


def select(conditions: Iterable[Constraint], then: AffineLike, other: AffineLike) -> Affine:
    """`then if all(conditions) else other`, decided at once when the conditions are constants."""
    kept: list[Constraint] = []
    for c in conditions:
        if not c.expr.is_constant:
            kept.append(c)
        elif not c.holds({}):
            return affine(other)
    if not kept or affine(then) == affine(other):
        return affine(then)
    return Affine(((Select(tuple(kept), affine(then), affine(other)), 1),), 0)


def interval(expr: Affine, ranges: Mapping[str, Interval]) -> Interval:
    """Inclusive bounds of `expr` when each variable lies in its range (sound, not always tight)."""
    low: int | None = expr.const
    high: int | None = expr.const
    for atom, c in expr.terms:
        a, b = _atom_interval(atom, ranges)
        if c < 0:
            a, b = b, a
        low = None if low is None or a is None else low + c * a
        high = None if high is None or b is None else high + c * b
    return low, high


def simplify(expr: Affine, ranges: Mapping[str, Interval]) -> Affine:
    """Drop floors, minima and maxima that the ranges decide: `floor(c0/64)` is 0 when 0 <= c0 < 64.

    >>> str(simplify((var("a") * 64 + "b") // 64, {"a": (0, 3), "b": (0, 63)}))
    'a'
    """
    total = affine(expr.const)
    for atom, c in expr.terms:
        total = total + _simplify_atom(atom, ranges) * c
    return total


def _collect(terms: Iterable[tuple[Atom, int]], const: int) -> Affine:
    total: dict[Atom, int] = {}
    for atom, c in terms:
        total[atom] = total.get(atom, 0) + c
    kept = sorted(((a, c) for a, c in total.items() if c), key=lambda t: _key(t[0]))
    return Affine(tuple(kept), const)


def _floor(arg: Affine, divisor: int) -> Affine:
    if len(arg.terms) == 1:  # floor((floor(x/a) + c)/b) = floor((x + a*c)/(a*b))
        atom, c = arg.terms[0]
        if isinstance(atom, Floor) and c == 1:
            return (atom.arg + arg.const * atom.divisor) // (atom.divisor * divisor)
    return Affine(((Floor(arg, divisor), 1),), 0)


def _extremum(kind: str, args: Iterable[AffineLike]) -> Affine:
    kept: list[Affine] = []
    for candidate in _flatten(kind, [affine(a) for a in args]):
        for k, other in enumerate(kept):
            difference = candidate - other
            if difference.is_constant:
                if (difference.const < 0) == (kind == "min"):
                    kept[k] = candidate
                break
        else:
            kept.append(candidate)
    if len(kept) == 1:
        return kept[0]
    return Affine(((Extremum(kind, tuple(sorted(set(kept), key=lambda e: (len(e.terms), repr(e))))), 1),), 0)


def _flatten(kind: str, args: list[Affine]) -> list[Affine]:
    flat: list[Affine] = []
    for a in args:
        if len(a.terms) == 1 and a.terms[0][1] == 1:
            atom = a.terms[0][0]
            if isinstance(atom, Extremum) and atom.kind == kind:
                flat += [x + a.const for x in atom.args]
                continue
        flat.append(a)
    return flat


def _atom_variables(atom: Atom) -> frozenset[str]:
    if isinstance(atom, str):
        return frozenset((atom,))
    if isinstance(atom, Floor):
        return atom.arg.variables()
    if isinstance(atom, Extremum):
        return frozenset().union(*(a.variables() for a in atom.args))
    return frozenset().union(
        atom.then.variables(), atom.other.variables(), *(c.expr.variables() for c in atom.conditions)
    )


def _substitute_atom(atom: Atom, values: Mapping[str, AffineLike]) -> Affine:
    if isinstance(atom, str):
        return affine(values.get(atom, atom))
    if isinstance(atom, Floor):
        return atom.arg.substitute(values) // atom.divisor
    if isinstance(atom, Extremum):
        return _extremum(atom.kind, [a.substitute(values) for a in atom.args])
    conditions = [c.substitute(values) for c in atom.conditions]
    return select(conditions, atom.then.substitute(values), atom.other.substitute(values))


def _evaluate_atom(atom: Atom, env: Mapping[str, int]) -> int:
    if isinstance(atom, str):
        return env[atom]
    if isinstance(atom, Floor):
        return atom.arg.evaluate(env) // atom.divisor
    if isinstance(atom, Extremum):
        return (min if atom.kind == "min" else max)(a.evaluate(env) for a in atom.args)
    chosen = atom.then if all(c.holds(env) for c in atom.conditions) else atom.other
    return chosen.evaluate(env)


def _atom_interval(atom: Atom, ranges: Mapping[str, Interval]) -> Interval:
    if isinstance(atom, str):
        return ranges.get(atom, (None, None))
    if isinstance(atom, Floor):
        low, high = interval(atom.arg, ranges)
        return (None if low is None else low // atom.divisor, None if high is None else high // atom.divisor)
    if isinstance(atom, Select):
        return _union(interval(atom.then, ranges), interval(atom.other, ranges))
    bounds = [interval(a, ranges) for a in atom.args]
    lows = [b[0] for b in bounds if b[0] is not None]
    highs = [b[1] for b in bounds if b[1] is not None]
    if atom.kind == "min":
        return (min(lows) if len(lows) == len(bounds) else None, min(highs) if highs else None)
    return (max(lows) if lows else None, max(highs) if len(highs) == len(bounds) else None)


def _union(a: Interval, b: Interval) -> Interval:
    low = None if a[0] is None or b[0] is None else min(a[0], b[0])
    high = None if a[1] is None or b[1] is None else max(a[1], b[1])
    return low, high


def _simplify_atom(atom: Atom, ranges: Mapping[str, Interval]) -> Affine:
    if isinstance(atom, str):
        low, high = ranges.get(atom, (None, None))
        return affine(low) if low is not None and low == high else var(atom)
    if isinstance(atom, Floor):
        return _simplify_floor(simplify(atom.arg, ranges), atom.divisor, ranges)
    if isinstance(atom, Extremum):
        return _simplify_extremum(atom, ranges)
    kept = []
    for c in (c for c in atom.conditions):
        low, high = interval(c.expr, ranges)
        if c.equality or low is None or low < 0:
            if not c.equality and high is not None and high < 0:
                return simplify(atom.other, ranges)
            kept.append(Constraint(simplify(c.expr, ranges), c.equality))
    return select(kept, simplify(atom.then, ranges), simplify(atom.other, ranges))


def _simplify_floor(arg: Affine, divisor: int, ranges: Mapping[str, Interval]) -> Affine:
    whole = _collect(((a, c // divisor) for a, c in arg.terms if c % divisor == 0), arg.const // divisor)
    rest = Affine(tuple((a, c) for a, c in arg.terms if c % divisor), arg.const % divisor)
    low, high = interval(rest, ranges)
    if low is not None and high is not None and low // divisor == high // divisor:
        return whole + low // divisor
    return whole + rest // divisor


def _simplify_extremum(atom: Extremum, ranges: Mapping[str, Interval]) -> Affine:
    args = [simplify(a, ranges) for a in atom.args]
    kept = []
    for k, a in enumerate(args):
        dominated = False
        for m, b in enumerate(args):
            low, high = interval(a - b if atom.kind == "min" else b - a, ranges)
            if k != m and low is not None and low >= 0 and not (high == 0 and k < m):
                dominated = True
        if not dominated:
            kept.append(a)
    return _extremum(atom.kind, kept or args[:1])


def _text(expr: Affine, *, python: bool) -> str:
    parts: list[str] = []
    for atom, c in expr.terms:
        body = _atom_text(atom, python=python)
        sign = "-" if c < 0 else "+"
        scaled = body if abs(c) == 1 else f"{abs(c)}*{body}"
        parts.append(f" {sign} {scaled}" if parts else (scaled if c > 0 else f"-{scaled}"))
    if expr.const or not parts:
        sign = "-" if expr.const < 0 else "+"
        parts.append(f" {sign} {abs(expr.const)}" if parts else str(expr.const))
    return "".join(parts)


def _atom_text(atom: Atom, *, python: bool) -> str:
    if isinstance(atom, str):
        return atom
    if isinstance(atom, Floor):
        inner = _text(atom.arg, python=python)
        return f"(({inner})//{atom.divisor})" if python else f"floor(({inner})/{atom.divisor})"
    if isinstance(atom, Extremum):
        return f"{atom.kind}({', '.join(_text(a, python=python) for a in atom.args)})"
    then, other = _text(atom.then, python=python), _text(atom.other, python=python)
    if python:
        return f"({then} if {' and '.join(c.python() for c in atom.conditions)} else {other})"
    return f"({' and '.join(c.text() for c in atom.conditions)} ? ({then}) : ({other}))"
