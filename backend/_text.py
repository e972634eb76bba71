"""Text forms for people: programs, mappings, loop trees."""

from __future__ import annotations

from polyopt.ir import Access, Buffer, Const, Instr, Loop, Node, Program, View
from polyopt.ir.mapping import Kernel, Mapping, MappingNode, MicroOp, Sequential, Temp, Term
from polyopt.schedule import Leaf, LoopTree

__all__ = ["mapping_text", "program_text", "tree_text"]


def program_text(program: Program) -> str:
    """Tensors, buffers with addresses, then loops and instructions with their waits."""
    head = [f"program {program.name} for {program.target}({', '.join(program.params)})"]
    for t in program.tensors:
        head.append(f"  {t.role} {t.name}: {t.dtype}[{', '.join(s.python() for s in t.shape)}]")
    head += [f"  {_buffer(b)}" for b in program.buffers]
    return "\n".join([*head, *_nodes(program.body, 1)]) + "\n"


def _buffer(b: Buffer) -> str:
    shape = ", ".join(map(str, b.shape))
    return f"buffer {b.name}: {b.dtype}[{shape}] x {b.copies} in {b.memory} at {b.offset_bytes} + {b.copy_bytes}*copy"


def _nodes(nodes: tuple[Node, ...], depth: int) -> list[str]:
    pad, out = "  " * depth, []
    for n in nodes:
        if isinstance(n, Loop):
            out.append(f"{pad}for {n.var} in range({n.lower.python()}, {n.upper.python()}, {n.step}):")
            out += _nodes(n.body, depth + 1)
        else:
            out.append(pad + _instr(n))
    return out


def _instr(n: Instr) -> str:
    lanes = ", ".join(f"{x.role or '-'}:{x.name}<{x.extent.python()}" for x in n.lanes)
    operands = ", ".join(f"{name}={_view(v)}" for name, v in n.operands)
    attrs = "".join(f" {k}={v}" for k, v in n.attrs if k != "form" or v)
    waits = "".join(f" wait({w.site}{f', {w.loop}-{w.distance}' if w.loop else ''})" for w in n.waits)
    guards = "".join(f" if {c.python()}" for c in n.guards)
    mask = f" mask[{' and '.join(c.python() for c in n.mask)}]" if n.mask else ""
    index = f" index={n.index.python()}" if n.index is not None else ""
    return f"{n.queue}: {n.site} = {n.opcode}({lanes}; {operands}){attrs}{index}{mask}{guards}{waits}"


def _view(v: View) -> str:
    axes = []
    for k, base in enumerate(v.base):
        moves = "".join(f" + {'' if s[k] == 1 else f'{s[k]}*'}{lane}" for lane, s in v.steps if s[k])
        axes.append(f"{base.python()}{moves}" if base.python() != "0" or not moves else moves[3:])
    copy = f"@{v.copy.python()}" if v.copy.python() != "0" else ""
    far = "".join(f" via axis {axis}: {_view(index)}" for axis, index in v.indirect)
    return f"{v.array}{copy}[{', '.join(axes)}]{far}"


def mapping_text(mapping: Mapping) -> str:
    """Kernels in order: loops, operations with their instructions, buffers with where their copies stand."""
    return "\n".join([f"mapping of {mapping.name} on {mapping.target}", *_mapping_nodes(mapping.nodes, 1)]) + "\n"


def _mapping_nodes(nodes: tuple[MappingNode, ...], depth: int) -> list[str]:
    pad, out = "  " * depth, []
    for n in nodes:
        if isinstance(n, Sequential):
            out.append(f"{pad}sequential {n.var} from {n.lower.python()} to {n.upper.python()} (excluded)")
            out += _mapping_nodes(n.body, depth + 1)
        else:
            out += [pad + line for line in _kernel(n)]
    return out


def _kernel(k: Kernel) -> list[str]:
    if k.remark:
        return [f"{k.statement.name}: general engine ({k.remark})"]
    lines = [f"{k.statement.name}: about {k.estimated_ns / 1000:.2f} us"]
    for d in k.dims:
        lines.append(f"  dim {d.name}: {d.extent_hint} points, tile {d.tile}{', reduced' if d.reduced else ''}")
    for loop in k.loops:
        lines.append(f"  loop {loop.var}: {loop.dim} in steps of {loop.step}, about {loop.trips_hint:g} times")
    for p in k.placements:
        sizes = ", ".join(f"{s.dim} {s.size}" for s in p.spans)
        via = f", transposed through {p.through}" if p.through else ""
        lines.append(
            f"  {p.direction} {_term(p.term)} in {p.memory}, inside {p.depth} loops, {p.copies} copies of ({sizes}), "
            f"partitions {p.partition or '-'}{via}"
        )
    return lines + [f"  {_op(op)}" for op in k.ops]


def _op(op: MicroOp) -> str:
    operands = ", ".join(f"{n}={_term(t)}" for n, t in (*op.operands, *op.scalars))
    slots = "".join(f" {v}" for _, v in op.slots)
    lanes = ", ".join(f"{r}=({' '.join(d)})" for r, d in op.lanes)
    return f"{op.engine}: {_term(op.target)} = {op.spec}{slots}({operands}) lanes {lanes}"


def _term(t: Term) -> str:
    if isinstance(t, Access):
        return str(t)
    return t.name if isinstance(t, Temp) else str(t.value) if isinstance(t, Const) else str(t)


def tree_text(tree: tuple[LoopTree, ...], depth: int = 0) -> str:
    """The loop tree: sequential loops and leaves with their parallel dimensions."""
    lines: list[str] = []
    for node in tree:
        pad = "  " * depth
        if isinstance(node, Leaf):
            lines.append(f"{pad}{node.statement}: parallel ({', '.join(node.parallel)})")
        else:
            names = ", ".join(f"{s}.{i}" for s, i in node.iterators)
            lines.append(f"{pad}sequential ({names})")
            lines.append(tree_text(node.body, depth + 1))
    return "\n".join(lines)
