"""How many loops two statements may share: asked of the judge, with the statements that must run between them.

The loops are taken as one from the outermost on, `[i, j]` and `[i, k]` become `[i, j = k]`; what is inside keeps its
order.  Where that fails, later statements are delayed so far that no dependence goes backwards (idea: shifting, as in
Kelly and Pugh, "A unifying framework for iteration reordering transformations", 1995).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf

import networkx as nx

from polyopt.explain._edges import Edges
from polyopt.explain._judge import Court
from polyopt.explain._nest import LoopNode, shared_loops
from polyopt.schedule import Verdict
from polyopt.sets import Affine, Constraint, Set, affine, var

__all__ = ["Fusible", "Fusions"]

Shift = Mapping[str, tuple[int, ...]]
"""Statement -> iterations by which each of its outermost loops is delayed."""


@dataclass(frozen=True, slots=True)
class Fusible:
    """shared: loops that the two share as the program stands; depth: loops that they may share.

    verdict: the judge's on one loop more, None when there is none.  between: statements that have to be fused with
    them.  short: the one among these that has no loop more.  shift: what would make `verdict` legal, or empty.
    """

    shared: int
    depth: int
    between: tuple[str, ...]
    verdict: Verdict | None = None
    short: str = ""
    shift: tuple[tuple[str, tuple[int, ...]], ...] = ()


@dataclass(frozen=True, slots=True)
class Fusions:
    """A program whose pairs of statements are asked about."""

    court: Court
    edges: Edges
    nests: tuple[LoopNode, ...]

    def of(self, a: str, b: str) -> Fusible:
        """`a` comes before `b` in the text; both have loops."""
        common = shared_loops(self.nests, a, b)
        between = self._between(a, b, common)
        group = (a, *between, b)
        most = min(len(self.court.loops(n)) for n in (a, b))
        for depth in range(common + 1, most + 1):
            short = next((n for n in between if len(self.court.loops(n)) < depth), "")
            if short:
                return Fusible(common, depth - 1, between, short=short)
            verdict = self.court.judge(self._fused(group, depth, {}))
            if not verdict:
                shift = self._shift(group, common, depth)
                return Fusible(common, depth - 1, between, verdict, shift=tuple(shift.items()))
        return Fusible(common, most, between)

    def _fused(self, group: Sequence[str], depth: int, shift: Shift) -> dict[str, tuple[Affine, ...]]:
        """The order vectors with the outermost loops as one."""
        vectors: dict[str, tuple[Affine, ...]] = {}
        for n in group:
            delays = shift.get(n, (0,) * depth)
            outer = (var(i) + s for i, s in zip(self.court.loops(n), delays, strict=False))
            vectors[n] = (*outer, *self.court.original(n))
        return vectors

    def _between(self, a: str, b: str, common: int) -> tuple[str, ...]:
        """Statements on a path of dependences from `a` to `b` inside one iteration of their common loops."""
        names = [s.name for s in self.court.scop.statements]
        near = names[names.index(a) : names.index(b) + 1]
        graph = self.edges.graph(near, common)
        found = nx.descendants(graph, a) & nx.ancestors(graph, b) - {a, b}
        return tuple(n for n in near if n in found)

    def _shift(self, group: Sequence[str], common: int, depth: int) -> Shift:
        """Delays of later statements, half a loop at most, that make the fused order legal; empty when none do."""
        shift: dict[str, tuple[int, ...]] = {}
        for n in group:
            edges = [e for e in self.edges.inside(common) if e.sink == n and e.source in shift]
            own = (0,) * common
            for k in range(common, depth):
                ahead = [(e.source, _ahead(e.pairs_inside(common), *e.loops[k])) for e in edges]
                if any(steps is None for _, steps in ahead):
                    return {}
                delay = max([0, *(shift[source][k] + (steps or 0) for source, steps in ahead)])
                if 2 * delay > _trips(self.court, n, k):
                    return {}
                own = (*own, delay)
            shift[n] = own
        delayed = {n: s for n, s in shift.items() if any(s)}
        return delayed if delayed and self.court.judge(self._fused(group, depth, shift)) else {}


def _ahead(pairs: Set, source: str, sink: str) -> int | None:
    """The most iterations that a source is ahead of its sink in one loop; None when there is no constant limit."""
    steps = pairs.add_dims(["ahead"]).constrain([Constraint(affine("ahead") - affine(source) + sink, equality=True)])
    alone = steps.project_onto(["ahead"])
    if not alone.is_bounded("ahead"):
        return None
    high = alone.bounds("ahead")[1]
    return high.const if high.is_constant else None


def _trips(court: Court, name: str, k: int) -> float:
    """Iterations of a statement's loop number `k`; infinite when its bounds depend on sizes or other loops."""
    s = court.scop.statement(name)
    domain = s.domain.intersect_params(court.scop.context)
    loop = court.loops(name)[k]
    if domain.is_empty() or not domain.is_bounded(loop):
        return inf
    low, high = domain.bounds(loop)
    return high.const - low.const + 1 if low.is_constant and high.is_constant else inf
