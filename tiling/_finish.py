"""From a sketch to a kernel: exact bounds of loops, spans of buffers and masks, symbolic in sizes and outer
iterators.
"""

from __future__ import annotations

from polyopt.errors import UnsupportedError
from polyopt.ir import Access, Const
from polyopt.ir.mapping import Dim, Kernel, Placement, Span, Temp, TileLoop
from polyopt.sets import Affine, Constraint, Extremum, Set, affine
from polyopt.tiling._problem import Problem
from polyopt.tiling._sketch import Sketch, SketchPlacement, sketch_cost

__all__ = ["finish_kernel"]


def finish_kernel(sketch: Sketch) -> Kernel:
    """Raises UnsupportedError when the domain does not fit tiles with masks."""
    problem, cost = sketch.problem, sketch_cost(sketch)
    loops = tuple(_loop(sketch, k) for k in range(len(sketch.loops)))
    placements = tuple(_placement(sketch, p) for p in sketch.placements)
    _check_masks(sketch, placements)
    spans = tuple((d, _spans(sketch, d)) for d in sorted({*(op.depth for op in sketch.ops), len(loops)}))
    _check_partition_starts(sketch, placements, dict(spans))
    return Kernel(
        statement=problem.statement,
        outer=sketch.space.outer,
        dims=tuple(Dim(d, sketch.tiles[d], problem.extent(d), d in problem.reduced) for d in problem.dims),
        loops=loops,
        reduce_depth=sketch.reduce_depth,
        ops=sketch.ops,
        placements=placements,
        accumulator=sketch.accumulator,
        spans=spans,
        estimated_ns=cost.total_ns,
        bound_by=max(cost.busy_ns, key=lambda e: cost.busy_ns[e], default=""),
    )


def _loop(sketch: Sketch, k: int) -> TileLoop:
    loop = sketch.loops[k]
    outside = sketch.loops[:k]
    low, high = sketch.space.bounds(loop.dim, outside)
    trips = sketch.trips[k] if k < len(sketch.trips) else 1.0
    return TileLoop(loop.dim, loop.var, loop.step, low, high, trips)


def _placement(sketch: Sketch, p: SketchPlacement) -> Placement:
    problem = sketch.problem
    outside = sketch.loops[: p.depth]
    space = sketch.space.with_windows(p.windows) if p.windows else sketch.space
    windows = {w.name: w for w in p.windows}
    spans = tuple(
        space.window_span(windows[d], outside, size) if d in windows else space.span(d, outside, size)
        for d, size in p.sizes.items()
    )
    for s in spans:
        _check_size(problem, s)
    mask: tuple[Constraint, ...] = ()
    if isinstance(p.term, Access):
        mask = space.residual(tuple(p.sizes), outside)
        if any(c.equality for c in mask):
            raise UnsupportedError("an equality between lanes", id="domain-shape")
    partial = bool(mask) or any(s.start != s.copy_start or s.stop != s.copy_stop for s in spans)
    return Placement(
        term=p.term,
        memory=p.memory,
        dtype=p.dtype,
        depth=p.depth,
        copies=p.copies,
        partition=p.partition,
        partition_tile=p.partition_tile,
        spans=spans,
        direction=p.direction,
        through=p.through,
        mask=mask,
        fill=0.0 if partial and p.direction in ("load", "update") else None,
        windows=p.windows,
    )


def _spans(sketch: Sketch, depth: int) -> tuple[Span, ...]:
    problem, outside = sketch.problem, sketch.loops[:depth]
    return tuple(sketch.space.span(d, outside, sketch.tiles[d]) for d in problem.dims)


def _check_partition_starts(
    sketch: Sketch, placements: tuple[Placement, ...], spans: dict[int, tuple[Span, ...]]
) -> None:
    """Operations begin at the first partition of their buffers, whichever tile they work on."""
    found = {p.term: p for p in placements}
    for op in sketch.ops:
        for term in (*(t for _, t in op.operands), *(t for _, t in op.scalars), op.target):
            p = None if isinstance(term, Const) else found[term]
            own = p.span(p.partition) if p is not None and p.partition is not None else None
            if p is None or own is None:
                continue
            here = next(s for s in spans[op.depth] if s.dim == p.partition)
            first = next((k for k in range(p.depth, op.depth) if sketch.loops[k].dim == p.partition), None)
            begin = here.start if first is None else sketch.space.bounds(own.dim, sketch.loops[:first])[0]
            step = 0 if first is None else p.partition_tile
            if begin != own.start and (not step or (begin - own.start) % step != affine(0)):
                raise UnsupportedError(f"tiles of {p.partition} begin inside a partition tile", id="partition-start")


def _check_size(problem: Problem, span: Span) -> None:
    """A buffer has a constant size: its span must be shown to fit for every size in the context."""
    if problem.fixed or (span.stop - span.start).is_constant:
        return
    width = span.stop - span.start
    if not _at_most(width, span.size):
        raise UnsupportedError(f"the extent of {span.dim} is not bounded by a constant", id="unbounded-span")


def _at_most(width: Affine, limit: int) -> bool:
    """Whether `width` is at most `limit` with one argument of each minimum (of a maximum that is subtracted) for it."""
    if width.is_constant:
        return width.const <= limit
    for atom, c in width.terms:
        if isinstance(atom, Extremum) and (atom.kind == "min") == (c > 0):
            rest = width - Affine(((atom, c),), 0)
            if any(_at_most(a * c + rest, limit) for a in atom.args):
                return True
    return False


def _check_masks(sketch: Sketch, placements: tuple[Placement, ...]) -> None:
    """Instances that tiles run beyond the domain must not count: their factors are zero, masked, or they are not
    stored.
    """
    problem = sketch.problem
    if sketch.space.box is not None or not problem.reduced:
        return
    if any(op.mask and isinstance(op.target, Temp) and op.target.name == "masked" for op in sketch.ops):
        return
    space = sketch.space
    inside = space.inside(sketch.loops)
    box = _box(problem, sketch, inside)
    allowed = box
    for p in placements:
        if isinstance(p.term, Access) and p.direction in ("load", "store", "update"):
            allowed = allowed.constrain(_copied_rows(p))
    if not allowed.is_subset(inside):
        raise UnsupportedError("no operand carries the domain's constraints", id="domain-shape")


def _copied_rows(p: Placement) -> list[Constraint]:
    """What holds for instances whose operand was really copied (the others find the fill)."""
    values = {w.name: w.expr for w in p.windows}
    rows = [c.substitute(values) for c in p.mask]
    for w in p.windows:
        s = p.span(w.name)
        assert s is not None
        rows += [Constraint(w.expr - s.copy_start), Constraint(s.copy_stop - 1 - w.expr)]
    return rows


def _box(problem: Problem, sketch: Sketch, inside: Set) -> Set:
    rows: list[Constraint] = []
    for d in problem.dims:
        low, high = sketch.space.bounds(d, sketch.loops)
        rows += [Constraint(affine(d) - low), Constraint(high - 1 - d)]
    return sketch.space.around(sketch.loops).add_dims(problem.dims).constrain(rows).project_onto(list(inside.dims))
