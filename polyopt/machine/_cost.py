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

from polyopt.errors import MachineFileError, nearest

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
        """Raise MachineFileError unless the formula is one and reads only `lanes`, `points` and `operands`."""
        try:
            tree = ast.parse(self.text, mode="eval")
        except SyntaxError as error:
            raise MachineFileError(
                f"{where}: cannot read the cost formula {self.text!r}",
                help="write it as a Python expression of lanes and numbers",
            ) from error
        _Checker(frozenset((*lanes, "points")), frozenset(operands), f"{where}: {self.text!r}").number(tree.body)

    def evaluate(self, lanes: Mapping[str, Number], operands: Mapping[str, OperandKind]) -> Number:
        """Cycles for lane extents (numbers or arrays) and operand kinds; a missing lane counts 1."""
        return _evaluate(ast.parse(self.text, mode="eval").body, lanes, operands)

    def bind(self, operands: Mapping[str, OperandKind]) -> Callable[[Mapping[str, Number]], Number]:
        """The formula with dtypes and memories fixed: a function of the lane extents."""
        body = ast.parse(self.text, mode="eval").body
        return lambda lanes: _evaluate(body, lanes, operands)


@dataclass(frozen=True, slots=True)
class _Checker:
    """Refuses what `_evaluate` and `_truth` would not read, in branches that are seldom taken too."""

    lanes: frozenset[str]
    operands: frozenset[str]
    where: str

    def number(self, node: ast.expr) -> None:
        if isinstance(node, ast.Name):
            if node.id not in self.lanes:
                raise MachineFileError(f"{self.where}: unknown name {node.id!r}{nearest(node.id, self.lanes)}")
        elif isinstance(node, ast.BinOp) and type(node.op) in _OPS:
            self.number(node.left)
            self.number(node.right)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("max", "min"):
            if node.keywords or not node.args:
                raise self.error(node)
            for a in node.args:
                self.number(a)
        elif isinstance(node, ast.IfExp):
            self.truth(node.test)
            self.number(node.body)
            self.number(node.orelse)
        elif not (isinstance(node, ast.Constant) and type(node.value) in (int, float)):
            raise self.error(node)

    def truth(self, node: ast.expr) -> None:
        if isinstance(node, ast.BoolOp):
            for v in node.values:
                self.truth(v)
            return
        if not isinstance(node, ast.Compare) or len(node.ops) != 1:
            raise self.error(node)
        self.property(node.left)
        right = node.comparators[0]
        single = isinstance(node.ops[0], (ast.Eq, ast.NotEq))
        texts = [right] if single else right.elts if isinstance(right, ast.Tuple) else []
        known = single or isinstance(node.ops[0], ast.In)
        if not known or not texts or not all(isinstance(t, ast.Constant) and isinstance(t.value, str) for t in texts):
            raise self.error(node)

    def property(self, node: ast.expr) -> None:
        if not isinstance(node, ast.Attribute) or not isinstance(node.value, ast.Name):
            raise self.error(node)
        if node.value.id not in self.operands:
            raise MachineFileError(
                f"{self.where}: unknown operand {node.value.id!r}{nearest(node.value.id, self.operands)}"
            )
        if node.attr not in ("dtype", "memory"):
            raise MachineFileError(
                f"{self.where}: operands have .dtype and .memory, not .{node.attr}",
                help="write operand.dtype or operand.memory",
            )

    def error(self, node: ast.expr) -> MachineFileError:
        return MachineFileError(
            f"{self.where}: cannot read {ast.unparse(node)!r}",
            help="a cost is + - * / // min max of lanes and numbers, or a choice by an operand's dtype or memory",
        )


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
    raise MachineFileError(
        f"cannot evaluate {ast.unparse(node)!r} in a cost formula",
        help="use numbers, lanes, operand.dtype, + - * / //, min, max, ceil and x if c else y",
    )


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
    raise MachineFileError(
        f"cannot evaluate the condition {ast.unparse(node)!r} in a cost formula",
        help="compare operand.dtype or operand.memory with a text",
    )
