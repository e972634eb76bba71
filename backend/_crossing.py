"""Copies whose rows lie along the partitions: whole rows are brought in with another dimension on the partitions, then
turned tile by tile through the accumulator memory (and the other way round for stores).

Several tiles share one accumulator bank and leave it in one instruction when all of them are full.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from polyopt.backend._frame import Frame, placed_view
from polyopt.backend._transfer import emit_fill, emit_transfer, masks, span_stop, transfer_spec
from polyopt.ir import Buffer, Instr, Lane, Loop, Node, View, dtype
from polyopt.ir.mapping import Placement, Span
from polyopt.machine import InstructionSpec
from polyopt.sets import Affine, affine, minimum, var
from polyopt.tiling import copy_specs, moved_operand, transpose_spec

__all__ = ["crossing_nodes"]


@dataclass(frozen=True, slots=True)
class _Crossing:
    """rows: on the partitions of the raw buffer; along: on those of the placed buffer; rest: the other dimensions.

    group: tiles of the innermost turning loop that share a bank.
    """

    store: bool
    raw: Buffer
    crossed: Buffer
    transpose: InstructionSpec
    evict: InstructionSpec
    evict_form: int
    rows: Span
    along: Span
    rest: tuple[Span, ...]
    tile: int
    group: int

    @property
    def turns(self) -> tuple[tuple[Span, int], ...]:
        """Loops over tiles that are turned one by one, outermost first: (span, step)."""
        loops = [(s, 1) for s in self.rest if s.size > 1]
        if self.along.size > self.tile:
            loops.append((self.along, self.tile))
        return tuple(loops)


def crossing_nodes(frame: Frame, p: Placement, buffer: Buffer, queue: str, *, store: bool) -> list[Node]:
    """The whole copy: a loop over chunks of rows, inside it one transfer and the turning of its tiles."""
    c = _crossing(frame, p, store)
    position = {s.dim: frame.rename(s.copy_start) for s in p.spans}
    chunk = c.raw.shape[0]
    copy = frame.rotation(p.depth)
    loop_var = ""
    if c.rows.size > chunk:
        loop_var = frame.names.new(f"{c.rows.dim}_c")
        copy = (var(loop_var) - position[c.rows.dim]) // chunk
        position[c.rows.dim] = var(loop_var)
    extent = span_stop(frame, c.rows) - position[c.rows.dim]
    rows = Lane(c.rows.dim, "", minimum(chunk, extent) if loop_var else extent)
    turning = _turning(frame, p, c, buffer, position[c.rows.dim], rows, copy)
    transfer = _transfer(frame, p, c, queue, position, rows, copy)
    nodes: list[Node] = [*turning, transfer] if store else [*_filled(frame, p, c, copy), transfer, *turning]
    if not loop_var:
        return nodes
    return [Loop(loop_var, frame.rename(c.rows.copy_start), span_stop(frame, c.rows), tuple(nodes), chunk)]


def _crossing(frame: Frame, p: Placement, store: bool) -> _Crossing:
    assert p.through is not None and p.partition is not None
    rows, along = p.span(p.through), p.span(p.partition)
    transpose = transpose_spec(frame.machine, p.dtype)
    assert rows is not None and along is not None and transpose is not None
    bank = frame.machine.memory(transpose.operand(transpose.forms[0].target.name).memories[0])
    evict, form = next(iter(copy_specs(frame.machine, bank.name, p.memory, p.dtype)))
    limit = frame.machine.memory(p.memory).partitions
    others = tuple(s for s in p.spans if s.dim != p.through)
    copies = 2 if p.depth or rows.size > limit else 1
    raw_shape = (min(limit, rows.size), *(s.size for s in others))
    raw = frame.new_buffer("raw", p.memory, raw_shape, p.dtype, copies)
    rest = tuple(s for s in others if s.dim != p.partition)
    tile = min(p.partition_tile, along.size)
    first, second = (tile, raw_shape[0]) if not store else (raw_shape[0], tile)
    element_bytes = dtype(p.dtype).element_bytes
    made = _Crossing(store, raw, raw, transpose, evict, form, rows, along, rest, tile, 1)
    group = _group(frame, made, (bank.bank_bytes or bank.bytes_per_partition) // (second * element_bytes))
    crossed = frame.new_buffer("cross", bank.name, (first, group, second), p.dtype, 2 if made.turns else copies)
    frame.transient.add(crossed.name)
    return replace(made, crossed=crossed, group=group)


def _group(frame: Frame, c: _Crossing, most: int) -> int:
    """The largest number of tiles of the innermost turning loop that are all full and fit a bank together."""
    if not c.turns:
        return 1
    span, step = c.turns[-1]
    length = frame.rename(span.stop - span.start)
    if not length.is_constant or length.const != span.size or span.size % step:
        return 1
    tiles = span.size // step
    return max(g for g in range(1, max(1, min(most, tiles)) + 1) if tiles % g == 0)


def _filled(frame: Frame, p: Placement, c: _Crossing, copy: Affine) -> list[Node]:
    return [] if p.fill is None else [emit_fill(frame, c.raw, p.fill, copy)]


def _raw_view(
    frame: Frame, p: Placement, c: _Crossing, here: Mapping[str, Affine], lanes: Mapping[str, str], copy: Affine
) -> View:
    """Cells of the raw buffer: `here` is the first point of each dimension, `lanes` names the dimension of each
    lane.
    """
    others = [s for s in p.spans if s.dim != c.rows.dim]
    base = [affine(0), *(here[s.dim] - frame.rename(s.start) for s in others)]
    axes = {c.rows.dim: 0, **{s.dim: k + 1 for k, s in enumerate(others)}}
    steps = [(n, tuple(int(k == axes[d]) for k in range(len(base)))) for n, d in lanes.items()]
    return View(c.raw.name, tuple(base), tuple(steps), copy)


def _transfer(
    frame: Frame, p: Placement, c: _Crossing, queue: str, position: Mapping[str, Affine], rows: Lane, copy: Affine
) -> Instr:
    """All rows of one chunk, every other dimension whole."""
    role_p, role_f = transfer_spec(frame.machine).forms[0].target.lanes
    lanes = [replace(rows, role=role_p)]
    for s in p.spans:
        if s.dim != c.rows.dim and s.size > 1:
            lanes.append(Lane(s.dim, role_f, span_stop(frame, s) - position[s.dim]))
    chip = _raw_view(frame, p, c, position, {lane.name: lane.name for lane in lanes}, copy)
    device = frame.device_view(p.copied, position, lanes)
    target, source = (device, chip) if c.store else (chip, device)
    mask = masks(frame, p.mask, position)
    return emit_transfer(frame, p.copied, queue, lanes, target, source, mask, store=c.store)


def _turning(
    frame: Frame, p: Placement, c: _Crossing, buffer: Buffer, row: Affine, rows: Lane, copy: Affine
) -> list[Node]:
    """Loops over all tiles: turn `group` of them into one bank, then move them out together."""
    here = {s.dim: frame.rename(s.start) for s in p.spans}
    here[c.rows.dim] = row
    loops: list[tuple[str, Span, int]] = []
    for k, (span, step) in enumerate(c.turns):
        name = frame.names.new(f"{span.dim}_c")
        loops.append((name, span, step * c.group if k == len(c.turns) - 1 else step))
        here[span.dim] = var(name)
    turn = copy
    if loops:
        name, span, step = loops[-1]
        turn = (var(name) - frame.rename(span.start)) // step if step > 1 else var(name) - frame.rename(span.start)
    nodes: list[Node] = [*_turned(frame, p, c, buffer, here, rows, copy, turn)]
    nodes.append(_moved(frame, p, c, buffer, here, rows, copy, turn))
    for name, span, step in reversed(loops):
        nodes = [Loop(name, frame.rename(span.start), frame.rename(span.stop), tuple(nodes), step)]
    return nodes


def _along_lane(frame: Frame, c: _Crossing, start: Affine) -> Lane:
    extent = frame.rename(c.along.stop) - start
    return Lane(c.along.dim, "", minimum(c.tile, extent) if c.along.size > c.tile else extent)


def _turned(
    frame: Frame,
    p: Placement,
    c: _Crossing,
    buffer: Buffer,
    here: Mapping[str, Affine],
    rows: Lane,
    copy: Affine,
    turn: Affine,
) -> list[Node]:
    """The transpositions of one group."""
    spot = dict(here)
    slot: Affine = affine(0)
    name = ""
    if c.group > 1:
        span, step = c.turns[-1]
        name = frame.names.new(f"{span.dim}_c")
        slot = (var(name) - here[span.dim]) // step if step > 1 else var(name) - here[span.dim]
        spot[span.dim] = var(name)
    across = _along_lane(frame, c, spot[c.along.dim])
    raw = _raw_view(frame, p, c, spot, {rows.name: c.rows.dim, across.name: c.along.dim}, copy)
    placed = _placed(frame, p, buffer, spot, [rows.name, across.name])
    first, second = (across, rows) if not c.store else (rows, across)
    crossed = View(
        c.crossed.name, (affine(0), slot, affine(0)), ((first.name, (1, 0, 0)), (second.name, (0, 0, 1))), turn
    )
    source = placed if c.store else raw
    node = _transpose(frame, c.transpose, second, first, source, crossed)
    if not name:
        return [node]
    span, step = c.turns[-1]
    return [Loop(name, here[span.dim], here[span.dim] + step * c.group, (node,), step)]


def _moved(
    frame: Frame,
    p: Placement,
    c: _Crossing,
    buffer: Buffer,
    here: Mapping[str, Affine],
    rows: Lane,
    copy: Affine,
    turn: Affine,
) -> Instr:
    """One group out of its bank."""
    across = _along_lane(frame, c, here[c.along.dim])
    first, second = (across, rows) if not c.store else (rows, across)
    body = c.evict.forms[c.evict_form]
    role_p, role_f = body.target.lanes
    lanes = [replace(first, role=role_p), replace(second, role=role_f)]
    crossed_steps = [(first.name, (1, 0, 0)), (second.name, (0, 0, 1))]
    raw_lanes = {rows.name: c.rows.dim, across.name: c.along.dim}
    group = Lane("", role_f, affine(c.group))
    if c.group > 1:
        span = c.turns[-1][0]
        group = replace(group, name=f"{span.dim}_g")
        lanes.insert(1, group)
        crossed_steps.insert(1, (group.name, (0, 1, 0)))
        if span.dim != c.along.dim:
            raw_lanes[group.name] = span.dim
    crossed = View(c.crossed.name, (affine(0),) * 3, tuple(crossed_steps), turn)
    if c.store:
        target = _raw_view(frame, p, c, here, raw_lanes, copy)
        target = _with_group_step(target, c, group, axis=1 + _axis(p, c, c.along.dim), amount=c.tile)
    else:
        target = _placed(frame, p, buffer, here, [rows.name, across.name])
        target = _placed_group(p, c, target, group)
    return Instr(
        site=frame.names.new(f"{frame.kernel.statement.name}_evict"),
        opcode=c.evict.name,
        queue=c.evict.engines[0],
        lanes=tuple(lanes),
        operands=((body.target.name, target), (moved_operand(body).name, crossed)),
        attrs=(("form", c.evict_form),),
        statement=frame.kernel.statement.name,
    )


def _axis(p: Placement, c: _Crossing, dim: str) -> int:
    """Position of a dimension among the raw buffer's free axes."""
    return [s.dim for s in p.spans if s.dim != c.rows.dim].index(dim)


def _with_group_step(view: View, c: _Crossing, group: Lane, axis: int, amount: int) -> View:
    """When tiles of the partition dimension are grouped, the group lane moves a whole tile along its raw axis."""
    if c.group == 1 or c.turns[-1][0].dim != c.along.dim:
        return view
    step = tuple(amount * int(k == axis) for k in range(len(view.base)))
    return replace(view, steps=(*view.steps, (group.name, step)))


def _placed_group(p: Placement, c: _Crossing, view: View, group: Lane) -> View:
    """The group lane in the placed buffer: the axis of partition tiles, or the axis of the grouped dimension."""
    if c.group == 1:
        return view
    dim = c.turns[-1][0].dim
    tiled = c.along.size > p.partition_tile
    free = [s.dim for s in p.spans if s.dim != p.partition]
    axis = 1 if dim == c.along.dim else 1 + int(tiled) + free.index(dim)
    step = tuple(int(k == axis) for k in range(len(view.base)))
    return replace(view, steps=(*view.steps, (group.name, step)))


def _placed(frame: Frame, p: Placement, buffer: Buffer, here: Mapping[str, Affine], lanes: list[str]) -> View:
    offsets = {s.dim: here[s.dim] - frame.rename(s.start) for s in p.spans}
    return placed_view(p, buffer, offsets, lanes, frame.copy_index(p))


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
