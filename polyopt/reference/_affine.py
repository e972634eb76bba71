"""Quasi-affine expressions as Python functions of an environment, and over whole index arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt

from polyopt.sets import Affine, Constraint, Extremum, Floor, Select

__all__ = ["Env", "IntArray", "affine_array", "compile_affine", "compile_constraint", "constraint_array"]

Env = Mapping[str, int]
IntArray = npt.NDArray[np.int64]
Atom = str | Floor | Extremum | Select


def compile_affine(expr: Affine) -> Callable[[Env], int]:
    """A function of the environment with the value of `expr.evaluate`, but faster."""
    const = expr.const
    parts = [(_compile_atom(a), c) for a, c in expr.terms]
    if not parts:
        return lambda env: const
    if len(parts) == 1:
        (first, c) = parts[0]
        atom = expr.terms[0][0]
        if isinstance(atom, str):
            return _variable(atom, c, const)
        return lambda env: c * first(env) + const
    if len(parts) == 2:
        (f, a), (g, b) = parts
        return lambda env: a * f(env) + b * g(env) + const
    return lambda env: const + sum(c * f(env) for f, c in parts)


def _variable(name: str, c: int, const: int) -> Callable[[Env], int]:
    if c == 1 and const == 0:
        return lambda env: env[name]
    if c == 1:
        return lambda env: env[name] + const
    return lambda env: c * env[name] + const


def _compile_atom(atom: Atom) -> Callable[[Env], int]:
    if isinstance(atom, str):
        return lambda env: env[atom]
    if isinstance(atom, Floor):
        arg, divisor = compile_affine(atom.arg), atom.divisor
        return lambda env: arg(env) // divisor
    if isinstance(atom, Extremum):
        args, choose = [compile_affine(a) for a in atom.args], min if atom.kind == "min" else max
        return lambda env: choose(f(env) for f in args)
    tests = [compile_constraint(c) for c in atom.conditions]
    then, other = compile_affine(atom.then), compile_affine(atom.other)
    return lambda env: then(env) if all(t(env) for t in tests) else other(env)


def compile_constraint(constraint: Constraint) -> Callable[[Env], bool]:
    """A function that says whether the constraint holds."""
    value = compile_affine(constraint.expr)
    if constraint.equality:
        return lambda env: value(env) == 0
    return lambda env: value(env) >= 0


def affine_array(expr: Affine, env: Mapping[str, Any]) -> Any:
    """The value where names are integers or int64 arrays that broadcast against each other."""
    total: Any = expr.const
    for atom, c in expr.terms:
        total = total + c * _atom_array(atom, env)
    return total


def _atom_array(atom: Atom, env: Mapping[str, Any]) -> Any:
    if isinstance(atom, str):
        return env[atom]
    if isinstance(atom, Floor):
        return affine_array(atom.arg, env) // atom.divisor
    if isinstance(atom, Extremum):
        return reduce(np.minimum if atom.kind == "min" else np.maximum, [affine_array(a, env) for a in atom.args])
    holds = reduce(np.logical_and, [constraint_array(c, env) for c in atom.conditions])
    return np.where(holds, affine_array(atom.then, env), affine_array(atom.other, env))


def constraint_array(constraint: Constraint, env: Mapping[str, Any]) -> Any:
    """Where the constraint holds."""
    value = affine_array(constraint.expr, env)
    return value == 0 if constraint.equality else value >= 0
