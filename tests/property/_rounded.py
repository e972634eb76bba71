"""Runs a program instance by instance in float32 arithmetic and with the tensors' own types, as a machine would.

Shares with the reference only the original order of the instances.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from polyopt.ir import Access, Apply, Assign, Cast, Const, Expr, Index, Read, Scop, Statement, Tensor, dtype
from polyopt.reference._interpret import instances_in_order
from polyopt.sets import Affine

Array = npt.NDArray[Any]
f32, f64 = np.float32, np.float64


def _one(x: Any) -> Any:
    return type(x)(1)


_UNARY: dict[str, Callable[[Any], Any]] = {
    "neg": lambda x: -x,
    "abs": abs,
    "relu": lambda x: np.maximum(x, type(x)(0)),
    "floor": np.floor,
    "exp": np.exp,
    "log": np.log,
    "sin": np.sin,
    "cos": np.cos,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: _one(x) / np.sqrt(x),
    "tanh": np.tanh,
    "sigmoid": lambda x: _one(x) / (_one(x) + np.exp(-x)),
    "silu": lambda x: x * (_one(x) / (_one(x) + np.exp(-x))),
    "erf": lambda x: type(x)(math.erf(x)),
    "gelu": lambda x: type(x)(0.5) * x * (_one(x) + type(x)(math.erf(x / type(x)(math.sqrt(2.0))))),
    "gelu_tanh": lambda x: (
        type(x)(0.5) * x * (_one(x) + np.tanh(type(x)(math.sqrt(2 / math.pi)) * (x + type(x)(0.044715) * x * x * x)))
    ),
}
_BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
    "**": lambda a, b: a**b,
    "min": np.minimum,
    "max": np.maximum,
    "<": lambda a, b: bool(a < b),
    "<=": lambda a, b: bool(a <= b),
    "==": lambda a, b: bool(a == b),
    "!=": lambda a, b: bool(a != b),
}


class RoundedRun:
    """Floats are float32 scalars (float64 beside float64), integers Python integers.

    A tensor combined into under `reassociate` is accumulated in float32 and rounded when something else reads it.
    """

    def __init__(self, scop: Scop, inputs: Mapping[str, Array], sizes: Mapping[str, int]) -> None:
        self.scop, self.sizes = scop, dict(sizes)
        self.tensors = scop.tensor_map()
        self.arrays: dict[str, Array] = {}
        combined = {s.assign.target.tensor for s in scop.statements if s.assign.combine}
        self.lazy = {n for n in combined if scop.reassociate and self.is_float(n)}
        for t in scop.tensors:
            held = f64 if t.dtype == "float64" else f32 if t.name in self.lazy else t.element.numpy
            given = inputs.get(t.name, np.zeros(t.sizes(sizes)))
            self.arrays[t.name] = np.asarray(given).astype(t.element.numpy).astype(held)

    def is_float(self, name: str) -> bool:
        return self.tensors[name].element.is_float

    def run(self) -> dict[str, Array]:
        with np.errstate(all="ignore"):
            for position, point in instances_in_order(self.scop, self.sizes):
                s = self.scop.statements[position]
                self.step(s, s.assign, {**self.sizes, **dict(zip(s.iterators, point, strict=True))})
            return {
                t.name: self.arrays[t.name].astype(t.element.numpy)
                for t in self.scop.tensors
                if t.role in ("output", "inout")
            }

    def step(self, s: Statement, assign: Assign, env: Mapping[str, int]) -> None:
        name = assign.target.tensor
        value = self.value(assign.value, env)
        cell = self.cell(assign.target, env)
        if assign.combine:
            value = self.apply(assign.combine, [self.load(name, cell, own=True), value])
        self.arrays[name][cell] = self.convert(value, self.tensors[name], own=bool(assign.combine))

    def convert(self, value: Any, tensor: Tensor, *, own: bool) -> Any:
        element = tensor.element
        if element.is_float:
            wide = f64(value) if isinstance(value, (int, float)) and not isinstance(value, f32) else value
            if tensor.name in self.lazy and own:
                return f32(wide) if tensor.dtype != "float64" else f64(wide)
            return np.asarray(wide).astype(element.numpy)
        if element.name == "bool":
            return bool(value != 0)
        return np.asarray(self.whole(value)).astype(element.numpy)

    @staticmethod
    def whole(value: Any) -> int:
        number = value if isinstance(value, int) else (int(value) if math.isfinite(value) else 0)
        return (number + 2**63) % 2**64 - 2**63

    def load(self, name: str, cell: tuple[int, ...], *, own: bool = False) -> Any:
        element = self.tensors[name].element
        held = self.arrays[name][cell]
        if not element.is_float:
            return bool(held) if element.name == "bool" else int(held)
        if name in self.lazy and not own:
            held = np.asarray(held).astype(element.numpy)[()]
        return f64(held) if element.name == "float64" else f32(held)

    def cell(self, access: Access, env: Mapping[str, int]) -> tuple[int, ...]:
        return tuple(
            s.evaluate(env)
            if isinstance(s, Affine)
            else int(self.load(s.access.tensor, self.cell(s.access, env))) + s.offset.evaluate(env)
            for s in access.subscripts
        )

    def value(self, expr: Expr, env: Mapping[str, int]) -> Any:
        if isinstance(expr, Const):
            return expr.value
        if isinstance(expr, Index):
            return expr.value.evaluate(env)
        if isinstance(expr, Read):
            return self.load(expr.access.tensor, self.cell(expr.access, env))
        if isinstance(expr, Cast):
            return self.cast(self.value(expr.arg, env), expr.dtype)
        assert isinstance(expr, Apply)
        if expr.op == "select":
            chosen = self.value(expr.args[1 if self.value(expr.args[0], env) else 2], env)
            return f64(chosen) if self.is_double(expr) else chosen
        if expr.op in ("and", "or"):
            first = bool(self.value(expr.args[0], env))
            return first if first == (expr.op == "or") else bool(self.value(expr.args[1], env))
        return self.apply(expr.op, [self.value(a, env) for a in expr.args])

    def is_double(self, expr: Expr) -> bool:
        """Whether the type of a value is float64, whichever branch of a selection is taken."""
        if isinstance(expr, Read):
            return self.tensors[expr.access.tensor].dtype == "float64"
        if isinstance(expr, Cast):
            return expr.dtype == "float64"
        if not isinstance(expr, Apply) or expr.op in ("<", "<=", "==", "!=", "and", "or", "not"):
            return False
        return any(self.is_double(a) for a in expr.args[expr.op == "select" :])

    def cast(self, value: Any, name: str) -> Any:
        element = dtype(name)
        if not element.is_float:
            return bool(value != 0) if name == "bool" else int(np.asarray(self.whole(value)).astype(element.numpy))
        rounded = np.asarray(f64(value)).astype(element.numpy)[()]
        return f64(rounded) if name == "float64" else f32(rounded)

    def apply(self, op: str, args: list[Any]) -> Any:
        if op == "not":
            return not args[0]
        whole_too = op not in ("/", "**") and (op in _BINARY or op in ("neg", "abs", "relu", "floor"))
        if not whole_too or any(isinstance(a, (f32, float)) for a in args):
            kind = f64 if any(isinstance(a, f64) for a in args) else f32
            args = [kind(a) for a in args]
            return _UNARY[op](args[0]) if len(args) == 1 else _BINARY[op](*args)
        whole = [int(a) for a in args]
        if op in ("relu", "floor"):
            return max(whole[0], 0) if op == "relu" else whole[0]
        result = {"min": min, "max": max}[op](*whole) if op in ("min", "max") else None
        if result is None:
            result = _UNARY[op](whole[0]) if len(whole) == 1 else _BINARY[op](*whole)
        return result if isinstance(result, bool) else (result + 2**63) % 2**64 - 2**63
