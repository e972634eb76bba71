"""The mapping of a whole program: every leaf of the loop tree becomes one kernel, the cheapest candidate that
is exact.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from math import prod

from polyopt.errors import CapacityError, Diagnostic, UnsupportedError
from polyopt.hwcost import KernelCost
from polyopt.ir import Access, Assign, Expr, Indirect, Scop, Statement, Tensor, access_relation, accesses
from polyopt.ir.mapping import Kernel, MappingNode, Sequential
from polyopt.ir.mapping import Mapping as ProgramMapping
from polyopt.machine import Machine
from polyopt.schedule import Absorbed, Leaf, LoopTree, SequentialLoop, leaves
from polyopt.sets import Affine, Constraint, Map, Set, maximum, minimum, var
from polyopt.tiling._contraction import contraction_sketches
from polyopt.tiling._finish import finish_kernel
from polyopt.tiling._limits import NO_LIMITS, TileLimits
from polyopt.tiling._linearise import linearise
from polyopt.tiling._pointwise import pointwise_sketches
from polyopt.tiling._problem import Problem
from polyopt.tiling._sketch import Sketch, sketch_cost
from polyopt.tiling._space import Space

__all__ = ["plan_mapping"]

DEFAULT_SIZE = 512
"""Size assumed for a parameter that is left open, for ranking only."""


def plan_mapping(
    scop: Scop,
    tree: tuple[LoopTree, ...],
    machine: Machine,
    at: Mapping[str, int] | None,
    absorbed: Mapping[str, Absorbed],
    limits: TileLimits = NO_LIMITS,
) -> tuple[ProgramMapping, tuple[Diagnostic, ...]]:
    """Plan every kernel of a distributed scop.

    absorbed: what each reduction's kernel takes over.  limits: no tile is larger.  Raises InputError when a limit names
    a dimension that no kernel has.
    """
    planner = _Planner(scop, machine, at, absorbed, limits)
    nodes = planner.nodes(tree, {}, 0)
    limits.check_names(nodes)
    return ProgramMapping(scop.name, machine.name, nodes), tuple(planner.remarks)


class _Planner:
    def __init__(
        self,
        scop: Scop,
        machine: Machine,
        at: Mapping[str, int] | None,
        absorbed: Mapping[str, Absorbed],
        limits: TileLimits,
    ) -> None:
        self.scop, self.machine, self.absorbed, self.limits = scop, machine, absorbed, limits
        self.fixed = all(p in (at or {}) for p in scop.params)
        self.sizes = {p: (at or {}).get(p, DEFAULT_SIZE) for p in scop.params}
        self.remarks: list[Diagnostic] = []
        self.whole = frozenset(t.name for t in scop.tensors if is_whole(scop, t))
        self.ranges: tuple[tuple[Affine, Affine], ...] = ()
        self.tensors: dict[str, Tensor] = scop.tensor_map()

    def nodes(
        self, tree: tuple[LoopTree, ...], outer: Mapping[str, tuple[str, ...]], level: int
    ) -> tuple[MappingNode, ...]:
        return tuple(node for t in tree for node in self._node(t, outer, level))

    def _node(self, node: LoopTree, outer: Mapping[str, tuple[str, ...]], level: int) -> Iterator[MappingNode]:
        if isinstance(node, Leaf):
            yield from self._kernels(node, outer)
            return
        inner = {n: (*outer.get(n, ()), it) for n, it in node.iterators}
        var = f"s{level}"
        low, high = self._range(node, outer, level)
        self.ranges = (*self.ranges[:level], (low, high))
        body = self.nodes(node.body, {**outer, **inner}, level + 1)
        yield Sequential(var, low, high, node.iterators, body)

    def _range(self, node: SequentialLoop, outer: Mapping[str, tuple[str, ...]], level: int) -> tuple[Affine, Affine]:
        """The hull of all statements' iterations, in terms of the outer loop variables."""
        lows: list[Affine] = []
        highs: list[Affine] = []
        inside = {leaf.statement for leaf in leaves(node.body)}
        for name, iterator in node.iterators:
            statement = self.scop.statement(name)
            if name not in inside or statement.domain.is_empty():
                continue
            known = outer.get(name, ())
            domain = statement.domain.intersect_params(self.scop.context)
            low, high = domain.bounds(iterator, known)
            renamed = {it: f"s{k}" for k, it in enumerate(known)}
            lows.append(low.substitute(renamed))
            highs.append(high.substitute(renamed) + 1)
        return minimum(*lows), maximum(*highs)

    def _kernels(self, leaf: Leaf, outer: Mapping[str, tuple[str, ...]]) -> Iterator[Kernel]:
        """The leaf with all that it absorbed as one kernel, or one kernel each when that does not fit the machine."""
        absorbed = self.absorbed.get(leaf.statement, Absorbed())
        attempts = [absorbed, replace(absorbed, behind=None, finish=None)] if absorbed.finish else [absorbed]
        for attempt in attempts:
            kernel, reason = self._attempt(leaf, outer, attempt)
            if kernel is not None:
                yield kernel
                if absorbed.behind is not None and attempt.behind is None:
                    yield from self._kernels(absorbed.behind, outer)
                return
        if absorbed.before is not None:
            yield from self._kernels(absorbed.before, outer)
        yield self._general(leaf, outer, reason)
        if absorbed.behind is not None:
            yield from self._kernels(absorbed.behind, outer)

    def _attempt(
        self, leaf: Leaf, outer: Mapping[str, tuple[str, ...]], absorbed: Absorbed
    ) -> tuple[Kernel | None, str]:
        statement, around = self._statement(leaf), outer.get(leaf.statement, ())
        try:
            linear, dims, extra = linearise(statement, leaf.parallel, absorbed.initial, absorbed.finish)
            problem = self._problem(linear, dims, around, *extra)
            return replace(self._best(problem), guards=self._guards(statement, around)), ""
        except (UnsupportedError, CapacityError) as error:
            return None, error.message

    def _statement(self, leaf: Leaf) -> Statement:
        statement = self.scop.statement(leaf.statement)
        if statement.is_opaque:
            raise UnsupportedError(
                f"{statement.name} is an opaque call: nothing is known about what it computes",
                help="a call can be scheduled and checked, but not compiled",
                id="opaque",
            )
        return replace(statement, domain=statement.domain.intersect_params(self.scop.context))

    def _general(self, leaf: Leaf, outer: Mapping[str, tuple[str, ...]], reason: str) -> Kernel:
        statement = self._statement(leaf)
        message = f"{statement.name} runs on the general engine: {reason}"
        self.remarks.append(Diagnostic("remark", "general-engine", message, where=statement.origin.where))
        around = outer.get(leaf.statement, ())
        return Kernel(statement, around, remark=reason, estimated_ns=self._general_ns(statement, around))

    def _general_ns(self, statement: Statement, outer: tuple[str, ...]) -> float:
        """Time of all points of a statement inside its outer loops, one after the other, at the hinted sizes."""
        points = prod(Space.of(statement.domain, outer, self.sizes).extents.values())
        spec = next(s for s in self.machine.instructions if s.kind == "general")
        engine = self.machine.engine(spec.engines[0])
        cycles: float = spec.cycles.evaluate({spec.lanes[0].name: points}, {}) + engine.overhead_cycles
        return cycles / engine.clock_ghz

    def _guards(self, statement: Statement, outer: tuple[str, ...]) -> tuple[Constraint, ...]:
        """Constraints on the outer iterators that the surrounding loops do not imply."""
        if not outer:
            return ()
        alone = statement.domain.project_onto(outer)
        rows: list[Constraint] = []
        names = {f"s{k}": it for k, it in enumerate(outer)}
        for k, it in enumerate(outer):
            low, high = self.ranges[k]
            rows += [Constraint(var(it) - low.substitute(names)), Constraint(high.substitute(names) - 1 - it)]
        around = Set.universe(alone.name, alone.dims, alone.params).constrain(rows).intersect_params(self.scop.context)
        if around.is_subset(alone):
            return ()
        parts = alone.gist(around).basic()
        if len(parts) != 1:
            raise UnsupportedError("the statement runs in a union of outer iterations", id="domain-shape")
        return tuple(parts[0])

    def _problem(
        self,
        statement: Statement,
        dims: tuple[str, ...],
        outer: tuple[str, ...],
        initial: Expr | None,
        finish: Assign | None,
    ) -> Problem:
        body = statement.assign
        if not body.target.is_exact:
            raise UnsupportedError(f"the write {body.target} is data-dependent", id="scatter")
        targets = {v for s in body.target.affine_subscripts for v in s.variables()}
        reduced = tuple(d for d in dims if d not in targets) if body.combine else ()
        space = Space.of(statement.domain, outer, self.sizes, reduced)
        problem = Problem(
            self.machine,
            statement,
            space,
            dims,
            reduced,
            self.tensors,
            self.sizes,
            self.fixed,
            initial,
            finish,
            self.whole,
            self.limits.of(statement.name),
        )
        if not _writes_apart(problem):
            raise UnsupportedError(f"several instances write the same cell of {body.target.tensor}", id="overlap")
        more = (*accesses_of(initial), *((finish.target, *finish.reads()) if finish else ()))
        for access in (body.target, *body.reads(), *more):
            _check_linear(problem, access)
            far = [s.access for s in access.subscripts if isinstance(s, Indirect)]
            if len(far) > 1 or any(not a.is_exact for a in far):
                raise UnsupportedError(f"{access} has data-dependent subscripts side by side or nested", id="gather")
        return problem

    def _best(self, problem: Problem) -> Kernel:
        ranked: list[tuple[float, float, int, Sketch]] = []
        reason: UnsupportedError | None = None
        for source in (contraction_sketches, pointwise_sketches):
            try:
                for sketch in source(problem):
                    cost: KernelCost = sketch_cost(sketch)
                    ranked.append((cost.total_ns, cost.traffic_bytes, len(ranked), sketch))
            except UnsupportedError as error:
                reason = error
        for _, _, _, sketch in sorted(ranked, key=lambda r: r[:3]):
            try:
                return finish_kernel(sketch)
            except UnsupportedError as error:
                reason = error
        raise reason or UnsupportedError("no candidate fits the machine", id="no-candidate")


def _writes_apart(problem: Problem) -> bool:
    """Whether different points of the tiles write different cells, apart from those of one reduction."""
    kept = tuple(d for d in problem.dims if d not in problem.reduced)
    subscripts = problem.body.target.affine_subscripts
    alone = {d for s in subscripts for d in kept if s.coefficient(d) and s.variables() & set(problem.dims) == {d}}
    if alone == set(kept):
        return True
    outer = problem.space.outer
    domain = problem.statement.domain.project_onto([*outer, *kept])
    box = domain.project_out(kept).add_dims(kept).constrain(_box_rows(problem, kept))
    return Map.from_exprs(box, "", [*map(var, outer), *subscripts]).is_injective()


def _box_rows(problem: Problem, dims: Iterable[str]) -> Iterator[Constraint]:
    """Tiles run over whole boxes, whatever the shape of the domain."""
    for d in dims:
        low, high = problem.space.bounds(d, ())
        yield from (Constraint(var(d) - low), Constraint(high - 1 - d))


def is_whole(scop: Scop, tensor: Tensor) -> bool:
    """Whether every cell has a value once the statements before its readers have run: it comes from outside, or exact
    writes cover it.
    """
    if tensor.role in ("input", "inout"):
        return True
    cells = [f"cell{k}" for k in range(len(tensor.shape))]
    missing = tensor.cells(cells, scop.params).intersect_params(scop.context)
    for s in scop.statements:
        if isinstance(s.body, Assign) and s.body.target.tensor == tensor.name and s.body.target.is_exact:
            domain = s.domain.intersect_params(scop.context)
            missing = missing.subtract(access_relation(domain, s.body.target, tensor, scop.params).range(cells))
    return missing.is_empty()


def accesses_of(value: Expr | None) -> tuple[Access, ...]:
    return () if value is None else accesses(value)


def _check_linear(problem: Problem, access: Access) -> None:
    for s in access.subscripts:
        if isinstance(s, Indirect):
            _check_linear(problem, s.access)
            offset = s.offset
        else:
            offset = s
        if not offset.is_linear_in(problem.dims):
            raise UnsupportedError(f"the subscript {offset.python()} of {access.tensor} is not linear", id="subscript")
