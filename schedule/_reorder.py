"""Which combinations into a tensor may change places with each other, and under which axiom."""

from __future__ import annotations

import numpy as np

from polyopt.ir import Apply, Cast, Const, DType, Expr, Index, Read, Scop, dtype
from polyopt.schedule._touches import Touch

__all__ = ["TRUTH_OPS", "is_integral", "reorder_axiom"]

_INTEGRAL_OPS = ("+", "-", "*", "neg", "abs", "min", "max", "select", "floor")
TRUTH_OPS = ("<", "<=", ">", ">=", "==", "!=", "and", "or", "not")


def reorder_axiom(scop: Scop, a: Touch, b: Touch) -> str | None:
    """None when the two touches must keep their order; else the axiom that lets them change places (empty: none).

    Both must combine into their tensor by the same operator.  Every step stores, and what is stored wraps to the cell's
    integer type: sums and products of integers do not mind (modulo a power of two), minimum and maximum only when the
    type holds every value that is combined.  On floats minimum and maximum are exact, sums and products need
    `reassociate`.
    """
    if a.combine is None or a.combine != b.combine:
        return None
    element = scop.tensor(a.tensor).element
    values = [scop.statement(t.statement).assign.value for t in (a, b)]
    if a.combine in ("min", "max"):
        return "" if element.is_float or all(fits(v, element, scop) for v in values) else None
    if element.is_float:
        return f"reassociate({a.combine}, {element.name})" if scop.reassociate else None
    if element.name == "bool":
        return None
    return "" if all(is_integral(v, scop) for v in values) else None


def fits(expr: Expr, element: DType, scop: Scop) -> bool:
    """Whether every value of an integer expression is surely one of the integer (or truth) type `element`."""
    low, high = integer_range(element)
    if isinstance(expr, Const):
        return isinstance(expr.value, int) and low <= expr.value <= high
    if isinstance(expr, (Read, Cast)):
        source = scop.tensor(expr.access.tensor).element if isinstance(expr, Read) else dtype(expr.dtype)
        return not source.is_float and low <= integer_range(source)[0] and integer_range(source)[1] <= high
    if isinstance(expr, Apply):
        if expr.op in TRUTH_OPS:
            return low <= 0 and high >= 1
        args = expr.args[1:] if expr.op == "select" else expr.args
        return expr.op in ("min", "max", "select") and all(fits(a, element, scop) for a in args)
    return False


def integer_range(element: DType) -> tuple[int, int]:
    """Smallest and largest value of an integer or truth type."""
    if element.name == "bool":
        return 0, 1
    info = np.iinfo(element.numpy)
    return int(info.min), int(info.max)


def is_integral(expr: Expr, scop: Scop) -> bool:
    """Whether the value is surely an integer or a truth value, computed without rounding."""
    if isinstance(expr, Const):
        return isinstance(expr.value, int)
    if isinstance(expr, Read):
        return not scop.tensor(expr.access.tensor).element.is_float
    if isinstance(expr, Cast):
        return not dtype(expr.dtype).is_float
    if isinstance(expr, Apply):
        if expr.op in TRUTH_OPS:
            return True
        args = expr.args[1:] if expr.op == "select" else expr.args
        return expr.op in _INTEGRAL_OPS and all(is_integral(a, scop) for a in args)
    return isinstance(expr, Index)
