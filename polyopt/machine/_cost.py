"""Cost formulas of machine files: arithmetic on lane extents and on operand dtypes and memories, never evaluated as
code.

`max(min(64, m), n) * (4 if W.dtype == 'float32' else 1)`: names are lanes (products of the instruction's lane extents
of that role), `X.dtype` and `X.memory` describe operands, `points` is the product of all lanes.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from polyopt.errors import MachineFileError

__all__ = ["CostFormula", "OperandKind"]

Number = Any
"""An int, a float or a numpy array: formulas are evaluated over whole grids of tile sizes at once."""


@dataclass(frozen=True, slots=True)
class OperandKind:
    """What a formula may ask about an operand."""

    dtype: str
    memory: str


_OPS: dict[type[ast.operator], Callable[[Number, Number], Number]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
}


@dataclass(frozen=True, slots=True)
class CostFormula:
    """A parsed formula; equal texts are equal formulas."""

    text: str

    def check(self, lanes: tuple[str, ...], operands: tuple[str, ...], where: str) -> None:
        """Raise MachineFileError unless the formula reads only `lanes`, `points` and `operands`."""
        try:
            tree = ast.parse(self.text, mode="eval")
        except SyntaxError as error:
            raise MachineFileError(f"{where}: cannot read the cost formula {self.text!r}") from error
        allowed = {*lanes, *operands, "points", "max", "min"}
        for node in ast.walk(tree):
            if isinstance(node, ast.Name) and node.id not in allowed:
                raise MachineFileError(f"{where}: unknown name {node.id!r} in {self.text!r}; known: {sorted(allowed)}")
            if isinstance(node, ast.Attribute) and node.attr not in ("dtype", "memory"):
                raise MachineFileError(f"{where}: operands have .dtype and .memory, not .{node.attr}")

    def evaluate(self, lanes: Mapping[str, Number], operands: Mapping[str, OperandKind]) -> Number:
        """Cycles for lane extents (numbers or arrays) and operand kinds; a missing lane counts 1."""
        return _evaluate(ast.parse(self.text, mode="eval").body, lanes, operands)

    def bind(self, operands: Mapping[str, OperandKind]) -> Callable[[Mapping[str, Number]], Number]:
        """The formula with dtypes and memories fixed: a function of the lane extents."""
        body = ast.parse(self.text, mode="eval").body
        return lambda lanes: _evaluate(body, lanes, operands)


def _evaluate(node: ast.expr, lanes: Mapping[str, Number], operands: Mapping[str, OperandKind]) -> Number:
    if isinstance(node, ast.Constant) and isinstance(node.value, (int, float, str)):
        return node.value
    if isinstance(node, ast.Name):
        if node.id == "points":
            total: Number = 1
            for extent in lanes.values():
                total = total * extent
            return total
        return lanes.get(node.id, 1)
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        kind = operands.get(node.value.id)
        return getattr(kind, node.attr) if kind else ""
    if isinstance(node, ast.BinOp) and type(node.op) in _OPS:
        return _OPS[type(node.op)](_evaluate(node.left, lanes, operands), _evaluate(node.right, lanes, operands))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("max", "min"):
        values = [_evaluate(a, lanes, operands) for a in node.args]
        if any(isinstance(v, np.ndarray) for v in values):
            fold = np.maximum if node.func.id == "max" else np.minimum
            result: Number = values[0]
            for v in values[1:]:
                result = fold(result, v)
            return result
        return max(values) if node.func.id == "max" else min(values)
    if isinstance(node, ast.IfExp):
        return _evaluate(node.body if _truth(node.test, lanes, operands) else node.orelse, lanes, operands)
    raise MachineFileError(f"cannot evaluate {ast.unparse(node)!r} in a cost formula")


def _truth(node: ast.expr, lanes: Mapping[str, Number], operands: Mapping[str, OperandKind]) -> bool:
    if isinstance(node, ast.BoolOp):
        values = (_truth(v, lanes, operands) for v in node.values)
        return all(values) if isinstance(node.op, ast.And) else any(values)
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        left = _evaluate(node.left, lanes, operands)
        right = node.comparators[0]
        if isinstance(node.ops[0], ast.In) and isinstance(right, ast.Tuple):
            return left in [_evaluate(e, lanes, operands) for e in right.elts]
        value = _evaluate(right, lanes, operands)
        if isinstance(node.ops[0], ast.Eq):
            return bool(left == value)
        if isinstance(node.ops[0], ast.NotEq):
            return bool(left != value)
    raise MachineFileError(f"cannot evaluate the condition {ast.unparse(node)!r} in a cost formula")
