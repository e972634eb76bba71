"""Unification of a statement's expression with an instruction's body: the only way instructions are found.

A pattern's operand matches any sub-expression, an operator slot any of its choices, a scalar slot a constant or a
sub-expression that does not move along the free lanes, `mask` an affine condition, `index` an affine value.
Commutative operators are tried in both orders.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from polyopt.ir import COMPARISONS, Apply, Const, Expr, Index
from polyopt.machine import IndexRef, MaskRef, OperandRef, OpRef, Pattern, ScalarRef
from polyopt.sets import Affine, Constraint, affine

__all__ = ["Match", "affine_condition", "affine_value", "unify"]

COMMUTATIVE = frozenset({"+", "*", "min", "max", "and", "or", "==", "!="})


@dataclass(frozen=True, slots=True)
class Match:
    """What a pattern was bound to."""

    operands: tuple[tuple[OperandRef, Expr], ...] = ()
    scalars: tuple[tuple[str, Expr], ...] = ()
    slots: tuple[tuple[str, str], ...] = ()
    mask: tuple[Constraint, ...] = ()
    index: Affine | None = None


def unify(pattern: Pattern, expr: Expr, is_scalar: Callable[[Expr], bool]) -> Iterator[Match]:
    """Every way in which `pattern` matches `expr`; `is_scalar` says what a scalar slot may hold."""
    yield from _unify(pattern, expr, is_scalar, Match())


def _unify(pattern: Pattern, expr: Expr, is_scalar: Callable[[Expr], bool], found: Match) -> Iterator[Match]:
    if isinstance(pattern, OperandRef):
        yield replace(found, operands=(*found.operands, (pattern, expr)))
    elif isinstance(pattern, ScalarRef):
        if is_scalar(expr):
            yield replace(found, scalars=(*found.scalars, (pattern.name, expr)))
    elif isinstance(pattern, MaskRef):
        condition = affine_condition(expr)
        if condition is not None:
            yield replace(found, mask=condition)
    elif isinstance(pattern, IndexRef):
        value = affine_value(expr)
        if value is not None:
            yield replace(found, index=value)
    else:
        yield from _unify_op(pattern, expr, is_scalar, found)


def _unify_op(pattern: OpRef, expr: Expr, is_scalar: Callable[[Expr], bool], found: Match) -> Iterator[Match]:
    if not isinstance(expr, Apply) or expr.op not in pattern.choices or len(expr.args) != len(pattern.args):
        return
    if pattern.slot:
        found = replace(found, slots=(*found.slots, (pattern.slot, expr.op)))
    orders = [expr.args]
    if expr.op in COMMUTATIVE and len(expr.args) == 2:
        orders.append((expr.args[1], expr.args[0]))
    for args in orders:
        partial = [found]
        for sub_pattern, sub_expr in zip(pattern.args, args, strict=True):
            partial = [m for p in partial for m in _unify(sub_pattern, sub_expr, is_scalar, p)]
        yield from partial


def affine_value(expr: Expr) -> Affine | None:
    """The affine value of an integer-valued expression of iterators and parameters, or None."""
    if isinstance(expr, Index):
        return expr.value
    if isinstance(expr, Const) and isinstance(expr.value, (int, bool)):
        return affine(int(expr.value))
    if isinstance(expr, Apply):
        parts = [affine_value(a) for a in expr.args]
        if any(p is None for p in parts):
            return None
        known = [p for p in parts if p is not None]
        if expr.op == "neg":
            return -known[0]
        if expr.op in ("+", "-"):
            return known[0] + known[1] if expr.op == "+" else known[0] - known[1]
        if expr.op == "*" and (known[0].is_constant or known[1].is_constant):
            return known[0] * known[1]
    return None


def affine_condition(expr: Expr) -> tuple[Constraint, ...] | None:
    """A conjunction of affine constraints equal to `expr`, or None (disjunctions and `!=` are not conjunctions)."""
    if not isinstance(expr, Apply):
        return None
    if expr.op == "and":
        left, right = affine_condition(expr.args[0]), affine_condition(expr.args[1])
        return None if left is None or right is None else left + right
    if expr.op == "not":
        return _negated(expr.args[0])
    if expr.op not in COMPARISONS or expr.op == "!=":
        return None
    a, b = affine_value(expr.args[0]), affine_value(expr.args[1])
    if a is None or b is None:
        return None
    rows = {
        "<": (b - a - 1, False),
        "<=": (b - a, False),
        ">": (a - b - 1, False),
        ">=": (a - b, False),
        "==": (a - b, True),
    }
    row, equality = rows[expr.op]
    return (Constraint(row, equality),)


def _negated(expr: Expr) -> tuple[Constraint, ...] | None:
    inner = affine_condition(expr)
    if inner is None or len(inner) != 1 or inner[0].equality:
        return None
    return (Constraint(-inner[0].expr - 1),)
