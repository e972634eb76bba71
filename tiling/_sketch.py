"""A candidate mapping of one kernel in numbers only: tile sizes, trip counts, buffer sizes.  Cheap to make and
to compare.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod

from polyopt.hwcost import KernelCost, OpCost, PlacementCost, kernel_cost
from polyopt.ir import Access, Indirect, dtype
from polyopt.ir.mapping import MicroOp, Temp, Term, Window
from polyopt.machine import OperandKind
from polyopt.tiling._problem import Problem
from polyopt.tiling._space import LoopShape, Space
from polyopt.tiling._specs import copy_specs, moved_operand, transpose_spec

__all__ = ["Sketch", "SketchPlacement", "contiguous_run", "crossing_cost", "lanes_of", "sketch_bytes", "sketch_cost"]


@dataclass(frozen=True, slots=True)
class SketchPlacement:
    """A `Placement` without bounds: `sizes` is the covered number of points of every dimension (or window) the term
    moves along.
    """

    term: Term
    memory: str
    dtype: str
    depth: int
    copies: int
    partition: str | None
    partition_tile: int
    sizes: Mapping[str, int]
    direction: str = "temp"
    through: str | None = None
    windows: tuple[Window, ...] = ()


@dataclass(frozen=True, slots=True)
class Sketch:
    """One candidate.  loops: outermost first, with their hinted trip counts."""

    problem: Problem
    tiles: Mapping[str, int]
    loops: tuple[LoopShape, ...]
    reduce_depth: int
    ops: tuple[MicroOp, ...]
    placements: tuple[SketchPlacement, ...]
    accumulator: Temp | None = None
    trips: tuple[float, ...] = field(default=())

    @property
    def space(self) -> Space:
        """The problem's space as this candidate's loops see it."""
        return self.problem.space.for_loops(self.loops)

    def count(self, depth: int) -> float:
        """How often code inside the first `depth` loops runs."""
        return prod(self.trips[:depth])

    def placement(self, term: Term) -> SketchPlacement | None:
        return next((p for p in self.placements if p.term == term), None)


def buffer_bytes(p: SketchPlacement) -> int:
    """Bytes per partition of all copies (axis 0 is not counted, whole partition tiles are)."""
    points = 1
    for dim, size in p.sizes.items():
        points *= -(-size // p.partition_tile) if dim == p.partition else size
    return p.copies * -(-points * dtype(p.dtype).element_bytes // 4) * 4


def sketch_bytes(sketch: Sketch) -> int:
    """Scratchpad bytes per partition."""
    pad = sketch.problem.machine.memory_of_kind("scratchpad")
    total = 0
    for p in sketch.placements:
        if pad is not None and p.memory == pad.name:
            total += buffer_bytes(p) + (_staging_bytes(p) if p.through else 0)
    return total


def _staging_bytes(p: SketchPlacement) -> int:
    others = prod(n for d, n in p.sizes.items() if d != p.through)
    ways = 2 if p.direction == "update" else 1
    return ways * 2 * -(-others * dtype(p.dtype).element_bytes // 4) * 4


def lanes_of(op: MicroOp, tiles: Mapping[str, int]) -> dict[str, int]:
    """Extent of each of the specification's lanes at full tiles."""
    return {role: prod(tiles[d] for d in dims) for role, dims in op.lanes}


def sketch_cost(sketch: Sketch) -> KernelCost:
    """Modelled time of the candidate at the hinted sizes."""
    problem = sketch.problem
    ops = [_op_cost(sketch, op) for op in sketch.ops]
    copies: list[PlacementCost] = []
    for p in sketch.placements:
        if isinstance(p.term, Access) and p.direction != "temp":
            copies.append(_copy_cost(sketch, p, p.term))
            if p.through:
                ops += crossing_cost(problem, p, sketch.count(p.depth))
    return kernel_cost(problem.machine, tuple(ops), tuple(copies))


def _op_cost(sketch: Sketch, op: MicroOp) -> OpCost:
    kinds: dict[str, OperandKind] = {}
    for name, term in (*op.operands, (op.target_name, op.target)):
        p = sketch.placement(term)
        if p is not None:
            kinds[name] = OperandKind(p.dtype, p.memory)
    return OpCost(op.spec, op.engine, sketch.count(op.depth), lanes_of(op, sketch.tiles), kinds)


def _copy_cost(sketch: Sketch, p: SketchPlacement, access: Access) -> PlacementCost:
    problem = sketch.problem
    element_bytes = problem.tensors[access.tensor].element.element_bytes
    points = prod(p.sizes.values())
    if p.partition is not None and p.partition not in p.sizes:
        points *= p.partition_tile
    run = contiguous_run(problem, p, access)
    exposed = p.copies == 1 and p.depth > 0
    rows = max(1, points // max(1, run))
    return PlacementCost(sketch.count(p.depth), rows, run * element_bytes, exposed)


def contiguous_run(problem: Problem, p: SketchPlacement, access: Access) -> int:
    """Elements of the longest contiguous run of a copy."""
    names = {w.axis: w.name for w in p.windows}
    shape = problem.tensors[access.tensor].shape
    run = 1
    for axis in range(len(access.subscripts) - 1, -1, -1):
        subscript = access.subscripts[axis]
        if isinstance(subscript, Indirect):
            return run
        dims = [names[axis]] if axis in names else [d for d in p.sizes if subscript.coefficient(d)]
        if any(d in (p.through, None if p.through else p.partition) for d in dims) or len(dims) > 1:
            return run
        if dims and axis not in names and subscript.coefficient(dims[0]) != 1:
            return run
        size = p.sizes[dims[0]] if dims else 1
        run *= size
        extent = shape[axis].const if shape[axis].is_constant else shape[axis].evaluate(problem.sizes)
        if size < extent:
            return run
    return run


def crossing_cost(problem: Problem, p: SketchPlacement, times: float) -> list[OpCost]:
    """Transpositions and evictions of a copy that crosses from rows to partitions, made `times` times."""
    machine = problem.machine
    spec = transpose_spec(machine, p.dtype)
    assert spec is not None and p.through is not None and p.partition is not None
    q, along = p.sizes.get(p.through, 1), p.sizes.get(p.partition, 1)
    rest = prod(s for d, s in p.sizes.items() if d not in (p.through, p.partition))
    blocks = -(-q // 128) * -(-along // 128) * rest * times
    form, source = spec.forms[0], moved_operand(spec.forms[0])
    into = spec.operand(form.target.name).memories[0]
    lanes = {source.lanes[0]: min(q, 128), source.lanes[1]: min(along, 128)}
    kinds = {source.name: OperandKind(p.dtype, p.memory), form.target.name: OperandKind(p.dtype, into)}
    evict, number = next(iter(copy_specs(machine, into, p.memory, p.dtype)))
    body = evict.forms[number]
    moved = moved_operand(body)
    evict_kinds = {moved.name: OperandKind(p.dtype, into), body.target.name: OperandKind(p.dtype, p.memory)}
    evict_lanes = dict(zip(body.target.lanes, (min(along, 128), min(q, 128)), strict=True))
    return [
        OpCost(spec.name, spec.engines[0], blocks, lanes, kinds),
        OpCost(evict.name, evict.engines[0], blocks, evict_lanes, evict_kinds),
    ]
