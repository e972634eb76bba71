"""Affine expressions as Python source, over numpy grids, and their bounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from polyopt.sets import Affine, Constraint, Extremum, Floor, Interval, Select, interval

__all__ = ["condition_source", "grid_holds", "grid_value", "is_within", "source", "upper_bound"]

MAX_CASES = 64
"""Minima, maxima and selections are split into at most this many cases before plain intervals take over."""


def source(expr: Affine, names: Mapping[str, str]) -> str:
    """Python text of `expr` with every variable replaced by `names[variable]`; KeyError for an unknown variable."""
    parts = [_term_source(atom, c, names) for atom, c in expr.terms]
    if expr.const or not parts:
        parts.append(f"({expr.const})" if expr.const < 0 else str(expr.const))
    return parts[0] if len(parts) == 1 else f"({' + '.join(parts)})"


def _term_source(atom: Any, factor: int, names: Mapping[str, str]) -> str:
    if isinstance(atom, str):
        text = names[atom]
    elif isinstance(atom, Floor):
        text = f"({source(atom.arg, names)} // {atom.divisor})"
    elif isinstance(atom, Extremum):
        text = f"{atom.kind}({', '.join(source(a, names) for a in atom.args)})"
    else:
        holds = " and ".join(condition_source(c, names) for c in atom.conditions)
        text = f"({source(atom.then, names)} if {holds} else {source(atom.other, names)})"
    return text if factor == 1 else f"({factor}) * {text}"


def condition_source(condition: Constraint, names: Mapping[str, str]) -> str:
    """Python text of a constraint."""
    return f"{source(condition.expr, names)} {'==' if condition.equality else '>='} 0"


def grid_value(expr: Affine, env: Mapping[str, Any]) -> Any:
    """The value when variables are integers or numpy arrays of integers that broadcast."""
    total: Any = expr.const
    for atom, c in expr.terms:
        total = total + c * _grid_atom(atom, env)
    return total


def _grid_atom(atom: Any, env: Mapping[str, Any]) -> Any:
    if isinstance(atom, str):
        return env[atom]
    if isinstance(atom, Floor):
        return grid_value(atom.arg, env) // atom.divisor
    if isinstance(atom, Extremum):
        fold = np.minimum if atom.kind == "min" else np.maximum
        result = grid_value(atom.args[0], env)
        for a in atom.args[1:]:
            result = fold(result, grid_value(a, env))
        return result
    return np.where(grid_holds(atom.conditions, env), grid_value(atom.then, env), grid_value(atom.other, env))


def grid_holds(conditions: Sequence[Constraint], env: Mapping[str, Any]) -> Any:
    """Where all constraints hold (True when there are none)."""
    result: Any = True
    for c in conditions:
        value = grid_value(c.expr, env)
        result = result & ((value == 0) if c.equality else (value >= 0))
    return result


def upper_bound(expr: Affine, ranges: Mapping[str, Interval], cases: int = MAX_CASES) -> int | None:
    """An upper bound of `expr` over the ranges, None when there is none.

    Minima and maxima are moved outwards first: `128*i + min(128, N - 128*i)` is bounded by N.
    """
    for atom, c in expr.terms:
        if isinstance(atom, (Extremum, Select)):
            options = atom.args if isinstance(atom, Extremum) else (atom.then, atom.other)
            if cases < len(options):
                break
            rest = expr - Affine(((atom, c),))
            bounds = [upper_bound(rest + o * c, ranges, cases // len(options)) for o in options]
            known = [b for b in bounds if b is not None]
            if isinstance(atom, Extremum) and (atom.kind == "min") == (c > 0):
                return min(known) if known else None
            return max(known) if len(known) == len(bounds) else None
    return interval(expr, ranges)[1]


def is_within(low: Affine, high: Affine, extent: int, ranges: Mapping[str, Interval]) -> bool:
    """Whether 0 <= low and high < extent is certain."""
    most, least = upper_bound(high, ranges), upper_bound(-low, ranges)
    return most is not None and most < extent and least is not None and least <= 0
