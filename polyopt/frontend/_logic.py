"""`and` and `or` for the writer: in a Scop they give truth values, in Python one of their operands."""

from __future__ import annotations

from collections.abc import Collection

from polyopt.ir import COMPARISONS, Apply, Cast, Const, Expr, Read, Uninterpreted

__all__ = ["with_explicit_truth"]


def with_explicit_truth(expr: Expr, truths: Collection[str]) -> Expr:
    """`expr` with `a and b` as `(a != 0) and (b != 0)` where a number is an operand and the value counts.

    truths: the tensors of truth values.
    """
    if isinstance(expr, Cast):
        return Cast(expr.dtype, with_explicit_truth(expr.arg, truths))
    if isinstance(expr, Uninterpreted):
        return Uninterpreted(expr.name, tuple(with_explicit_truth(a, truths) for a in expr.args))
    if not isinstance(expr, Apply):
        return expr
    if expr.op in ("and", "or") and _is_truth(expr, truths):
        return _condition(expr, truths)
    if expr.op in ("and", "or"):
        return Apply(expr.op, tuple(_compared(a, truths) for a in expr.args))
    if expr.op in ("not", "select"):
        rest = (with_explicit_truth(a, truths) for a in expr.args[1:])
        return Apply(expr.op, (_condition(expr.args[0], truths), *rest))
    return Apply(expr.op, tuple(with_explicit_truth(a, truths) for a in expr.args))


def _condition(expr: Expr, truths: Collection[str]) -> Expr:
    """The same where only truth counts: nothing has to be said about `and` and `or` themselves."""
    if isinstance(expr, Apply) and expr.op in ("and", "or"):
        return Apply(expr.op, tuple(_condition(a, truths) for a in expr.args))
    return with_explicit_truth(expr, truths)


def _compared(expr: Expr, truths: Collection[str]) -> Expr:
    inner = with_explicit_truth(expr, truths)
    return inner if _is_truth(inner, truths) else Apply("!=", (inner, Const(0)))


def _is_truth(expr: Expr, truths: Collection[str]) -> bool:
    """Whether the reader takes the value for a truth value."""
    if isinstance(expr, Read):
        return expr.access.tensor in truths
    if isinstance(expr, Const):
        return isinstance(expr.value, bool)
    if not isinstance(expr, Apply):
        return False
    if expr.op in ("and", "or"):
        return all(_is_truth(a, truths) for a in expr.args)
    if expr.op == "select":
        return all(_is_truth(a, truths) for a in expr.args[1:])
    return expr.op == "not" or expr.op in COMPARISONS
