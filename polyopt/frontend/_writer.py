"""Scop -> the text of a SCoP file; `read_scop` reads it back to an equal Scop.

A few expressions have one canonical form in the reader and come back in it: the sign of a literal, arithmetic of
iterators and params (one `Index`), and max or min of the target itself (a combination).
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace

from polyopt.frontend._logic import with_explicit_truth
from polyopt.ir import Apply, Assign, Cast, Const, Expr, Index, OpaqueCall, Read, Scop, Statement, Tensor, Uninterpreted

__all__ = ["assignment_text", "expression_text", "write_scop"]

PLAIN = re.compile(r"[A-Za-z_0-9][A-Za-z_0-9 +*-]*")

TERNARY, OR, AND, NOT, COMPARE, ADD, MUL, UNARY, POWER, ATOM = range(10)
"""Binding strength, weakest first."""

BINARY = {
    "or": OR,
    "and": AND,
    **dict.fromkeys(("<", "<=", ">", ">=", "==", "!="), COMPARE),
    **dict.fromkeys("+-", ADD),
    **dict.fromkeys("*/", MUL),
}


def write_scop(scop: Scop) -> str:
    """The SCoP file that says what `scop` says.  Origins are not written."""
    lines = [f"scop: {_scalar(scop.name)}", f"params: [{', '.join(scop.params)}]"]
    if scop.params:
        lines.append(f"context: {json.dumps(_context(scop))}")
    if scop.reassociate:
        lines.append("reassociate: true")
    lines += ["tensors:"] if scop.tensors else ["tensors: {}"]
    lines += [f"  {t.name}: {_tensor(t)}" for t in scop.tensors]
    lines += ["statements:"] if scop.statements else ["statements: []"]
    truths = frozenset(t.name for t in scop.tensors if t.dtype == "bool")
    for s in scop.statements:
        lines += _statement(s, truths)
    return "\n".join(lines) + "\n"


def assignment_text(body: Assign) -> str:
    """One Python assignment."""
    value = expression_text(body.value)
    if body.combine in ("max", "min"):
        return f"{body.target} = {body.combine}({body.target}, {value})"
    return f"{body.target} {body.combine or ''}= {value}"


def expression_text(expr: Expr) -> str:
    """One Python expression in the language of SCoP files."""
    return _text(expr)[0]


def _context(scop: Scop) -> str:
    text = scop.context.text().removeprefix("[]").strip().removeprefix(":").strip()
    return text or "true"


def _tensor(t: Tensor) -> str:
    shape = ", ".join(_scalar(e.python()) for e in t.shape)
    init = f", init: {json.dumps(t.init)}" if t.init is not None else ""
    return f"{{shape: [{shape}], dtype: {t.dtype}, role: {t.role}{init}}}"


def _statement(s: Statement, truths: frozenset[str]) -> list[str]:
    lines = [f"  - name: {s.name}", f"    domain: {json.dumps(s.domain.text())}"]
    lines.append(f"    order: {json.dumps('[' + ', '.join(e.python() for e in s.order) + ']')}")
    if isinstance(s.body, OpaqueCall):
        read, write = ", ".join(s.body.may_read), ", ".join(s.body.may_write)
        return [*lines, f"    call: {{may_read: [{read}], may_write: [{write}]}}"]
    body = replace(s.body, value=with_explicit_truth(s.body.value, truths))
    return [*lines, f"    body: {json.dumps(assignment_text(body))}"]


def _scalar(text: str) -> str:
    return text if PLAIN.fullmatch(text) and text == text.strip() else json.dumps(text)


def _text(expr: Expr) -> tuple[str, int]:
    """The text and its binding strength."""
    if isinstance(expr, Const):
        return _constant(expr)
    if isinstance(expr, Index):
        text = expr.value.python()
        return text, ATOM if text.isidentifier() else ADD
    if isinstance(expr, Read):
        return str(expr.access), ATOM
    if isinstance(expr, Cast):
        return f'cast("{expr.dtype}", {expression_text(expr.arg)})', ATOM
    if isinstance(expr, Uninterpreted):
        return f"call({', '.join([expr.name, *map(expression_text, expr.args)])})", ATOM
    return _apply(expr)


def _constant(expr: Const) -> tuple[str, int]:
    value = expr.value
    if isinstance(value, float) and not math.isfinite(value):
        text = "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
    else:
        text = repr(value)
    return text, UNARY if text.startswith("-") else ATOM


def _apply(expr: Apply) -> tuple[str, int]:
    op, args = expr.op, expr.args
    if op == "select":
        condition, then, other = (_wrapped(a, OR) for a in args)
        return f"{then} if {condition} else {other}", TERNARY
    if op == "neg":
        return f"-{_wrapped(args[0], POWER)}", UNARY
    if op == "not":
        return f"not {_wrapped(args[0], NOT)}", NOT
    if op == "**":
        return f"{_wrapped(args[0], ATOM)}**{_wrapped(args[1], ATOM)}", POWER
    if op in BINARY:
        strength = BINARY[op]
        left = _wrapped(args[0], strength + 1 if strength == COMPARE else strength)
        return f"{left} {op} {_wrapped(args[1], strength + 1)}", strength
    return f"{op}({', '.join(map(expression_text, args))})", ATOM


def _wrapped(expr: Expr, strength: int) -> str:
    text, own = _text(expr)
    return text if own >= strength else f"({text})"
