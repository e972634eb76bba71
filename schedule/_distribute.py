"""Loop distribution into sequential loops around fully parallel statements.

Level by level: the statements' dependence graph is split into strongly connected components.  A component without a
remaining dependence is a leaf: all its remaining dimensions are parallel.  A component whose dependences are not
carried by the present loop makes that loop parallel, to be placed anywhere.  Only a loop that carries a dependence of
its component stays sequential. Source of the idea: Allen and Kennedy, "Automatic translation of FORTRAN programs to
vector form", TOPLAS 1987.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

import networkx as nx

from polyopt.ir import Scop, Statement
from polyopt.schedule._dependences import Dependence, Dependences
from polyopt.sets import Affine, Constraint, Set, affine

__all__ = ["Leaf", "LoopTree", "SequentialLoop", "distribute", "leaves"]


@dataclass(frozen=True, slots=True)
class Leaf:
    """One statement; `parallel` are its iterators that no dependence orders, the others run in the loops around it."""

    statement: str
    parallel: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SequentialLoop:
    """Iterations in increasing order; `iterators` gives each statement's own name of the loop's iterator."""

    iterators: tuple[tuple[str, str], ...]
    body: tuple[LoopTree, ...]


LoopTree = Leaf | SequentialLoop


@dataclass(frozen=True, slots=True)
class _Edge:
    """One dependence as a set of pairs: dimensions of the source, then those of the sink with a prime."""

    source: str
    sink: str
    pairs: Set


def distribute(scop: Scop, dependences: Dependences) -> tuple[Scop, tuple[LoopTree, ...]]:
    """Distribute a normalised scop (every order entry a constant or a plain iterator).

    Returns the scop, in which statements that share a sequential loop without having its iterator got one, and the
    nodes in an order that keeps every dependence.
    """
    worker = _Distributor(scop)
    edges = [_edge(d, worker.statements) for d in dependences.ordered()]
    nodes = worker.split([s.name for s in scop.statements], 0, edges, {s.name: () for s in scop.statements})
    statements = tuple(worker.statements[s.name] for s in scop.statements)
    return replace(scop, statements=statements), nodes


def leaves(nodes: Iterable[LoopTree]) -> Iterator[Leaf]:
    """Every leaf in execution order."""
    for node in nodes:
        if isinstance(node, Leaf):
            yield node
        else:
            yield from leaves(node.body)


def primed(name: str) -> str:
    """The sink's copy of an iterator in a set of dependence pairs."""
    return f"{name}_sink"


def _edge(d: Dependence, statements: Mapping[str, Statement]) -> _Edge:
    source_dims = statements[d.source].iterators
    sink_dims = tuple(primed(n) for n in statements[d.sink].iterators)
    return _Edge(d.source, d.sink, d.relation.wrapped(source_dims, sink_dims))


class _Distributor:
    """The recursion's state: statements by name (changed only by `_with_iterator`) and the order vectors' length."""

    def __init__(self, scop: Scop) -> None:
        self.statements: dict[str, Statement] = {s.name: s for s in scop.statements}
        self.position = {s.name: k for k, s in enumerate(scop.statements)}
        self.length = scop.order_length()

    def split(
        self, names: list[str], level: int, edges: list[_Edge], parallel: Mapping[str, tuple[str, ...]]
    ) -> tuple[LoopTree, ...]:
        graph = nx.DiGraph()
        graph.add_nodes_from(names)
        inside = set(names)
        own = [e for e in edges if e.source in inside and e.sink in inside]
        graph.add_edges_from((e.source, e.sink) for e in own)
        nodes: list[LoopTree] = []
        for component in self._components(graph):
            mine = [e for e in own if e.source in component and e.sink in component]
            nodes += self._component(sorted(component, key=self.position.__getitem__), level, mine, parallel)
        return tuple(nodes)

    def _components(self, graph: nx.DiGraph[str]) -> list[set[str]]:
        condensed = nx.condensation(graph)
        first = {c: min(self.position[n] for n in condensed.nodes[c]["members"]) for c in condensed}
        order = nx.lexicographical_topological_sort(condensed, key=first.__getitem__)
        return [set(condensed.nodes[c]["members"]) for c in order]

    def _component(
        self, names: list[str], level: int, edges: list[_Edge], parallel: Mapping[str, tuple[str, ...]]
    ) -> list[LoopTree]:
        if len(names) == 1 and not edges:
            return [self._leaf(names[0], level, parallel)]
        entries = {n: self._entry(n, level) for n in names}
        if level >= self.length:
            return [self._leaf(n, level, parallel) for n in names]
        if all(e.is_constant for e in entries.values()):
            return self._sequence(names, level, edges, parallel, entries)
        self._complete(entries, level)
        iterators = {n: next(iter(self._entry(n, level).variables())) for n in names}
        carried, kept = self._carried(edges, iterators)
        if not carried:
            more = {n: (*parallel[n], iterators[n]) for n in names}
            return list(self.split(names, level + 1, kept, {**parallel, **more}))
        body = self.split(names, level + 1, kept, parallel)
        return [SequentialLoop(tuple((n, iterators[n]) for n in names), body)]

    def _entry(self, name: str, level: int) -> Affine:
        order = self.statements[name].order
        return order[level] if level < len(order) else affine(0)

    def _leaf(self, name: str, level: int, parallel: Mapping[str, tuple[str, ...]]) -> Leaf:
        statement = self.statements[name]
        rest = [e for e in statement.order[level:] if not e.is_constant]
        remaining = {v for e in rest for v in e.variables()}
        chosen = set(parallel[name]) | remaining
        return Leaf(name, tuple(d for d in statement.iterators if d in chosen))

    def _sequence(
        self,
        names: list[str],
        level: int,
        edges: list[_Edge],
        parallel: Mapping[str, tuple[str, ...]],
        entries: Mapping[str, Affine],
    ) -> list[LoopTree]:
        nodes: list[LoopTree] = []
        for value in sorted({e.const for e in entries.values()}):
            group = [n for n in names if entries[n].const == value]
            nodes += self.split(group, level + 1, edges, parallel)
        return nodes

    def _complete(self, entries: Mapping[str, Affine], level: int) -> None:
        """Give statements with a constant entry an iterator that has just this value."""
        for name, entry in entries.items():
            if entry.is_constant:
                self.statements[name] = _with_iterator(self.statements[name], level, entry.const)

    def _carried(self, edges: list[_Edge], iterators: Mapping[str, str]) -> tuple[bool, list[_Edge]]:
        """Whether a dependence crosses iterations, and the dependences inside one iteration."""
        carried, kept = False, []
        for e in edges:
            edge = self._with_dims(e)
            source, sink = affine(iterators[e.source]), affine(primed(iterators[e.sink]))
            carried = carried or not edge.pairs.constrain([Constraint(sink - source - 1)]).is_empty()
            same = edge.pairs.constrain([Constraint(sink - source, equality=True)])
            if not same.is_empty():
                kept.append(replace(edge, pairs=same))
        return carried, kept

    def _with_dims(self, e: _Edge) -> _Edge:
        """Pairs extended by iterators that `_complete` added since."""
        missing: list[Constraint] = []
        names: list[str] = []
        for statement, rename in ((self.statements[e.source], str), (self.statements[e.sink], primed)):
            for d in statement.iterators:
                if rename(d) not in e.pairs.dims:
                    names.append(rename(d))
                    missing.append(Constraint(affine(rename(d)) - _fixed_value(statement, d), equality=True))
        return replace(e, pairs=e.pairs.add_dims(names).constrain(missing)) if names else e


def _with_iterator(statement: Statement, level: int, value: int) -> Statement:
    name = f"only{level}"
    domain = statement.domain.add_dims([name]).constrain([Constraint(affine(name) - value, equality=True)])
    padded = (*statement.order, *[affine(0)] * (level + 1 - len(statement.order)))
    return replace(statement, domain=domain, order=(*padded[:level], affine(name), *padded[level + 1 :]))


def _fixed_value(statement: Statement, dim: str) -> int:
    low, _ = statement.domain.bounds(dim)
    return low.evaluate({})
