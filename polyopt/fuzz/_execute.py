"""A program executed instance by instance on Python's integers: a second opinion on what it computes."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from polyopt.fuzz._enumerate import BITS, instances_at, is_whole
from polyopt.ir import Access, Apply, Const, Expr, Index, Read, Scop
from polyopt.sets import Affine

__all__ = ["InexactError", "execute"]

Array = npt.NDArray[Any]
Memory = dict[str, dict[tuple[int, ...], int]]

LARGEST_EXACT = 2**24
"""A float32 holds every integer up to here."""

LARGEST_WHOLE = 2**53
"""Integers up to here are exact on every way that they take."""

OPERATORS: Mapping[str, Callable[..., int]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "min": min,
    "max": max,
    "neg": operator.neg,
    "abs": abs,
    "relu": lambda x: max(x, 0),
    "<": lambda a, b: int(a < b),
    "<=": lambda a, b: int(a <= b),
    ">": lambda a, b: int(a > b),
    ">=": lambda a, b: int(a >= b),
    "==": lambda a, b: int(a == b),
    "!=": lambda a, b: int(a != b),
}


class InexactError(Exception):
    """A value that floats do not hold exactly: nothing can be compared bit for bit."""


def execute(scop: Scop, arrays: Mapping[str, Array], sizes: Mapping[str, int]) -> dict[str, Array]:
    """The tensors after the program, in the original order.  Raises InexactError when a number becomes too large."""
    memory: Memory = {
        name: {cell: int(values[cell]) for cell in itertools.product(*map(range, values.shape))}
        for name, values in arrays.items()
    }
    length = max((len(s.order) for s in scop.statements), default=0)
    events: list[tuple[tuple[int, ...], int, dict[str, int]]] = []
    for position, s in enumerate(scop.statements):
        for point in instances_at(scop, sizes)[s.name]:
            env = {**sizes, **dict(zip(s.iterators, point, strict=True))}
            vector = [e.evaluate(env) for e in s.order] + [0] * (length - len(s.order))
            events.append((tuple(vector), position, env))
    for _, position, env in sorted(events, key=lambda e: e[:2]):
        _step(scop, position, env, memory)
    return {name: _array(values.shape, memory[name], values.dtype) for name, values in arrays.items()}


def _step(scop: Scop, position: int, env: Mapping[str, int], memory: Memory) -> None:
    body = scop.statements[position].assign
    cell = _cell(body.target, env, memory)
    value = _value(body.value, env, memory)
    if body.combine is not None:
        value = OPERATORS[body.combine](memory[body.target.tensor][cell], value)
        if abs(value) > LARGEST_EXACT and not is_whole(body.value, scop):
            raise InexactError(f"{value} by a float")
    memory[body.target.tensor][cell] = _stored(value, scop.tensor(body.target.tensor).dtype)


def _cell(access: Access, env: Mapping[str, int], memory: Memory) -> tuple[int, ...]:
    found: list[int] = []
    for e in access.subscripts:
        if isinstance(e, Affine):
            found.append(e.evaluate(env))
        else:
            found.append(memory[e.access.tensor][_cell(e.access, env, memory)] + e.offset.evaluate(env))
    return tuple(found)


def _value(expr: Expr, env: Mapping[str, int], memory: Memory) -> int:
    if isinstance(expr, Const):
        return int(expr.value)
    if isinstance(expr, Index):
        return expr.value.evaluate(env)
    if isinstance(expr, Read):
        return memory[expr.access.tensor][_cell(expr.access, env, memory)]
    assert isinstance(expr, Apply)
    if expr.op == "select":
        return _value(expr.args[1 if _value(expr.args[0], env, memory) else 2], env, memory)
    result = OPERATORS[expr.op](*(_value(a, env, memory) for a in expr.args))
    if abs(result) > LARGEST_EXACT:
        raise InexactError(f"{result} on the way")
    return result


def _stored(value: int, dtype: str) -> int:
    """Integers wrap to their type when they are stored."""
    bits = BITS.get(dtype, 8 if dtype == "uint8" else 0)
    if not bits:
        if abs(value) > LARGEST_EXACT:
            raise InexactError(f"{value} in {dtype}")
        return value
    if abs(value) > LARGEST_WHOLE:
        raise InexactError(f"{value} into {dtype}")
    low = 0 if dtype == "uint8" else -(1 << bits - 1)
    return (value - low) % (1 << bits) + low


def _array(shape: tuple[int, ...], cells: Mapping[tuple[int, ...], int], dtype: Any) -> Array:
    values = np.zeros(shape, dtype)
    for cell, value in cells.items():
        values[cell] = value
    return values
