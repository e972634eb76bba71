"""A generated program as text for people and as JSON for tools."""

from __future__ import annotations

from collections.abc import Iterator

from polyopt.ir import Apply as Application
from polyopt.ir import Buffer, Expr, Instr, Loop, Node, Program, Tensor, View, Wait, children
from polyopt.ir.expr import Cast, Const, Index, Read, Uninterpreted
from polyopt.sets import Affine, var

__all__ = ["program_json", "program_text"]

INDENT = "  "


def program_text(program: Program) -> str:
    """Declarations, then the loops; every instruction on one line, its conditions and waits below it."""
    sizes = f"({', '.join(program.params)})" if program.params else ""
    lines = [f"program {program.name}{sizes} for {program.target}"]
    if program.params:
        lines.append(f"{INDENT}where {program.context.text()}")
    lines += [f"{INDENT}{_tensor_text(t)}" for t in program.tensors]
    lines += [f"{INDENT}{_buffer_text(b)}" for b in program.buffers]
    lines.append("")
    for node in program.body:
        lines += _node_lines(node, INDENT)
    return "\n".join(lines) + "\n"


def _tensor_text(t: Tensor) -> str:
    return f"{t.role} {t.name}[{', '.join(e.python() for e in t.shape) or '()'}] {t.dtype}"


def _buffer_text(b: Buffer) -> str:
    shape = ", ".join(str(n) for n in b.shape)
    copies = f", {b.copies} copies of {b.copy_bytes} bytes" if b.copies > 1 else ""
    return f"{b.memory} {b.name}[{shape}] {b.dtype} at byte {b.offset_bytes}{copies}"


def _node_lines(node: Node, indent: str) -> Iterator[str]:
    if isinstance(node, Loop):
        step = f", {node.step}" if node.step != 1 else ""
        yield f"{indent}for {node.var} in range({node.lower.python()}, {node.upper.python()}{step}):"
        for child in node.body:
            yield from _node_lines(child, indent + INDENT)
        return
    yield f"{indent}{_instruction_text(node)}"
    inner = indent + INDENT * 2
    if node.value is not None:
        yield f"{inner}value {_expression_text(node.value)}"
    if node.index is not None:
        yield f"{inner}index {node.index.python()}"
    for title, conditions in (("if", node.guards), ("mask", node.mask)):
        if conditions:
            yield f"{inner}{title} {' and '.join(c.python() for c in conditions)}"
    for wait in node.waits:
        yield f"{inner}{_wait_text(wait)}"


def _instruction_text(instr: Instr) -> str:
    operands = ", ".join(f"{name}={_view_text(view)}" for name, view in instr.operands)
    lanes = ", ".join(f"{lane.name} < {lane.extent.python()}" for lane in instr.lanes)
    attrs = ", ".join(f"{key}={value}" for key, value in instr.attrs)
    inside = "; ".join(part for part in (operands, attrs) if part)
    return f"{instr.site}: {instr.queue}.{instr.opcode}({inside})" + (f" for {lanes}" if lanes else "")


def _view_text(view: View) -> str:
    cells: list[str] = []
    for axis, base in enumerate(view.base):
        cell: Affine = base
        for lane, steps in view.steps:
            cell = cell + var(lane) * steps[axis]
        gathered = view.indirect is not None and view.indirect[0] == axis
        index = f" + {_view_text(view.indirect[1])}" if gathered and view.indirect is not None else ""
        cells.append(cell.python() + index)
    copy = f"<{view.copy.python()}>" if view.copy != Affine() else ""
    return f"{view.array}{copy}[{', '.join(cells) or '()'}]"


def _wait_text(wait: Wait) -> str:
    if wait.loop is None:
        return f"wait for {wait.site}"
    return f"wait for {wait.site} up to {wait.distance} iterations of {wait.loop} ago"


def _expression_text(expr: Expr) -> str:
    if isinstance(expr, Const):
        return repr(expr.value)
    if isinstance(expr, Index):
        return expr.value.python()
    if isinstance(expr, Read):
        return expr.access.tensor if not expr.access.subscripts else str(expr.access)
    name = expr.op if isinstance(expr, Application) else expr.dtype if isinstance(expr, Cast) else expr.name
    assert isinstance(expr, (Application, Cast, Uninterpreted))
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
        "indirect": {"axis": view.indirect[0], **_view_json(view.indirect[1])} if view.indirect is not None else None,
    }
