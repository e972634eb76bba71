"""Dependences between statements inside one iteration of their outer loops."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

import networkx as nx

from polyopt.explain._judge import Court
from polyopt.schedule import Dependence
from polyopt.sets import Constraint, Set, affine

__all__ = ["Edge", "Edges"]


@dataclass(frozen=True, slots=True)
class Edge:
    """A dependence as a set of pairs.  loops: the dimensions that are loops of source and sink, outermost first."""

    source: str
    sink: str
    pairs: Set
    loops: tuple[tuple[str, str], ...]

    def pairs_inside(self, common: int) -> Set:
        """The pairs inside one iteration of the outermost `common` loops."""
        same = [Constraint(affine(a) - b, equality=True) for a, b in self.loops[:common]]
        return self.pairs.constrain(same)


@dataclass(frozen=True, slots=True)
class Edges:
    """The ordered dependences between different statements.  known: those inside one iteration, by number of loops."""

    edges: tuple[Edge, ...]
    known: dict[int, tuple[Edge, ...]] = field(default_factory=dict)

    @staticmethod
    def of(court: Court) -> Edges:
        ordered = (d for d in court.dependences if d.is_ordered and d.source != d.sink)
        return Edges(tuple(_edge(court, d) for d in ordered))

    def inside(self, common: int) -> tuple[Edge, ...]:
        """The edges that have a pair inside one iteration of the outermost `common` loops."""
        if common not in self.known:
            self.known[common] = tuple(e for e in self.edges if not e.pairs_inside(common).is_empty())
        return self.known[common]

    def graph(self, names: Collection[str], common: int) -> nx.DiGraph[str]:
        """Statements `names` and the edges among them inside one iteration of `common` loops."""
        graph: nx.DiGraph[str] = nx.DiGraph()
        graph.add_nodes_from(names)
        graph.add_edges_from((e.source, e.sink) for e in self.inside(common) if e.source in names and e.sink in names)
        return graph

    def tied(self, names: Iterable[str], common: int, statement: str) -> tuple[str, ...]:
        """Those of `names` that a cycle of dependences inside one iteration of `common` loops ties to `statement`."""
        inside = tuple(names)
        components = nx.strongly_connected_components(self.graph(inside, common))
        found = next(c for c in components if statement in c)
        return tuple(n for n in inside if n in found)


def _edge(court: Court, d: Dependence) -> Edge:
    source, sink = (court.scop.statement(n) for n in (d.source, d.sink))
    primed = {i: f"{i}'" for i in sink.iterators}
    pairs = d.relation.wrapped(source.iterators, primed.values()).intersect_params(court.scop.context)
    loops = tuple((a, primed[b]) for a, b in zip(court.loops(d.source), court.loops(d.sink), strict=False))
    return Edge(d.source, d.sink, pairs, loops)
