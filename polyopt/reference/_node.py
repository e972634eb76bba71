"""Right-hand sides with the kind of every sub-expression worked out: float, int or bool.

Kinds: `+ - *`, min, max and the branches of a selection take the wider kind of their arguments (bool counts as int in
arithmetic); comparisons and logic are bool; `/`, functions and calls are float; `int ** literal` is int when the
literal is a non-negative integer, any other power is float.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from polyopt.errors import InternalError
from polyopt.ir import (
    COMPARISONS,
    Access,
    Apply,
    Cast,
    Const,
    Expr,
    Index,
    Read,
    Tensor,
    Uninterpreted,
    access_variables,
    dtype,
)

__all__ = ["Node", "build_node", "dtype_kind", "promote", "reads"]

_WIDTH = {"bool": 0, "int": 1, "float": 2}
_LOGIC = frozenset(("and", "or", "not", *COMPARISONS))
_MIXED = frozenset(("+", "-", "*", "min", "max", "/", "**", *COMPARISONS))
_UNARY_SAME = frozenset(("neg", "abs", "relu", "floor"))


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """op: `const`, `index`, `read`, `cast`, `call` or an operator of APPLY_OPS.

    payload: the literal, the Affine, the Access, the element type's name or the function's name.
    names: every iterator and parameter that the value depends on through subscripts and index values.
    """

    op: str
    kind: str
    args: tuple[Node, ...]
    payload: Any
    names: frozenset[str]


def dtype_kind(name: str) -> str:
    """The kind of values of an element type."""
    if name == "bool":
        return "bool"
    return "float" if dtype(name).is_float else "int"


def build_node(expr: Expr, tensors: Mapping[str, Tensor]) -> Node:
    """The expression with kinds; an integer literal beside a float becomes a float literal."""
    if isinstance(expr, Const):
        kind = "bool" if isinstance(expr.value, bool) else "int" if isinstance(expr.value, int) else "float"
        return Node("const", kind, (), expr.value, frozenset())
    if isinstance(expr, Index):
        return Node("index", "int", (), expr.value, expr.value.variables())
    if isinstance(expr, Read):
        kind = dtype_kind(tensors[expr.access.tensor].dtype)
        return Node("read", kind, (), expr.access, access_variables(expr.access))
    if isinstance(expr, Cast):
        arg = build_node(expr.arg, tensors)
        return Node("cast", dtype_kind(expr.dtype), (arg,), expr.dtype, arg.names)
    args = tuple(build_node(a, tensors) for a in expr.args)
    if isinstance(expr, Uninterpreted):
        return _node("call", "float", args, expr.name)
    return _apply(expr, args)


def _node(op: str, kind: str, args: tuple[Node, ...], payload: Any = None) -> Node:
    return Node(op, kind, args, payload, frozenset().union(*(a.names for a in args)))


def _apply(expr: Apply, args: tuple[Node, ...]) -> Node:
    op = expr.op
    if op == "select":
        kind = _join(args[1:])
        return _node(op, kind, (args[0], *promote(args[1:], kind)))
    if op in _MIXED:
        args = promote(args, _join(args))
    return _node(op, _apply_kind(op, args), args)


def _apply_kind(op: str, args: tuple[Node, ...]) -> str:
    if op in _LOGIC:
        return "bool"
    if op in ("min", "max"):
        return _join(args)
    if op in ("+", "-", "*") or op in _UNARY_SAME:
        return "float" if _join(args) == "float" else "int"
    if op == "**" and _join(args) != "float" and args[1].op == "const" and args[1].payload >= 0:
        return "int"
    return "float"


def _join(args: tuple[Node, ...]) -> str:
    return max((a.kind for a in args), key=_WIDTH.__getitem__)


def promote(args: tuple[Node, ...], kind: str) -> tuple[Node, ...]:
    """Integer literals as float literals where `kind` is float."""
    if kind != "float":
        return args
    return tuple(
        Node("const", "float", (), float(a.payload), a.names) if a.op == "const" and a.kind != "float" else a
        for a in args
    )


def reads(node: Node) -> list[Access]:
    """The accesses read, outermost ones only, from left to right."""
    if node.op == "read":
        if not isinstance(node.payload, Access):
            raise InternalError("a read without an access")
        return [node.payload]
    return [access for a in node.args for access in reads(a)]
