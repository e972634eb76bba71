"""Conditions that depend on data: an assignment below one keeps its old value where the condition fails."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from polyopt.frontend._inference import neutral
from polyopt.ir import Apply, Assign, Expr, Read

__all__ = ["assigned_names", "both", "guarded", "is_single_assignment", "otherwise", "targets_of"]


def guarded(assign: Assign, guard: Expr, dtype: str) -> Assign:
    """`if guard: assign` as one assignment.

    A plain one selects the old value, a combination its neutral element (so that it stays a reduction).
    """
    if assign.combine is None:
        return Assign(assign.target, _choice(guard, assign.value, Read(assign.target)))
    return Assign(assign.target, _choice(guard, assign.value, neutral(assign.combine, dtype)), assign.combine)


def _choice(guard: Expr, then: Expr, other: Expr) -> Expr:
    if isinstance(guard, Apply) and guard.op == "not":
        guard, then, other = guard.args[0], other, then
    return Apply("select", (guard, then, other))


def both(outer: Expr | None, inner: Expr) -> Expr:
    return inner if outer is None else Apply("and", (outer, inner))


def otherwise(guard: Expr) -> Expr:
    return guard.args[0] if isinstance(guard, Apply) and guard.op == "not" else Apply("not", (guard,))


def is_single_assignment(node: ast.If) -> bool:
    return not node.orelse and len(node.body) == 1 and isinstance(node.body[0], (ast.Assign, ast.AugAssign))


def assigned_names(nodes: Iterable[ast.AST]) -> set[str]:
    """Names of everything that is assigned to, anywhere below `nodes`."""
    found: set[str] = set()
    for node in (n for top in nodes for n in ast.walk(top)):
        for target in targets_of(node):
            base = target.value if isinstance(target, ast.Subscript) else target
            if isinstance(base, ast.Name):
                found.add(base.id)
    return found


def targets_of(node: ast.AST) -> list[ast.expr]:
    """What an assignment assigns to; nothing for other nodes."""
    if isinstance(node, ast.Assign):
        return node.targets
    return [node.target] if isinstance(node, (ast.AugAssign, ast.AnnAssign)) else []
