"""Which statements may share their outer loops: weakly connected components, and the partitions between none and all.

Every dependence, those that may change places too, ties two statements; a flow dependence that is the identity on the
outer dimensions makes them candidates for one group.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import networkx as nx

from polyopt.ir import Scop, Statement
from polyopt.schedule._dependences import FLOW, Dependence, Dependences
from polyopt.sets import Constraint, var

__all__ = ["FusionGroups", "Partition", "components", "dependence_graph", "fusion_groups", "shared_depth"]

Partition = tuple[tuple[str, ...], ...]
"""Groups of statement names: groups in an order that keeps every dependence, statements of a group in textual order."""


@dataclass(frozen=True, slots=True)
class FusionGroups:
    """components: statements that hang together by any dependence.  partitions: from the finest (strongly connected
    components alone) to the coarsest (everything fused that may be), each made from the one before by one fusion.
    """

    components: Partition
    partitions: tuple[Partition, ...]

    @property
    def finest(self) -> Partition:
        return self.partitions[0]

    @property
    def coarsest(self) -> Partition:
        return self.partitions[-1]


def dependence_graph(scop: Scop, dependences: Iterable[Dependence]) -> nx.DiGraph:
    """Statements as nodes in textual order, an edge for each pair with a dependence between them."""
    graph = nx.DiGraph()
    graph.add_nodes_from(s.name for s in scop.statements)
    graph.add_edges_from((d.source, d.sink) for d in dependences)
    return graph


def components(scop: Scop, dependences: Iterable[Dependence]) -> Partition:
    """The weakly connected components, by their first statement."""
    graph = dependence_graph(scop, dependences)
    position = {s.name: k for k, s in enumerate(scop.statements)}
    groups = [tuple(sorted(c, key=position.__getitem__)) for c in nx.weakly_connected_components(graph)]
    return tuple(sorted(groups, key=lambda g: position[g[0]]))


def fusion_groups(scop: Scop, dependences: Dependences) -> FusionGroups:
    """Candidate partitions into groups that share outer loops.

    Two groups are fused when a flow dependence joins them, all dependences between them agree in the outermost loop
    dimension (`shared_depth` of at least 1), and no path leads from one to the other through a third group.  The pair
    that shares the most dimensions is fused first, then the one that comes first in the text.
    """
    graph = dependence_graph(scop, dependences)
    position = {s.name: k for k, s in enumerate(scop.statements)}
    state = _Groups.finest(graph, _edge_depths(scop, dependences), _flow_pairs(dependences), position)
    partitions = [state.partition()]
    pair = state.best_pair()
    while pair is not None:
        state.fuse(*pair)
        partitions.append(state.partition())
        pair = state.best_pair()
    return FusionGroups(components(scop, dependences), tuple(partitions))


def shared_depth(scop: Scop, dependences: Sequence[Dependence]) -> int:
    """How many outermost loop dimensions are equal in source and sink of all given dependences.

    The loop dimensions of a statement are the entries of its order vector that are no constants.
    """
    depth = min(len(_loops(scop.statement(n))) for d in dependences for n in (d.source, d.sink))
    for d in dependences:
        depth = min(depth, _equal_dims(scop.statement(d.source), scop.statement(d.sink), d, depth))
    return depth


def _loops(s: Statement) -> list[int]:
    return [k for k, e in enumerate(s.order) if not e.is_constant]


def _equal_dims(source: Statement, sink: Statement, d: Dependence, most: int) -> int:
    primed = {i: f"{i}'" for i in sink.iterators}
    pairs = d.relation.wrapped(source.iterators, tuple(primed.values()))
    for depth in range(most):
        a = source.order[_loops(source)[depth]]
        b = sink.order[_loops(sink)[depth]].substitute({i: var(p) for i, p in primed.items()})
        if not pairs.is_subset(pairs.constrain([Constraint(a - b, equality=True)])):
            return depth
    return most


def _edge_depths(scop: Scop, dependences: Dependences) -> dict[tuple[str, str], int]:
    """Shared depth for each pair of statements with a dependence, over all dependences between the two."""
    by_pair: dict[tuple[str, str], list[Dependence]] = {}
    for d in dependences:
        if d.source != d.sink:
            by_pair.setdefault((d.source, d.sink), []).append(d)
    return {pair: shared_depth(scop, ds) for pair, ds in by_pair.items()}


def _flow_pairs(dependences: Dependences) -> set[tuple[str, str]]:
    return {(d.source, d.sink) for d in dependences if FLOW in d.kinds}


@dataclass(slots=True)
class _Groups:
    """The groups while they grow, each called by its first statement.

    graph: groups and the dependences between them.  depths: shared depth of each pair of groups with a dependence.
    flows: the pairs with a flow dependence.
    """

    graph: nx.DiGraph
    members: dict[str, list[str]]
    depths: dict[tuple[str, str], int]
    flows: set[tuple[str, str]]
    position: Mapping[str, int]

    @staticmethod
    def finest(
        graph: nx.DiGraph,
        depths: Mapping[tuple[str, str], int],
        flows: set[tuple[str, str]],
        position: Mapping[str, int],
    ) -> _Groups:
        """One group for each strongly connected component."""
        found = [sorted(c, key=position.__getitem__) for c in nx.strongly_connected_components(graph)]
        group_of = {n: c[0] for c in found for n in c}
        quotient = nx.DiGraph()
        quotient.add_nodes_from(sorted(set(group_of.values()), key=position.__getitem__))
        quotient.add_edges_from((group_of[a], group_of[b]) for a, b in graph.edges if group_of[a] != group_of[b])
        joined = {(group_of[a], group_of[b]) for a, b in flows}
        state = _Groups(quotient, {c[0]: c for c in found}, {}, joined, position)
        for (a, b), depth in depths.items():
            state._limit(group_of[a], group_of[b], depth)
        return state

    def _limit(self, a: str, b: str, depth: int) -> None:
        if a != b:
            self.depths[a, b] = min(depth, self.depths.get((a, b), depth))

    def best_pair(self) -> tuple[str, str] | None:
        """The two groups to fuse next; None when no two may be."""
        fusable = [p for p in self.depths if self.depths[p] > 0 and p in self.flows]
        fusable.sort(key=lambda p: (-self.depths[p], self.position[p[0]], self.position[p[1]]))
        return next((p for p in fusable if not self._has_detour(*p)), None)

    def _has_detour(self, a: str, b: str) -> bool:
        """Whether a path other than the edge itself leads from `a` to `b`."""
        return any(c != b and nx.has_path(self.graph, c, b) for c in self.graph.successors(a))

    def fuse(self, a: str, b: str) -> None:
        first, second = sorted((a, b), key=self.position.__getitem__)
        sources, sinks = list(self.graph.predecessors(second)), list(self.graph.successors(second))
        self.graph.remove_node(second)
        self.graph.add_edges_from((p, first) for p in sources if p != first)
        self.graph.add_edges_from((first, n) for n in sinks if n != first)
        self.members[first] = sorted(self.members[first] + self.members.pop(second), key=self.position.__getitem__)
        for pair in [p for p in self.depths if second in p]:
            x, y = (first if g == second else g for g in pair)
            self._limit(x, y, self.depths.pop(pair))
            if pair in self.flows:
                self.flows.add((x, y))

    def partition(self) -> Partition:
        ordered = nx.lexicographical_topological_sort(self.graph, key=self.position.__getitem__)
        return tuple(tuple(self.members[g]) for g in ordered)
