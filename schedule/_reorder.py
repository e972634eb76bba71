"""Which combinations into a tensor may change places with each other, and under which axiom."""

from __future__ import annotations

from polyopt.ir import Apply, Cast, Const, Expr, Index, Read, Scop, dtype
from polyopt.schedule._touches import Touch

__all__ = ["is_integral", "reorder_axiom"]

_INTEGRAL_OPS = ("+", "-", "*", "neg", "abs", "min", "max", "select", "floor")
_TRUTH_OPS = ("<", "<=", ">", ">=", "==", "!=", "and", "or", "not")


def reorder_axiom(scop: Scop, a: Touch, b: Touch) -> str | None:
    """None when the two touches must keep their order; else the axiom that lets them change places (empty: none).

    Both must combine into their tensor by the same operator.  Minimum and maximum are exact; sums and products are
    exact for integers, as long as integers are combined; for floats they need `reassociate`.
    """
    if a.combine is None or a.combine != b.combine:
        return None
    if a.combine in ("min", "max"):
        return ""
    element = scop.tensor(a.tensor).element
    if element.is_float:
        return f"reassociate({a.combine}, {element.name})" if scop.reassociate else None
    values = [scop.statement(t.statement).assign.value for t in (a, b)]
    return "" if all(is_integral(v, scop) for v in values) else None


def is_integral(expr: Expr, scop: Scop) -> bool:
    """Whether the value is surely an integer or a truth value, computed without rounding."""
    if isinstance(expr, Const):
        return isinstance(expr.value, int)
    if isinstance(expr, Read):
        return not scop.tensor(expr.access.tensor).element.is_float
    if isinstance(expr, Cast):
        return not dtype(expr.dtype).is_float
    if isinstance(expr, Apply):
        if expr.op in _TRUTH_OPS:
            return True
        args = expr.args[1:] if expr.op == "select" else expr.args
        return expr.op in _INTEGRAL_OPS and all(is_integral(a, scop) for a in args)
    return isinstance(expr, Index)
