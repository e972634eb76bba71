"""Parsed Python assignments -> `Assign`; never executed."""

from __future__ import annotations

import ast

from polyopt.errors import InputError, UnsupportedError
from polyopt.frontend._expressions import parse_access, parse_value
from polyopt.frontend._names import Names, show
from polyopt.ir import Access, Apply, Assign, Expr, Read

__all__ = ["find_access", "parse_assignment", "with_reduction"]

COMBINING: dict[type[ast.operator], str] = {ast.Add: "+", ast.Mult: "*"}


def parse_assignment(node: ast.stmt, names: Names) -> Assign:
    """`A[i] = e`, `A[i] += e` or `A[i] *= e`.  `x = max(x, e)` and `x = min(x, e)` become combinations."""
    if isinstance(node, ast.Assign):
        if len(node.targets) != 1:
            raise UnsupportedError(
                f"two targets in {show(node)}", help="write one assignment for each", where=names.locate(node)
            )
        return with_reduction(_target(node.targets[0], names), parse_value(node.value, names))
    if isinstance(node, ast.AugAssign):
        combine = COMBINING.get(type(node.op))
        if combine is None:
            raise UnsupportedError(
                f"this augmented assignment is not known: {show(node)}",
                help="only += and *= are; write it out with =",
                where=names.locate(node),
            )
        return Assign(_target(node.target, names), parse_value(node.value, names), combine)
    raise UnsupportedError(
        f"expected an assignment, found {show(node)}",
        help="write A[i] = e, A[i] += e or A[i] *= e",
        where=names.locate(node),
    )


def with_reduction(target: Access, value: Expr) -> Assign:
    """`target = value`, as a combination when value is max or min of the target and something else."""
    for op in ("max", "min"):
        args = _left_spine(op, value)
        rest = [a for a in args if a != Read(target)]
        if rest and len(rest) == len(args) - 1:
            combined = rest[0]
            for a in rest[1:]:
                combined = Apply(op, (combined, a))
            return Assign(target, combined, op)
    return Assign(target, value)


def find_access(tree: ast.AST, access: Access, names: Names) -> ast.AST | None:
    """The node of `tree` that reads as `access`, for messages."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.Subscript, ast.Name)) and _reads_as(node, access, names):
            return node
    return None


def _reads_as(node: ast.expr, access: Access, names: Names) -> bool:
    try:
        return parse_access(node, names) == access
    except InputError:
        return False


def _target(node: ast.expr, names: Names) -> Access:
    if isinstance(node, (ast.Tuple, ast.List)):
        raise UnsupportedError(
            f"several targets: {show(node)}", help="write one assignment for each", where=names.locate(node)
        )
    return parse_access(node, names)


def _left_spine(op: str, value: Expr) -> list[Expr]:
    if isinstance(value, Apply) and value.op == op:
        return [*_left_spine(op, value.args[0]), value.args[1]]
    return [value]
