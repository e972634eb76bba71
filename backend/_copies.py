"""Copies between device memory and buffers: plain rows, masked rows, gathers (crossing rows are in `_crossing`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from polyopt.backend._crossing import crossing_nodes
from polyopt.backend._frame import Frame, placed_view
from polyopt.backend._transfer import emit_fill, emit_transfer, masks, span_stop, transfer_spec
from polyopt.ir import Access, Buffer, Indirect, Instr, Lane, Loop, Node, View
from polyopt.ir.mapping import Placement
from polyopt.sets import Affine, affine, minimum, var

__all__ = ["emit_load", "emit_store"]


def emit_load(frame: Frame, p: Placement, access: Access, queue: str) -> list[Node]:
    """Bring everything that `p` covers from device memory into its buffer."""
    buffer = frame.by_term[access]
    nodes: list[Node] = []
    if p.through is not None:
        return crossing_nodes(frame, p, buffer, queue, store=False)
    if p.fill is not None:
        nodes.append(emit_fill(frame, buffer, p.fill, frame.copy_index(p)))
    nodes += _rows(frame, p, access, buffer, queue, store=False)
    return nodes


def emit_store(frame: Frame, p: Placement, access: Access, queue: str) -> list[Node]:
    """Write everything that `p` covers back to device memory."""
    buffer = frame.by_term[access]
    if p.through is not None:
        return crossing_nodes(frame, p, buffer, queue, store=True)
    return _rows(frame, p, access, buffer, queue, store=True)


def _rows(frame: Frame, p: Placement, access: Access, buffer: Buffer, queue: str, *, store: bool) -> list[Node]:
    """One transfer for each partition tile."""
    own = p.span(p.partition) if p.partition is not None else None
    position = {s.dim: frame.rename(s.copy_start) for s in p.spans}
    if own is None or own.size <= p.partition_tile:
        return [_row_transfer(frame, p, access, buffer, queue, position, store=store)]
    loop_var = frame.names.new(f"{own.dim}_c")
    position[own.dim] = var(loop_var)
    body = _row_transfer(frame, p, access, buffer, queue, position, store=store)
    return [Loop(loop_var, frame.rename(own.copy_start), span_stop(frame, own), (body,), p.partition_tile)]


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
        extent = span_stop(frame, s) - position[s.dim]
        if s.dim == p.partition:
            tile = affine(p.partition_tile)
            lanes.append(Lane(s.dim, role_p, minimum(tile, extent) if s.size > p.partition_tile else extent))
        elif s.size > 1:
            lanes.append(Lane(s.dim, role_f, extent))
    if p.partition is not None and p.span(p.partition) is None and not store:
        lanes.append(Lane(p.partition, role_p, affine(p.partition_tile)))
    lanes.sort(key=lambda lane: lane.role != role_p)
    names = [lane.name for lane in lanes]
    offsets = {s.dim: position[s.dim] - frame.rename(s.start) for s in p.spans}
    chip = placed_view(p, buffer, offsets, names, frame.copy_index(p))
    device = frame.device_view(p.copied, position, lanes, _index_view(frame, p, access, position, lanes))
    target, source = (device, chip) if store else (chip, device)
    return emit_transfer(frame, access, queue, lanes, target, source, masks(frame, p.mask, position), store=store)


def _index_view(
    frame: Frame, p: Placement, access: Access, position: Mapping[str, Affine], lanes: Sequence[Lane]
) -> View | None:
    """Where the on-chip values of a data-dependent subscript are."""
    inner = next((s.access for s in access.subscripts if isinstance(s, Indirect)), None)
    if inner is None:
        return None
    q, buffer = frame.kernel.placement(inner), frame.by_term[inner]
    windows = {w.name: w.expr for w in q.windows}
    here = {n: frame.rename(e.substitute(position)) for n, e in windows.items()}
    offsets = {s.dim: here.get(s.dim, position.get(s.dim, affine(0))) - frame.rename(s.start) for s in q.spans}
    return placed_view(q, buffer, offsets, [lane.name for lane in lanes], frame.copy_index(q), windows)
