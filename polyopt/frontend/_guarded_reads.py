"""Reads that an affine condition keeps inside their tensor: `x[i - 1] if i > 0 else 0.0`.

In Python the read does not happen where the condition fails.  In a Scop every read of a statement belongs to each of
its instances, so such a subscript is held inside the tensor: `x[max(i - 1, 0)] if i > 0 else 0.0`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import product

from polyopt.frontend._affine import MAX_PIECES, NEGATED, Condition, relation, restrict
from polyopt.ir import (
    COMPARISONS,
    Access,
    Apply,
    Assign,
    Cast,
    Const,
    Expr,
    Index,
    Indirect,
    Read,
    Subscript,
    Tensor,
    Uninterpreted,
    walk,
)
from polyopt.sets import Affine, Constraint, Set, affine, maximum, minimum

__all__ = ["keep_inside"]

ALWAYS: Condition = ((),)


def keep_inside(body: Assign, domain: Set, context: Set, tensors: Mapping[str, Tensor]) -> Assign:
    """`body` with every subscript that leaves its tensor only where its value is not used clamped to the tensor."""
    if not any(isinstance(e, Apply) and e.op in ("select", "and", "or") for e in walk(body.value)):
        return body
    everywhere = domain.intersect_params(context)
    return replace(body, value=_Clamp(everywhere, tensors).visit(body.value, everywhere))


@dataclass(frozen=True, slots=True)
class _Clamp:
    """`domain`: every instance; the `used` of the methods: those whose value of the expression counts."""

    domain: Set
    tensors: Mapping[str, Tensor]

    def visit(self, expr: Expr, used: Set) -> Expr:
        if isinstance(expr, Read):
            return expr if used is self.domain else Read(self.access(expr.access, used))
        if isinstance(expr, Cast):
            return Cast(expr.dtype, self.visit(expr.arg, used))
        if isinstance(expr, Uninterpreted):
            return Uninterpreted(expr.name, tuple(self.visit(a, used) for a in expr.args))
        return self.apply(expr, used) if isinstance(expr, Apply) else expr

    def apply(self, expr: Apply, used: Set) -> Expr:
        first, *rest = expr.args
        where = [used] * len(rest)
        if expr.op == "select":
            where = [_restricted(used, implied(first, truth)) for truth in (True, False)]
        elif expr.op in ("and", "or"):
            where = [_restricted(used, implied(first, expr.op == "and"))]
        parts = (self.visit(a, w) for a, w in zip(rest, where, strict=True))
        return Apply(expr.op, (self.visit(first, used), *parts))

    def access(self, access: Access, used: Set) -> Access:
        tensor = self.tensors.get(access.tensor)
        if tensor is None or len(tensor.shape) != len(access.subscripts):
            return access
        pairs = zip(access.subscripts, tensor.shape, strict=True)
        return Access(access.tensor, tuple(self.subscript(s, extent, used) for s, extent in pairs))

    def subscript(self, subscript: Subscript, extent: Affine, used: Set) -> Subscript:
        if isinstance(subscript, Indirect):
            return Indirect(self.access(subscript.access, used), subscript.offset)
        inside = subscript
        if self.leaves(extent - 1 - subscript, used):
            inside = minimum(inside, extent - 1)
        return maximum(inside, affine(0)) if self.leaves(subscript, used) else inside

    def leaves(self, slack: Affine, used: Set) -> bool:
        """Whether `slack` is negative somewhere, but nowhere where the value is used."""
        negative = [Constraint(-slack - 1)]
        return not self.domain.constrain(negative).is_empty() and used.constrain(negative).is_empty()


def _restricted(points: Set, condition: Condition) -> Set:
    return points if condition == ALWAYS else restrict(points, condition)


def implied(expr: Expr, truth: bool) -> Condition:
    """An affine condition that holds wherever `expr` has this truth value (not always the strongest)."""
    if isinstance(expr, Const):
        return ALWAYS if bool(expr.value) == truth else ()
    if not isinstance(expr, Apply):
        return ALWAYS
    if expr.op == "not":
        return implied(expr.args[0], not truth)
    if expr.op in ("and", "or"):
        left, right = (implied(a, truth) for a in expr.args)
        return _conjunction(left, right) if (expr.op == "and") == truth else _disjunction(left, right)
    if expr.op in COMPARISONS:
        a, b = (_as_affine(x) for x in expr.args)
        if a is not None and b is not None:
            return relation(expr.op if truth else NEGATED[expr.op], a - b)
    return ALWAYS


def _as_affine(expr: Expr) -> Affine | None:
    if isinstance(expr, Index):
        return expr.value
    return affine(expr.value) if isinstance(expr, Const) and type(expr.value) is int else None


def _conjunction(left: Condition, right: Condition) -> Condition:
    return tuple((*a, *b) for a, b in product(left, right)) if len(left) * len(right) <= MAX_PIECES else left


def _disjunction(left: Condition, right: Condition) -> Condition:
    pieces = (*left, *right)
    return ALWAYS if () in pieces or len(pieces) > MAX_PIECES else pieces
