"""A generated program as JSON for tools."""

from __future__ import annotations

from polyopt.ir import Cast, Const, Expr, Index, Loop, Node, Program, Read, Uninterpreted, View, children

__all__ = ["program_json"]


def _expression_text(expr: Expr) -> str:
    if isinstance(expr, Const):
        return repr(expr.value)
    if isinstance(expr, Index):
        return expr.value.python()
    if isinstance(expr, Read):
        return expr.access.tensor if not expr.access.subscripts else str(expr.access)
    name = expr.dtype if isinstance(expr, Cast) else expr.name if isinstance(expr, Uninterpreted) else expr.op
    return f"{name}({', '.join(_expression_text(c) for c in children(expr))})"


def program_json(program: Program) -> dict[str, object]:
    """Everything in the program; affine values and conditions as Python text."""
    return {
        "name": program.name,
        "target": program.target,
        "params": list(program.params),
        "context": program.context.text(),
        "tensors": [
            {"name": t.name, "shape": [e.python() for e in t.shape], "dtype": t.dtype, "role": t.role}
            for t in program.tensors
        ],
        "buffers": [
            {
                "name": b.name,
                "memory": b.memory,
                "shape": list(b.shape),
                "dtype": b.dtype,
                "copies": b.copies,
                "offset_bytes": b.offset_bytes,
                "copy_bytes": b.copy_bytes,
            }
            for b in program.buffers
        ],
        "body": [_node_json(n) for n in program.body],
    }


def _node_json(node: Node) -> dict[str, object]:
    if isinstance(node, Loop):
        head = {"loop": node.var, "lower": node.lower.python(), "upper": node.upper.python(), "step": node.step}
        return {**head, "body": [_node_json(n) for n in node.body]}
    return {
        "site": node.site,
        "opcode": node.opcode,
        "queue": node.queue,
        "lanes": [{"name": x.name, "role": x.role, "extent": x.extent.python()} for x in node.lanes],
        "operands": [{"name": n, **_view_json(v)} for n, v in node.operands],
        "attrs": dict(node.attrs),
        "guards": [c.python() for c in node.guards],
        "mask": [c.python() for c in node.mask],
        "waits": [{"site": w.site, "loop": w.loop, "distance": w.distance} for w in node.waits],
        "index": node.index.python() if node.index is not None else None,
        "value": _expression_text(node.value) if node.value is not None else None,
        "statement": node.statement,
    }


def _view_json(view: View) -> dict[str, object]:
    return {
        "array": view.array,
        "base": [b.python() for b in view.base],
        "steps": {lane: list(steps) for lane, steps in view.steps},
        "copy": view.copy.python(),
        "indirect": [{"axis": axis, **_view_json(index)} for axis, index in view.indirect],
    }
