"""Copies between device memory and buffers: plain rows, masked rows, rows that are transposed on the way, gathers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from polyopt.backend._frame import Frame, placed_view
from polyopt.ir import Access, Buffer, Indirect, Instr, Lane, Loop, Node, View
from polyopt.ir.mapping import Placement, Span
from polyopt.machine import InstructionSpec, Machine, ScalarRef
from polyopt.sets import Affine, Constraint, affine, minimum, var
from polyopt.tiling import copy_specs, fill_spec, moved_operand, transpose_spec

__all__ = ["emit_fill", "emit_load", "emit_store"]


def emit_load(frame: Frame, p: Placement, access: Access, queue: str) -> list[Node]:
    """Bring everything that `p` covers from device memory into its buffer."""
    buffer = frame.by_term[access]
    nodes: list[Node] = []
    if p.through is not None:
        return _through_load(frame, p, access, buffer, queue)
    if p.fill is not None:
        nodes.append(emit_fill(frame, buffer, p.fill, frame.copy_index(p)))
    nodes += _rows(frame, p, access, buffer, queue, store=False)
    return nodes


def emit_store(frame: Frame, p: Placement, access: Access, queue: str) -> list[Node]:
    """Write everything that `p` covers back to device memory."""
    buffer = frame.by_term[access]
    if p.through is not None:
        return _through_store(frame, p, access, buffer, queue)
    return _rows(frame, p, access, buffer, queue, store=True)


def emit_fill(frame: Frame, buffer: Buffer, value: float, copy: Affine) -> Instr:
    """Write one number into a whole copy of a buffer."""
    spec = fill_spec(frame.machine, buffer.dtype, buffer.memory)
    roles = spec.forms[0].target.lanes
    scalar = spec.forms[0].value
    lanes = [Lane("a0", roles[0], affine(buffer.shape[0]))]
    lanes += [Lane(f"a{k}", roles[1], affine(n)) for k, n in enumerate(buffer.shape) if k and n > 1]
    steps = tuple((lane.name, tuple(int(f"a{k}" == lane.name) for k in range(len(buffer.shape)))) for lane in lanes)
    view = View(buffer.name, (affine(0),) * len(buffer.shape), steps, copy)
    name = scalar.name if isinstance(scalar, ScalarRef) else ""
    return Instr(
        site=frame.names.new(f"{frame.kernel.statement.name}_fill"),
        opcode=spec.name,
        queue=spec.engines[0],
        lanes=tuple(lanes),
        operands=((spec.forms[0].target.name, view),),
        attrs=(("form", 0), (name, value)),
        statement=frame.kernel.statement.name,
    )


def transfer_spec(machine: Machine) -> InstructionSpec:
    """The machine's copy between device memory and chip."""
    return next(s for s in machine.instructions if s.kind == "transfer")


def _span_stop(frame: Frame, s: Span) -> Affine:
    return frame.rename(s.copy_stop)


def _rows(frame: Frame, p: Placement, access: Access, buffer: Buffer, queue: str, *, store: bool) -> list[Node]:
    """One transfer for each partition tile."""
    own = p.span(p.partition) if p.partition is not None else None
    position = {s.dim: frame.rename(s.copy_start) for s in p.spans}
    if own is None or own.size <= p.partition_tile:
        return [_row_transfer(frame, p, access, buffer, queue, position, store=store)]
    loop_var = frame.names.new(f"{own.dim}_c")
    position[own.dim] = var(loop_var)
    body = _row_transfer(frame, p, access, buffer, queue, position, store=store)
    return [Loop(loop_var, frame.rename(own.copy_start), _span_stop(frame, own), (body,), p.partition_tile)]


def _row_transfer(
    frame: Frame,
    p: Placement,
    access: Access,
    buffer: Buffer,
    queue: str,
    position: Mapping[str, Affine],
    *,
    store: bool,
) -> Instr:
    spec = transfer_spec(frame.machine)
    role_p, role_f = spec.forms[0].target.lanes
    lanes: list[Lane] = []
    for s in p.spans:
        extent = _span_stop(frame, s) - position[s.dim]
        if s.dim == p.partition:
            tile = affine(p.partition_tile)
            lanes.append(Lane(s.dim, role_p, minimum(tile, extent) if s.size > p.partition_tile else extent))
        elif s.size > 1:
            lanes.append(Lane(s.dim, role_f, extent))
    if p.partition is not None and p.span(p.partition) is None:
        lanes.append(Lane(p.partition, role_p, affine(p.partition_tile)))
    lanes.sort(key=lambda lane: lane.role != role_p)
    names = [lane.name for lane in lanes]
    offsets = {s.dim: position[s.dim] - frame.rename(s.start) for s in p.spans}
    chip = placed_view(p, buffer, offsets, names, frame.copy_index(p))
    device = frame.device_view(p.copied, position, lanes, _index_view(frame, p, access, position, lanes))
    target, source = (device, chip) if store else (chip, device)
    return _transfer(frame, access, queue, lanes, target, source, masks(frame, p.mask, position), store=store)


def masks(frame: Frame, rows: Sequence[Constraint], position: Mapping[str, Affine]) -> tuple[Constraint, ...]:
    """Constraints on dimensions as constraints on lanes: dim = first point + lane."""
    values = {d: start + var(d) for d, start in position.items()}
    loops = {k: var(v) for k, v in frame.loop_names.items()}
    return tuple(Constraint(c.expr.substitute({**frame.outer, **loops, **values}), c.equality) for c in rows)


def _transfer(
    frame: Frame,
    access: Access,
    queue: str,
    lanes: Sequence[Lane],
    target: View,
    source: View,
    mask: tuple[Constraint, ...],
    *,
    store: bool,
) -> Instr:
    spec = transfer_spec(frame.machine)
    form = spec.forms[0]
    value = moved_operand(form)
    return Instr(
        site=frame.names.new(f"{frame.kernel.statement.name}_{'st' if store else 'ld'}_{access.tensor}"),
        opcode=spec.name,
        queue=queue,
        lanes=tuple(lanes),
        operands=((form.target.name, target), (value.name, source)),
        attrs=(("form", 0),),
        mask=mask,
        statement=frame.kernel.statement.name,
    )


def _index_view(
    frame: Frame, p: Placement, access: Access, position: Mapping[str, Affine], lanes: Sequence[Lane]
) -> View | None:
    """Where the on-chip values of a data-dependent subscript are."""
    inner = next((s.access for s in access.subscripts if isinstance(s, Indirect)), None)
    if inner is None:
        return None
    q, buffer = frame.kernel.placement(inner), frame.by_term[inner]
    offsets = {s.dim: position[s.dim] - frame.rename(s.start) for s in q.spans}
    return placed_view(q, buffer, offsets, [lane.name for lane in lanes], frame.copy_index(q))


@dataclass(frozen=True, slots=True)
class _Crossing:
    """Everything that a transposed copy needs: staging buffers, specifications, the dimensions involved."""

    raw: Buffer
    crossed: Buffer
    transpose: InstructionSpec
    evict: InstructionSpec
    evict_form: int
    rows: Span
    along: Span
    rest: tuple[Span, ...]


def _crossing(frame: Frame, p: Placement, *, store: bool) -> _Crossing:
    assert p.through is not None and p.partition is not None
    rows, along = p.span(p.through), p.span(p.partition)
    assert rows is not None and along is not None
    transpose = transpose_spec(frame.machine, p.dtype)
    assert transpose is not None
    memory = transpose.operand(transpose.forms[0].target.name).memories[0]
    source, target = (memory, p.memory)
    evict, form = next(iter(copy_specs(frame.machine, source, target, p.dtype)))
    limit = frame.machine.memory(p.memory).partitions
    rest = tuple(s for s in p.spans if s.dim not in (p.through, p.partition))
    copies = 2 if p.depth or rest or rows.size > limit or along.size > limit else 1
    raw = frame.new_buffer("raw", p.memory, (min(limit, rows.size), along.size), p.dtype, copies)
    crossed_shape = (max(p.partition_tile, 1), min(limit, rows.size))
    if store:
        crossed_shape = (crossed_shape[1], crossed_shape[0])
    crossed = frame.new_buffer("cross", memory, crossed_shape, p.dtype, copies)
    return _Crossing(raw, crossed, transpose, evict, form, rows, along, rest)


def _through_load(frame: Frame, p: Placement, access: Access, buffer: Buffer, queue: str) -> list[Node]:
    c = _crossing(frame, p, store=False)
    return _crossing_loops(frame, p, c, access, buffer, queue, store=False)


def _through_store(frame: Frame, p: Placement, access: Access, buffer: Buffer, queue: str) -> list[Node]:
    c = _crossing(frame, p, store=True)
    return _crossing_loops(frame, p, c, access, buffer, queue, store=True)


def _crossing_loops(
    frame: Frame, p: Placement, c: _Crossing, access: Access, buffer: Buffer, queue: str, *, store: bool
) -> list[Node]:
    """Loops over the other dimensions and over chunks of rows, inside them one transfer and its transpositions."""
    position = {s.dim: frame.rename(s.copy_start) for s in p.spans}
    loops: list[tuple[str, Span, int]] = []
    for s in c.rest:
        if s.size > 1:
            loops.append((frame.names.new(f"{s.dim}_c"), s, 1))
            position[s.dim] = var(loops[-1][0])
    chunk = c.raw.shape[0]
    if c.rows.size > chunk:
        loops.append((frame.names.new(f"{c.rows.dim}_c"), c.rows, chunk))
        position[c.rows.dim] = var(loops[-1][0])
    if loops:
        name, span, step = loops[-1]
        first = frame.rename(span.copy_start)
        copy = (var(name) - first) // step if step > 1 else var(name) - first
    else:
        copy = frame.rotation(p.depth)
    nodes = _crossing_chunk(frame, p, c, access, buffer, queue, position, copy, store=store)
    for name, span, step in reversed(loops):
        nodes = [Loop(name, frame.rename(span.copy_start), _span_stop(frame, span), tuple(nodes), step)]
    return nodes


def _crossing_chunk(
    frame: Frame,
    p: Placement,
    c: _Crossing,
    access: Access,
    buffer: Buffer,
    queue: str,
    position: dict[str, Affine],
    copy: Affine,
    *,
    store: bool,
) -> list[Node]:
    spec = transfer_spec(frame.machine)
    role_p, role_f = spec.forms[0].target.lanes
    row_extent = _span_stop(frame, c.rows) - position[c.rows.dim]
    if c.rows.size > c.raw.shape[0]:
        row_extent = minimum(c.raw.shape[0], row_extent)
    rows = Lane(c.rows.dim, role_p, row_extent)
    along = Lane(c.along.dim, role_f, _span_stop(frame, c.along) - position[c.along.dim])
    chip = View(c.raw.name, (affine(0), affine(0)), ((rows.name, (1, 0)), (along.name, (0, 1))), copy)
    device = frame.device_view(p.copied, position, [rows, along])
    mask = masks(frame, p.mask, position)
    tiles = _tile_nodes(frame, p, c, buffer, position, rows, copy, store=store)
    if store:
        return [*tiles, _transfer(frame, access, queue, [rows, along], device, chip, mask, store=True)]
    nodes: list[Node] = []
    if p.fill is not None:
        nodes.append(emit_fill(frame, c.raw, p.fill, copy))
    nodes.append(_transfer(frame, access, queue, [rows, along], chip, device, mask, store=False))
    return [*nodes, *tiles]


def _tile_nodes(
    frame: Frame,
    p: Placement,
    c: _Crossing,
    buffer: Buffer,
    position: Mapping[str, Affine],
    rows: Lane,
    copy: Affine,
    *,
    store: bool,
) -> list[Node]:
    """Transpose every tile between the raw rows and the buffer."""
    start = position[c.along.dim]
    stop = _span_stop(frame, c.along)
    name = frame.names.new(f"{c.along.dim}_c") if c.along.size > p.partition_tile else ""
    here = var(name) if name else start
    extent = minimum(p.partition_tile, stop - here) if name else stop - start
    across = Lane(c.along.dim, "", extent)
    offsets = {s.dim: position[s.dim] - frame.rename(s.start) for s in p.spans}
    offsets[c.along.dim] = here - frame.rename(c.along.start)
    placed = placed_view(p, buffer, offsets, [rows.name, across.name], frame.copy_index(p))
    raw = View(c.raw.name, (affine(0), here - start), ((rows.name, (1, 0)), (across.name, (0, 1))), copy)
    turn = (here - start) // p.partition_tile if name else copy
    first, second = (across, rows) if not store else (rows, across)
    crossed = View(c.crossed.name, (affine(0), affine(0)), ((first.name, (1, 0)), (second.name, (0, 1))), turn)
    source, target = (raw, placed) if not store else (placed, raw)
    body = (
        _transpose(frame, c.transpose, second, first, source, crossed),
        _evict(frame, c.evict, c.evict_form, first, second, crossed, target),
    )
    return [Loop(name, start, stop, body, p.partition_tile)] if name else list(body)


def _transpose(
    frame: Frame, spec: InstructionSpec, source_rows: Lane, target_rows: Lane, source: View, target: View
) -> Instr:
    form = spec.forms[0]
    value = moved_operand(form)
    lanes = (replace(source_rows, role=value.lanes[0]), replace(target_rows, role=value.lanes[1]))
    return Instr(
        site=frame.names.new(f"{frame.kernel.statement.name}_turn"),
        opcode=spec.name,
        queue=spec.engines[0],
        lanes=lanes,
        operands=((form.target.name, target), (value.name, source)),
        attrs=(("form", 0),),
        statement=frame.kernel.statement.name,
    )


def _evict(frame: Frame, spec: InstructionSpec, form: int, rows: Lane, free: Lane, source: View, target: View) -> Instr:
    body = spec.forms[form]
    value = moved_operand(body)
    lanes = (replace(rows, role=body.target.lanes[0]), replace(free, role=body.target.lanes[1]))
    return Instr(
        site=frame.names.new(f"{frame.kernel.statement.name}_evict"),
        opcode=spec.name,
        queue=spec.engines[0],
        lanes=lanes,
        operands=((body.target.name, target), (value.name, source)),
        attrs=(("form", form),),
        statement=frame.kernel.statement.name,
    )
