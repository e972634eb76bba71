"""One kernel as loops and instructions: loads before, operations inside, stores behind the loop level where
they stand.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from polyopt.backend._copies import emit_load, emit_store
from polyopt.backend._frame import Frame
from polyopt.backend._prefetch import ahead_of_loop
from polyopt.backend._transfer import masks
from polyopt.ir import (
    Access,
    Const,
    Expr,
    Index,
    Indirect,
    Instr,
    Lane,
    Loop,
    Node,
    Read,
    View,
    map_accesses,
    rewrite,
    walk,
)
from polyopt.ir.mapping import Kernel, MicroOp, Placement
from polyopt.sets import Affine, Constraint, var

__all__ = ["emit_general", "emit_kernel"]


def emit_kernel(frame: Frame, load_queues: Sequence[str], store_queue: str) -> tuple[Node, ...]:
    """The nodes of a planned kernel; its buffers are left in `frame.buffers`."""
    frame.make_buffers()
    kernel = frame.kernel
    depths = len(kernel.loops)
    loads = [p for p in kernel.placements if p.direction in ("load", "update")]
    stores = [p for p in kernel.placements if p.direction in ("store", "update")]
    nodes: list[Node] = []
    for depth in range(depths, -1, -1):
        early = _loads_at(frame, [p for p in loads if _is_early(kernel, p)], depth, load_queues)
        before = _loads_at(frame, [p for p in loads if not _is_early(kernel, p)], depth, load_queues)
        before += [n for op in kernel.ops if op.depth == depth and not op.after for n in emit_op(frame, op)]
        behind = [n for op in kernel.ops if op.depth == depth and op.after for n in emit_op(frame, op)]
        for p in stores:
            if p.depth == depth and isinstance(p.term, Access):
                behind += emit_store(frame, p, p.term, store_queue)
        if not depth:
            nodes = [*early, *before, *nodes, *behind]
            break
        loop = kernel.loops[depth - 1]
        name, lower, upper = frame.loop_names[loop.var], frame.rename(loop.lower), frame.rename(loop.upper)
        first, following = ahead_of_loop(early, Loop(name, lower, upper, (), loop.step), frame.names)
        nodes = [*first, Loop(name, lower, upper, (*following, *before, *nodes, *behind), loop.step)]
    guards = tuple(Constraint(frame.rename(c.expr), c.equality) for c in kernel.guards)
    return guarded(tuple(nodes), guards)


def _loads_at(frame: Frame, loads: Sequence[Placement], depth: int, queues: Sequence[str]) -> list[Node]:
    nodes: list[Node] = []
    for k, p in enumerate(sorted(loads, key=_indices_first)):
        if p.depth == depth and isinstance(p.term, Access):
            nodes += emit_load(frame, p, p.term, queues[k % len(queues)])
    return nodes


def _is_early(kernel: Kernel, p: Placement) -> bool:
    """Copies that pass through engines are made one iteration ahead, unless the engines wait for data anyway."""
    return p.through is not None and p.copies > 1 and p.direction == "load" and kernel.bound_by != "transfer"


def _indices_first(p: Placement) -> bool:
    """Index tensors are brought in before the gathers that use them."""
    return isinstance(p.term, Access) and any(isinstance(s, Indirect) for s in p.term.subscripts)


def guarded(nodes: tuple[Node, ...], guards: tuple[Constraint, ...]) -> tuple[Node, ...]:
    """The same nodes under further guards."""
    if not guards:
        return nodes
    out: list[Node] = []
    for n in nodes:
        if isinstance(n, Loop):
            out.append(replace(n, body=guarded(n.body, guards)))
        else:
            out.append(replace(n, guards=(*n.guards, *guards)))
    return tuple(out)


def emit_op(frame: Frame, op: MicroOp) -> list[Node]:
    """One operation; an accumulating one becomes two sites, the first iteration and the others."""
    spec = frame.machine.spec(op.spec)
    if spec.accumulate != "flag":
        return [_instr(frame, op, (), ())]
    progress = _progress(frame, op)
    if progress is None:
        return [_instr(frame, op, (("accumulate", False),), ())]
    first = Constraint(progress, equality=True)
    later = Constraint(progress - 1)
    start, more = (("accumulate", False),), (("accumulate", True),)
    return [_instr(frame, op, start, (first,)), _instr(frame, op, more, (later,))]


def _progress(frame: Frame, op: MicroOp) -> Affine | None:
    """Zero in the first iteration of all reduction loops around `op`, positive later; None without such loops."""
    total: Affine | None = None
    for loop in frame.kernel.loops[frame.kernel.reduce_depth : op.depth]:
        step = var(frame.loop_names[loop.var]) - frame.rename(loop.lower)
        total = step if total is None else total + step
    return total


def _lanes(frame: Frame, op: MicroOp) -> list[Lane]:
    lanes: list[Lane] = []
    for role, dims in op.lanes:
        for d in dims:
            span = frame.kernel.span(op.depth, d)
            lanes.append(Lane(d, role, frame.rename(span.stop - span.start)))
    return lanes


def _instr(frame: Frame, op: MicroOp, extra: tuple[tuple[str, bool], ...], guards: tuple[Constraint, ...]) -> Instr:
    lanes = _lanes(frame, op)
    names = {lane.name for lane in lanes}
    starts = {d.name: frame.start(op.depth, d.name) for d in frame.kernel.dims}
    position = {d: s for d, s in starts.items() if d in names}
    fixed = {d: s for d, s in starts.items() if d not in names}
    operands = [(op.target_name, frame.view(op.target, op.depth, lanes))]
    operands += [(name, frame.view(term, op.depth, lanes)) for name, term in op.operands]
    attrs: list[tuple[str, str | int | float | bool]] = [("form", op.form), *op.slots]
    for name, term in op.scalars:
        if isinstance(term, Const):
            attrs.append((name, term.value))
        else:
            operands.append((name, frame.view(term, op.depth, [x for x in lanes if x.role == op.lanes[0][0]])))
    mask = masks(frame, tuple(Constraint(c.expr.substitute(fixed), c.equality) for c in op.mask), position)
    index = None
    if op.index is not None:
        moved = {d: s + var(d) for d, s in position.items()}
        index = frame.rename(op.index).substitute({**fixed, **moved})
    return Instr(
        site=frame.names.new(f"{frame.kernel.statement.name}_{op.spec}"),
        opcode=op.spec,
        queue=op.engine,
        lanes=tuple(lanes),
        operands=tuple(operands),
        attrs=(*attrs, *extra),
        guards=guards,
        mask=mask,
        index=index,
        statement=frame.kernel.statement.name,
    )


def emit_general(frame: Frame) -> tuple[Node, ...]:
    """The statement as counted scalar loops, one instruction for each convex part of its domain."""
    kernel, statement = frame.kernel, frame.kernel.statement
    spec = next(s for s in frame.machine.instructions if s.kind == "general")
    body = statement.assign
    reads = tuple(dict.fromkeys(_direct_reads(body.full_value())))
    names = {a: f"A{k}" for k, a in enumerate(reads)}
    dims = [d for d in statement.iterators if d not in kernel.outer]
    nodes: list[Node] = []
    for part in statement.domain.disjoint_basic():
        convex = type(statement.domain).from_constraints(
            statement.domain.name, statement.iterators, part, statement.domain.params
        )
        if convex.is_empty():
            continue
        bounds = {d: convex.bounds(d, kernel.outer) for d in dims}
        lanes = tuple(Lane(d, spec.lanes[0].name, frame.rename(high - low + 1)) for d, (low, high) in bounds.items())
        moved = {d: frame.rename(low) + var(d) for d, (low, _) in bounds.items()}
        operands = [(spec.forms[0].target.name, _general_view(frame, body.target, moved))]
        operands += [(names[a], _general_view(frame, a, moved)) for a in reads]
        value = _general_value(frame, body.full_value(), names, moved)
        mask = tuple(Constraint(frame.rename(c.expr.substitute(moved)), c.equality) for c in part)
        nodes.append(
            Instr(
                site=frame.names.new(f"{statement.name}_general"),
                opcode=spec.name,
                queue=spec.engines[0],
                lanes=lanes,
                operands=tuple(operands),
                attrs=(("form", 0),),
                mask=mask,
                value=value,
                statement=statement.name,
            )
        )
    return tuple(nodes)


def _direct_reads(value: Expr) -> list[Access]:
    return [n.access for n in walk(value) if isinstance(n, Read)]


def _general_view(frame: Frame, access: Access, moved: dict[str, Affine]) -> View:
    base: list[Affine] = []
    indirect: list[tuple[int, View]] = []
    for axis, s in enumerate(access.subscripts):
        if isinstance(s, Indirect):
            indirect.append((axis, _general_view(frame, s.access, moved)))
            base.append(frame.rename(s.offset).substitute(moved))
        else:
            base.append(frame.rename(s).substitute(moved))
    return View(access.tensor, tuple(base), indirect=tuple(indirect))


def _general_value(frame: Frame, value: Expr, names: dict[Access, str], moved: dict[str, Affine]) -> Expr:
    named = map_accesses(value, lambda a: Access(names[a], ()))

    def change(e: Expr) -> Expr:
        return Index(frame.rename(e.value).substitute(moved)) if isinstance(e, Index) else e

    return rewrite(named, change)
