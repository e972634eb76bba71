"""Candidates for elementwise statements and for reductions folded along a free lane."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from polyopt.errors import UnsupportedError
from polyopt.ir import Access, Apply, Cast, Const, Expr, Indirect, Read, dtype, rewrite
from polyopt.ir.mapping import MicroOp, Temp, Term
from polyopt.sets import affine
from polyopt.tiling._cover import Cover, copy_value, cover_value, expr_dtype
from polyopt.tiling._place import place_access, place_temp
from polyopt.tiling._problem import ACCUMULATED, Problem
from polyopt.tiling._sketch import Sketch, SketchPlacement, sketch_bytes
from polyopt.tiling._space import LoopShape
from polyopt.tiling._specs import copy_specs, fill_spec, folds, masking_spec, moved_operand

__all__ = ["IDENTITY", "finishing_value", "identity_of", "pointwise_sketches", "with_lanes"]

IDENTITY: dict[str, float] = {"+": 0.0, "*": 1.0, "min": float("inf"), "max": float("-inf")}
"""Neutral element of each combiner on floats."""

ROW_ELEMENTS = 2048
"""Points of the free lanes in one tile before capacity is looked at: DMA rows of several KiB
(machine-independent start).
"""


def pointwise_sketches(problem: Problem) -> Iterator[Sketch]:
    """One candidate for each choice of the partition dimension."""
    parallel = [d for d in problem.dims if d not in problem.reduced]
    partitions: list[str | None] = [*parallel] or [None]
    for partition in partitions:
        for elements in (ROW_ELEMENTS, ROW_ELEMENTS // 4, 128, 16, 1):
            sketch = _sketch(problem, partition, elements)
            if sketch is not None:
                yield sketch
                break


def identity_of(op: str, element: str) -> float:
    """The neutral element of `op` in an element type."""
    kind = dtype(element)
    if kind.is_float or op in ("+", "*"):
        return IDENTITY[op]
    info = np.iinfo(kind.numpy) if kind.name != "bool" else None
    low, high = (int(info.min), int(info.max)) if info else (0, 1)
    return high if op == "min" else low


def finishing_value(problem: Problem, total: Expr) -> Expr:
    """What the kernel writes once the reduction's own total is known (without a reduction: the statement's value)."""
    body = problem.body
    element = problem.tensors[body.target.tensor].dtype
    value = total
    if body.combine is not None and not _starts_neutral(problem, body.combine, element):
        value = Apply(body.combine, (problem.initial or Read(body.target), total))
    if problem.finish is None:
        return value
    name = body.target.tensor

    def change(e: Expr) -> Expr:
        return Cast(element, value) if isinstance(e, Read) and e.access.tensor == name else e

    return rewrite(problem.finish.value, change)


def _starts_neutral(problem: Problem, combine: str, element: str) -> bool:
    initial = problem.initial
    return isinstance(initial, Const) and float(initial.value) == identity_of(combine, element)


def with_lanes(problem: Problem, op: MicroOp, tiles: Mapping[str, int], partition: str | None) -> MicroOp:
    """Feed the lanes of a pointwise operation: the partition dimension, and every other dimension of its terms."""
    spec = problem.machine.spec(op.spec)
    lanes = spec.forms[op.form].target.lanes
    dims = {d for t in (*(t for _, t in op.operands), op.target) for d in term_dims(problem, t)}
    dims |= {v for c in op.mask for v in c.expr.variables()} | (op.index.variables() if op.index is not None else set())
    free = tuple(d for d in problem.dims if d in dims and d != partition and tiles[d] > 1)
    home = (partition,) if partition is not None else ()
    return replace(op, lanes=((lanes[0], home), (lanes[1], free)))


def term_dims(problem: Problem, term: Term) -> tuple[str, ...]:
    """Kernel dimensions that a term moves along."""
    if isinstance(term, Temp):
        return term.dims
    return problem.dims_of(term) if isinstance(term, Access) else ()


def _sketch(problem: Problem, partition: str | None, elements: int) -> Sketch | None:
    tiles = _tiles(problem, partition, elements)
    loops = _loops(problem, tiles, partition)
    reduce_depth = sum(1 for loop in loops if loop.dim not in problem.reduced)
    builder = _Builder(problem, partition, tiles, loops, reduce_depth)
    sketch = builder.build()
    pad = problem.machine.memory_of_kind("scratchpad")
    fits = pad is None or sketch_bytes(sketch) <= pad.bytes_per_partition
    return sketch if fits else None


def _tiles(problem: Problem, partition: str | None, elements: int) -> dict[str, int]:
    tiles = dict.fromkeys(problem.dims, 1)
    if partition is not None:
        limit = problem.machine.memories[1].partitions
        tiles[partition] = min(limit, problem.longest(partition))
    left = elements
    for d in _by_contiguity(problem, partition):
        tile = min(left, problem.longest(d))
        tiles[d] = tile
        left //= tile
        if left < 2:
            break
    return tiles


def _by_contiguity(problem: Problem, partition: str | None) -> list[str]:
    """Free dimensions, those first along which most accesses have their rows."""
    accesses = (*problem.reads(problem.body.value), problem.target)
    score = dict.fromkeys(problem.dims, 0)
    for a in accesses:
        d = problem.contiguous_dim(a)
        if d is not None:
            score[d] += 1
    order = {d: k for k, d in enumerate(problem.dims)}
    return sorted((d for d in problem.dims if d != partition), key=lambda d: (-score[d], -order[d]))


def _loops(problem: Problem, tiles: Mapping[str, int], partition: str | None) -> tuple[LoopShape, ...]:
    def rank(d: str) -> tuple[bool, bool, int]:
        return d in problem.reduced, tiles[d] > 1 or d == partition, problem.dims.index(d)

    ordered = sorted(problem.dims, key=rank)
    return tuple(LoopShape(d, f"{d}_t", tiles[d]) for d in ordered if problem.is_long(d, tiles[d]))


class _Builder:
    """Collects operations and placements of one candidate."""

    def __init__(
        self,
        problem: Problem,
        partition: str | None,
        tiles: Mapping[str, int],
        loops: tuple[LoopShape, ...],
        reduce_depth: int,
    ) -> None:
        self.problem, self.partition, self.tiles, self.loops = problem, partition, tiles, loops
        self.reduce_depth = reduce_depth
        self.ops: list[MicroOp] = []
        pad = problem.machine.memory_of_kind("scratchpad")
        self.memory = pad.name if pad else problem.machine.memories[0].name
        self.accumulator: Temp | None = None

    def build(self) -> Sketch:
        body = self.problem.body
        element = self.problem.tensors[body.target.tensor].dtype
        if self.problem.reduced:
            self._reduction(element)
        else:
            value = finishing_value(self.problem, body.value)
            self._emit(value, self.problem.target, self.problem.element, depth=len(self.loops), after=False)
        return Sketch(
            problem=self.problem,
            tiles=self.tiles,
            loops=self.loops,
            reduce_depth=self.reduce_depth,
            ops=tuple(self.ops),
            placements=tuple(self._placements()),
            accumulator=self.accumulator,
            trips=tuple(-(-max(1, self.problem.extent(x.dim)) // x.step) for x in self.loops),
        )

    def _cover(self, prefix: str, extra: Mapping[str, str] | None = None) -> Cover:
        dtypes = {**self.problem.dtypes, **(extra or {})}
        return Cover(self.problem.machine, self.problem.dims, self.partition, dtypes, prefix)

    def _emit(
        self,
        value: Expr,
        target: Access | None,
        element: str,
        *,
        depth: int,
        after: bool,
        prefix: str = "t",
        extra: Mapping[str, str] | None = None,
        replaced: Mapping[Term, Term] | None = None,
    ) -> Term:
        cover = self._cover(prefix, extra)
        result = cover_value(cover, value, target, element)
        for op in cover.ops:
            known = substitute_terms(op, replaced or {})
            laned = with_lanes(self.problem, known, self.tiles, self.partition)
            self.ops.append(replace(laned, depth=depth, after=after))
        return (replaced or {}).get(result, result)

    def _reduction(self, element: str) -> None:
        problem, body, inner = self.problem, self.problem.body, len(self.loops)
        assert body.combine is not None
        wide = "float32" if dtype(element).is_float else element
        kind = expr_dtype(body.value, problem.dtypes)
        if dtype(kind).is_float and not dtype(element).is_float:
            raise UnsupportedError(f"{kind} values are combined into {element}", id="combine-types")
        value_type = kind if dtype(kind).is_float == dtype(element).is_float else wide
        value = self._emit(body.value, None, value_type, depth=inner, after=False)
        if isinstance(value, Const):
            value = self._filled(value, value_type)
        value = self._masked(self._spread(value, value_type), value_type, body.combine)
        kept = tuple(d for d in problem.dims if d in problem.dims_of(body.target) or d == self.partition)
        subscripts = tuple(affine(d) for d in kept)
        total, part = Access(ACCUMULATED, subscripts), Access("$part", subscripts)
        finish = finishing_value(problem, Read(total))
        direct = finish == Read(total) and wide == problem.element
        sum_term: Term = problem.target if direct else Temp("sum", kept, wide)
        self.accumulator = sum_term if isinstance(sum_term, Temp) else None
        loops_inside = self.reduce_depth < inner
        folded = self._fold(value, value_type, body.combine, kept, wide, None if loops_inside else sum_term)
        if loops_inside:
            self._initialise(sum_term, identity_of(body.combine, wide), wide, depth=self.reduce_depth)
            names: dict[Term, Term] = {total: sum_term, part: folded}
            combine = Apply(body.combine, (Read(total), Read(part)))
            types = {ACCUMULATED: wide, "$part": _term_dtype(problem, folded)}
            self._emit(combine, total, wide, depth=inner, after=False, prefix="c", extra=types, replaced=names)
        if not direct:
            ends: dict[Term, Term] = {total: sum_term}
            types = {ACCUMULATED: wide}
            self._emit(
                finish,
                problem.target,
                problem.element,
                depth=self.reduce_depth,
                after=True,
                prefix="e",
                extra=types,
                replaced=ends,
            )

    def _filled(self, value: Const, element: str) -> Term:
        """A tile of one number, to be folded like any other value."""
        temp = Temp("number", self.problem.dims, element)
        self._initialise(temp, float(value.value), element, depth=len(self.loops))
        return temp

    def _spread(self, value: Term, element: str) -> Term:
        """A value that does not move along a reduced dimension, repeated along it so that every instance counts."""
        missing = [d for d in self.problem.reduced if d not in term_dims(self.problem, value) and self.tiles[d] > 1]
        if not missing:
            return value
        dims = tuple(d for d in self.problem.dims if d in term_dims(self.problem, value) or d in missing)
        copies = copy_specs(self.problem.machine, self.memory, self.memory, element, _term_dtype(self.problem, value))
        spec, form = next(copies)
        temp = Temp("spread", dims, element)
        body = spec.forms[form]
        op = MicroOp(spec.name, form, spec.engines[0], ((moved_operand(body).name, value),), temp, body.target.name)
        self.ops.append(replace(with_lanes(self.problem, op, self.tiles, self.partition), depth=len(self.loops)))
        return temp

    def _copied(self, value: Access, element: str) -> Term:
        """The values of an access in another element type."""
        cover = self._cover("m")
        result = copy_value(cover, value, element)
        for op in cover.ops:
            self.ops.append(replace(with_lanes(self.problem, op, self.tiles, self.partition), depth=len(self.loops)))
        return result

    def _masked(self, value: Term, element: str, combine: str) -> Term:
        """Replace values outside a domain that is no box by the neutral element."""
        rows = self.problem.space.for_loops(self.loops).residual(self.problem.dims, self.loops)
        if not rows:
            return value
        if any(c.equality for c in rows):
            raise UnsupportedError("an equality between lanes", id="domain-shape")
        spec = masking_spec(self.problem.machine, element)
        if spec is None:
            raise UnsupportedError(f"no masking instruction for {element}", id="no-instruction")
        if isinstance(value, Access) and self.problem.tensors[value.tensor].dtype != element:
            value = self._copied(value, element)
        dims = tuple(
            d
            for d in self.problem.dims
            if d in term_dims(self.problem, value) or d == self.partition or any(d in c.expr.variables() for c in rows)
        )
        temp = Temp("masked", dims, element)
        form = spec.forms[0]
        names = [o.name for o in spec.operands if o.name != form.target.name]
        source, scalar = names[0], names[1]
        fill = Const(identity_of(combine, element))
        op = MicroOp(
            spec.name, 0, spec.engines[0], ((source, value),), temp, form.target.name, ((scalar, fill),), mask=rows
        )
        laned = with_lanes(self.problem, op, self.tiles, self.partition)
        self.ops.append(replace(laned, depth=len(self.loops)))
        return temp

    def _fold(self, value: Term, element: str, op: str, kept: tuple[str, ...], wide: str, into: Term | None) -> Term:
        """Fold the reduced lanes inside one tile; without any the value itself is the part."""
        problem = self.problem
        inside = tuple(d for d in term_dims(problem, value) if d in problem.reduced and self.tiles[d] > 1)
        if not inside and into is None:
            return value
        spec = next(iter(folds(problem.machine, op, element)), None)
        if spec is None:
            raise UnsupportedError(f"no instruction folds {element} with {op!r}", id="no-instruction")
        result = into if into is not None else Temp("part", kept, wide)
        form = spec.forms[0]
        home = (self.partition,) if self.partition is not None else ()
        free = tuple(d for d in kept if d != self.partition and self.tiles[d] > 1)
        role_p, role_f = form.target.lanes
        lanes = ((role_p, home), (role_f, free), (form.reduced_lanes[0], inside))
        source = next(o.name for o in spec.operands if o.name != form.target.name)
        fold = MicroOp(spec.name, 0, spec.engines[0], ((source, value),), result, form.target.name, lanes=lanes)
        slots = ((form.combine_slot, op),) if form.combine_slot else ()
        self.ops.append(replace(fold, slots=slots, depth=len(self.loops)))
        return result

    def _initialise(self, term: Term, value: float, element: str, *, depth: int) -> None:
        spec = fill_spec(self.problem.machine, element, self.memory)
        scalar = next(o.name for o in spec.operands if o.name != spec.forms[0].target.name)
        fill = MicroOp(spec.name, 0, spec.engines[0], (), term, spec.forms[0].target.name, ((scalar, Const(value)),))
        laned = with_lanes(self.problem, fill, self.tiles, self.partition)
        self.ops.append(replace(laned, depth=depth))

    def _placements(self) -> Iterator[SketchPlacement]:
        """One buffer for each term; loads stand at their natural depth, values at the depth of their operation."""
        problem = self.problem
        placed: dict[Term, SketchPlacement] = {}
        for op in self.ops:
            for _, term in (*op.operands, *op.scalars):
                for access in [] if not isinstance(term, Access) else index_accesses(term):
                    if access not in placed:
                        placed[access] = place_access(
                            problem, access, self.loops, self.tiles, self.partition, self.memory
                        )
            if isinstance(op.target, Temp) and op.target not in placed:
                at = self.reduce_depth if op.target == self.accumulator else op.depth
                placed[op.target] = place_temp(
                    problem, op.target, self.loops, self.tiles, self.partition, self.memory, at
                )
            elif isinstance(op.target, Access) and not is_stored(placed, op.target):
                placed[op.target] = self._target(op.target, placed.get(op.target))
        yield from placed.values()

    def _target(self, target: Access, read: SketchPlacement | None) -> SketchPlacement:
        made = place_access(
            self.problem,
            target,
            self.loops,
            self.tiles,
            self.partition,
            self.memory,
            depth=self.reduce_depth,
            store=True,
        )
        return replace(made, direction="update") if read is not None else made


def is_stored(placed: Mapping[Term, SketchPlacement], term: Term) -> bool:
    found = placed.get(term)
    return found is not None and found.direction in ("store", "update")


def substitute_terms(op: MicroOp, replaced: Mapping[Term, Term]) -> MicroOp:
    """Exchange terms of an operation."""
    return replace(
        op,
        operands=tuple((n, replaced.get(t, t)) for n, t in op.operands),
        scalars=tuple((n, replaced.get(t, t)) for n, t in op.scalars),
        target=replaced.get(op.target, op.target),
    )


def _term_dtype(problem: Problem, term: Term) -> str:
    if isinstance(term, Temp):
        return term.dtype
    return problem.tensors[term.tensor].dtype if isinstance(term, Access) else "float32"


def index_accesses(access: Access) -> list[Access]:
    """The accesses that must be on the chip before `access` can be copied, then `access` itself."""
    return [*(s.access for s in access.subscripts if isinstance(s, Indirect)), access]
