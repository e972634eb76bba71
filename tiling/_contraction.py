"""Candidates that run a sum of products on a contraction instruction.

Each dimension is classed by which of target, first and second operand it moves; a lane of the specification takes the
dimensions of its own class, whatever they are called.  The rest become loops: batches outside, further reductions
inside.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import permutations

from polyopt.errors import UnsupportedError
from polyopt.ir import Access, Const, Expr, Read, expr_iterators
from polyopt.ir.mapping import MicroOp, Temp, Term
from polyopt.machine import InstructionSpec, operand_refs
from polyopt.sets import affine
from polyopt.tiling._cover import Cover, copy_value, cover_value, expr_dtype, stripped
from polyopt.tiling._limits import BLOCK
from polyopt.tiling._place import natural_depth, place_access, place_temp
from polyopt.tiling._pointwise import finishing_value, index_accesses, substitute_terms, with_lanes
from polyopt.tiling._problem import ACCUMULATED, Problem
from polyopt.tiling._sketch import Sketch, SketchPlacement, buffer_bytes, sketch_bytes, sketch_cost
from polyopt.tiling._space import LoopShape
from polyopt.tiling._specs import contractions
from polyopt.tiling._unify import unify

__all__ = ["contraction_sketches"]


SELDOM = 16
"""A factor copied no more often than this may do with one buffer."""


@dataclass(frozen=True, slots=True)
class Assignment:
    """One way to feed the lanes.  stationary/moving order is the specification's; factors: (operand name,
    expression).
    """

    spec: InstructionSpec
    factors: tuple[tuple[str, Expr], ...]
    lanes: Mapping[str, tuple[str, ...]]
    partition_of: Mapping[str, str | None]


def contraction_sketches(problem: Problem) -> Iterator[Sketch]:
    """The best candidate of each lane assignment (loop order, panel sizes and copy depths chosen by modelled time)."""
    if problem.body.combine != "+" or not problem.reduced:
        return
    for assignment in _assignments(problem):
        found = list(_variants(problem, assignment))
        if found:
            yield min(found, key=_rank)


def _rank(sketch: Sketch) -> tuple[float, float, int]:
    cost = sketch_cost(sketch)
    return cost.total_ns, cost.traffic_bytes, sketch_bytes(sketch)


def _assignments(problem: Problem) -> Iterator[Assignment]:
    value = stripped(problem.body.value, problem.dtypes)
    for spec in contractions(problem.machine):
        form = spec.forms[0]
        for match in unify(form.value, value, lambda e: False):
            factors = tuple((ref.name, stripped(sub, problem.dtypes)) for ref, sub in match.operands)
            if any(isinstance(f, Const) for _, f in factors):
                continue
            kinds = [expr_dtype(f, problem.dtypes) for _, f in factors]
            if any(k not in spec.operand(n).dtypes for k, (n, _) in zip(kinds, factors, strict=True)):
                continue
            if len(set(kinds)) > 1 and "float32" in kinds:
                continue
            lanes = _lanes(problem, spec, factors)
            roles = {o.name: o.partition for o in spec.operands}
            homes = {n: next(iter(lanes.get(r or "", ())), None) for n, r in roles.items()}
            yield Assignment(spec, factors, lanes, homes)


def _lanes(problem: Problem, spec: InstructionSpec, factors: Sequence[tuple[str, Expr]]) -> dict[str, tuple[str, ...]]:
    form = spec.forms[0]
    uses = {form.target.name: frozenset(problem.dims_of(problem.body.target))}
    for name, factor in factors:
        uses[name] = frozenset(expr_iterators(factor))
    refs = {form.target.name: form.target.lanes, **{r.name: r.lanes for r in operand_refs(form.value)}}
    partitions = {o.partition for o in spec.operands}
    lanes: dict[str, tuple[str, ...]] = {}
    for lane in spec.lanes:
        signature = {n for n, ls in refs.items() if lane.name in ls}
        fitting = [d for d in problem.dims if {n for n, ds in uses.items() if d in ds} == signature]
        fitting.sort(key=lambda d: (-problem.extent(d), problem.dims.index(d)))
        lanes[lane.name] = tuple(fitting[:1] if lane.name in partitions else fitting)
    return lanes


def _tiles(problem: Problem, a: Assignment) -> dict[str, int]:
    tiles = dict.fromkeys(problem.dims, 1)
    for lane in a.spec.lanes:
        left = lane.max or 1
        for d in sorted(a.lanes[lane.name], key=lambda d: _contiguity(problem, a, d)):
            tiles[d] = min(left, problem.longest(d))
            left //= tiles[d]
            if left < 2:
                break
    return tiles


def _contiguity(problem: Problem, a: Assignment, dim: str) -> tuple[int, int]:
    """Dimensions that are contiguous in the operands come first into the lanes, then inner ones."""
    accesses = [f.access for _, f in a.factors if isinstance(f, Read)]
    runs = sum(1 for x in (*accesses, problem.target) if problem.contiguous_dim(x) == dim)
    return -runs, -problem.dims.index(dim)


def _variants(problem: Problem, a: Assignment) -> Iterator[Sketch]:
    tiles = _tiles(problem, a)
    builder = _Builder(problem, a, tiles)
    if builder.failed:
        return
    for loops, reduce_depth in _loop_orders(problem, a, tiles):
        yield from builder.sketches(loops, reduce_depth)


def _loop_orders(
    problem: Problem, a: Assignment, tiles: Mapping[str, int]
) -> Iterator[tuple[tuple[LoopShape, ...], int]]:
    """Batches outside, then the tiled parallel dimensions in every order, an optional block of one of them,
    reductions.
    """
    form = a.spec.forms[0]
    free = [d for role in form.target.lanes for d in a.lanes[role] if problem.is_long(d, tiles[d])]
    tiled = [d for d in free if tiles[d] > 1]
    batch = [d for d in problem.dims if d not in problem.reduced and d not in tiled and problem.is_long(d, tiles[d])]
    inner = sorted(
        (d for d in problem.reduced if problem.is_long(d, tiles[d])),
        key=lambda d: (tiles[d] > 1, problem.dims.index(d)),
    )
    tail = [LoopShape(d, f"{d}_t", tiles[d]) for d in inner]
    head = [LoopShape(d, f"{d}_t", tiles[d]) for d in batch]
    for order in permutations(tiled) if len(tiled) <= 3 else [tuple(tiled)]:
        body = [LoopShape(d, f"{d}_t", tiles[d]) for d in order]
        yield (*head, *body, *tail), len(head) + len(body)
        if len(order) < 2 or not problem.fixed:
            continue
        last = order[-1]
        for block in _blocks(problem.extent(last), tiles[last], problem.limits.get(f"{last}{BLOCK}")):
            outer = LoopShape(last, f"{last}{BLOCK}", block)
            yield (*head, outer, *body, *tail), len(head) + 1 + len(body)


def _blocks(extent: int, tile: int, limit: int | None) -> Iterator[int]:
    """Multiples of the tile that cut `extent` into 2, 3, 4, 6, 8, ... equal blocks, none longer than `limit`."""
    seen: set[int] = set()
    for parts in (2, 3, 4, 6, 8, 12, 16):
        block = -(-extent // (parts * tile)) * tile
        if tile < block < extent and block not in seen and (limit is None or block <= limit):
            seen.add(block)
            yield block


class _Builder:
    """The parts of a candidate that do not depend on the loop order."""

    def __init__(self, problem: Problem, a: Assignment, tiles: Mapping[str, int]) -> None:
        self.problem, self.a, self.tiles = problem, a, tiles
        machine, body = problem.machine, problem.body
        pad = machine.memory_of_kind("scratchpad")
        self.memory = pad.name if pad else machine.memories[0].name
        form = a.spec.forms[0]
        self.target_name = form.target.name
        self.element = problem.element
        self.home = a.partition_of[self.target_name]
        self.before: list[MicroOp] = []
        self.terms: dict[str, Term] = {}
        for name, factor in a.factors:
            cover = Cover(machine, problem.dims, a.partition_of[name], problem.dtypes, f"{name.lower()}")
            self.terms[name] = cover_value(cover, factor, None, expr_dtype(factor, problem.dtypes))
            self.before += [with_lanes(problem, op, tiles, a.partition_of[name]) for op in cover.ops]
        self.kept = tuple(d for d in problem.dims if d in problem.dims_of(body.target))
        self.sum = Temp("sum", self.kept, a.spec.operand(self.target_name).dtypes[0])
        self.finish = [with_lanes(problem, op, tiles, self.home) for op in self._finishing()]
        self.homes: dict[Term, str | None] = {}
        self.failed = not self._consistent()

    def _finishing(self) -> list[MicroOp]:
        """Operations from the accumulator to the target; through a scratchpad copy of the total when they need one."""
        problem = self.problem
        total = Access(ACCUMULATED, tuple(affine(d) for d in self.kept))
        finish = finishing_value(problem, Read(total))
        try:
            return self._cover_finish(finish, total, self.sum, self.a.spec.operand(self.target_name).memories[0], [])
        except UnsupportedError:
            copied = Temp("total", self.kept, self.sum.dtype)
            first = self._cover_finish(Read(total), total, self.sum, self.memory, [], copied)
            return self._cover_finish(finish, total, copied, self.memory, first)

    def _cover_finish(
        self, value: Expr, total: Access, term: Temp, memory: str, before: list[MicroOp], into: Temp | None = None
    ) -> list[MicroOp]:
        problem = self.problem
        dtypes = {**problem.dtypes, ACCUMULATED: self.sum.dtype}
        cover = Cover(problem.machine, problem.dims, self.home, dtypes, "e", memories={ACCUMULATED: memory})
        if into is None:
            cover_value(cover, value, problem.target, self.element)
            names: dict[Term, Term] = {total: term}
        else:
            names = {total: term, copy_value(cover, total, into.dtype): into}
        return [*before, *(substitute_terms(op, names) for op in cover.ops)]

    def _consistent(self) -> bool:
        """Every term has one partition dimension."""
        for ops, home in ((self.finish, self.home),):
            for op in ops:
                for _, term in (*op.operands, *op.scalars, ("", op.target)):
                    if self.homes.setdefault(term, home) != home:
                        return False
        for name, term in self.terms.items():
            if (
                isinstance(term, Const)
                or self.homes.setdefault(term, self.a.partition_of[name]) != self.a.partition_of[name]
            ):
                return False
        for op in self.before:
            home = next(iter(dict(op.lanes)[self.problem.machine.spec(op.spec).forms[op.form].target.lanes[0]]), None)
            for _, term in (*op.operands, *op.scalars, ("", op.target)):
                if self.homes.setdefault(term, home) != home:
                    return False
        return True

    def sketches(self, loops: tuple[LoopShape, ...], reduce_depth: int) -> Iterator[Sketch]:
        """All copy depths of the two factors that fit the scratchpad, the rest at natural depths."""
        factors = [t for t in dict.fromkeys(self.terms.values()) if isinstance(t, Access)]
        choices = [self._depths(t, loops) for t in factors]
        capacity = self.problem.machine.memory(self.memory).bytes_per_partition
        for depths in _product(choices):
            chosen = dict(zip(factors, depths, strict=True))
            sketch = self._sketch(loops, reduce_depth, chosen)
            for candidate in (sketch, *_single_buffered(sketch, factors)):
                if sketch_bytes(candidate) <= capacity:
                    yield candidate

    def _depths(self, access: Access, loops: Sequence[LoopShape]) -> list[int]:
        natural = natural_depth(self.problem.dims_of(access), loops)
        if not self.problem.fixed:
            return [natural]
        capacity = self.problem.machine.memory(self.memory).bytes_per_partition
        depths: list[int] = []
        for depth in range(natural, -1, -1):
            home = self.homes[access]
            placed = place_access(self.problem, access, loops, self.tiles, home, self.memory, depth=depth)
            if buffer_bytes(replace(placed, copies=1)) > capacity:
                break
            depths.append(depth)
        return depths or [natural]

    def _sketch(self, loops: tuple[LoopShape, ...], reduce_depth: int, depths: Mapping[Access, int]) -> Sketch:
        problem, inner = self.problem, len(loops)
        main = MicroOp(
            spec=self.a.spec.name,
            form=0,
            engine=self.a.spec.engines[0],
            operands=tuple(self.terms.items()),
            target=self.sum,
            target_name=self.target_name,
            lanes=tuple((r, tuple(d for d in ds if self.tiles[d] > 1)) for r, ds in self.a.lanes.items()),
            depth=inner,
        )
        before = [replace(op, depth=inner) for op in self.before]
        finish = [replace(op, depth=reduce_depth, after=True) for op in self.finish]
        placements: dict[Term, SketchPlacement] = {}
        accumulators = problem.machine.spec(main.spec).operand(self.target_name).memories
        for op in (*before, main, *finish):
            for term in (*(t for _, t in op.operands), *(t for _, t in op.scalars), op.target):
                self._place(placements, term, loops, reduce_depth, op.depth, depths, accumulators[0])
        target = problem.target
        home = self.home
        stored = place_access(problem, target, loops, self.tiles, home, self.memory, depth=reduce_depth, store=True)
        read = any(t == target for op in finish for _, t in (*op.operands, *op.scalars))
        placements[target] = replace(stored, direction="update") if read else stored
        return Sketch(
            problem=problem,
            tiles=self.tiles,
            loops=loops,
            reduce_depth=reduce_depth,
            ops=(*before, main, *finish),
            placements=tuple(placements.values()),
            accumulator=self.sum,
            trips=_trips(problem, loops),
        )

    def _place(
        self,
        placements: dict[Term, SketchPlacement],
        term: Term,
        loops: tuple[LoopShape, ...],
        reduce_depth: int,
        op_depth: int,
        depths: Mapping[Access, int],
        accumulator: str,
    ) -> None:
        if isinstance(term, Const) or term in placements:
            return
        problem, home = self.problem, self.homes.get(term)
        if isinstance(term, Temp):
            memory, depth = (accumulator, reduce_depth) if term == self.sum else (self.memory, op_depth)
            placements[term] = place_temp(problem, term, loops, self.tiles, home, memory, depth)
        else:
            for access in index_accesses(term):
                at = depths.get(term) if access == term else None
                placed = place_access(problem, access, loops, self.tiles, home, self.memory, depth=at)
                placements.setdefault(access, placed)


def _single_buffered(sketch: Sketch, factors: Sequence[Access]) -> Iterator[Sketch]:
    """The same with one buffer for a factor that is copied seldom: larger blocks fit, at the price of waiting for
    them.
    """
    for factor in factors:
        placed = sketch.placement(factor)
        if placed is None or placed.depth == 0 or placed.through is not None or sketch.count(placed.depth) > SELDOM:
            continue
        alone = replace(placed, copies=1)
        yield replace(sketch, placements=tuple(alone if p is placed else p for p in sketch.placements))


def _trips(problem: Problem, loops: Sequence[LoopShape]) -> tuple[float, ...]:
    trips: list[float] = []
    for k, loop in enumerate(loops):
        blocks = [x.step for x in loops[:k] if x.dim == loop.dim]
        whole = blocks[-1] if blocks else max(1, problem.extent(loop.dim))
        trips.append(-(-whole // loop.step))
    return tuple(trips)


def _product(choices: Sequence[Sequence[int]]) -> Iterator[tuple[int, ...]]:
    if not choices:
        yield ()
        return
    for first in choices[0]:
        for rest in _product(choices[1:]):
            yield (first, *rest)
