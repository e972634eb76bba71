"""Exact dependences between statement instances.

Two forms.  `compute_dependences` gives every ordered pair of instances that touch the same cell, at least one of them
writing: that is what legality means, and the smallest violated pair is one of these.  `reduced_dependences` leaves out
pairs that others imply (last writer only, by dataflow analysis): the same schedules are legal, with fewer and
simpler relations.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from polyopt.errors import UnsupportedError
from polyopt.ir import Scop
from polyopt.schedule._reorder import reorder_axiom
from polyopt.schedule._touches import EXACT, MAY, OPAQUE, Touch, order_of, touches, written_tensors
from polyopt.sets import Map, before, last_sources, operation_budget

__all__ = [
    "ANTI",
    "DEPENDENCE_OPERATIONS",
    "FLOW",
    "KINDS",
    "OUTPUT",
    "Dependence",
    "Dependences",
    "compute_dependences",
    "reduced_dependences",
]

FLOW, ANTI, OUTPUT = "flow", "anti", "output"
KINDS = (FLOW, ANTI, OUTPUT)
"""Write then read, read then write, write then write.  A pair that conflicts in several ways is called by the first."""

DEPENDENCE_OPERATIONS = 20_000_000
"""Operation budget of dependence analysis: far more than a whole model takes."""


@dataclass(frozen=True, slots=True)
class Dependence:
    """Instances of `source` that must come before instances of `sink`, because of `tensor`.

    kinds: the ways in which they conflict, a part of KINDS in that order.  relation: source instance -> sink instance.
    certain: False when a data-dependent subscript decides whether they conflict.  axiom: None when the order must be
    kept; otherwise the two may change places under this axiom (empty: without any), and the pair is there for reports.
    """

    source: str
    sink: str
    kinds: tuple[str, ...]
    tensor: str
    relation: Map
    certain: bool
    axiom: str | None
    source_touch: Touch
    sink_touch: Touch

    @property
    def kind(self) -> str:
        return self.kinds[0]

    @property
    def is_ordered(self) -> bool:
        """Whether the order must be kept."""
        return self.axiom is None

    def text(self) -> str:
        """One line: kind, statements, tensor, relation."""
        notes = "" if self.certain else " (perhaps)"
        notes += "" if self.is_ordered else f" (free: {self.axiom or 'exact'})"
        return f"{self.kind} {self.source} -> {self.sink} on {self.tensor}{notes}: {self.relation}"


@dataclass(frozen=True, slots=True)
class Dependences:
    """All dependences of a program, by tensor in declared order, then source, then sink in textual order.

    orders: original order vector of each statement, textual position last.
    """

    items: tuple[Dependence, ...]
    orders: tuple[Map, ...]

    def __iter__(self) -> Iterator[Dependence]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)

    def order(self, statement: str) -> Map:
        """The original order of one statement; KeyError when there is none."""
        for order in self.orders:
            if order.in_name == statement:
                return order
        raise KeyError(statement)

    def between(self, source: str, sink: str) -> tuple[Dependence, ...]:
        return tuple(d for d in self.items if d.source == source and d.sink == sink)

    def ordered(self) -> tuple[Dependence, ...]:
        """Those that a schedule must keep."""
        return tuple(d for d in self.items if d.is_ordered)

    def text(self) -> str:
        return "\n".join(d.text() for d in self.items)


@lru_cache(maxsize=64)
def compute_dependences(scop: Scop, *, max_operations: int | None = DEPENDENCE_OPERATIONS) -> Dependences:
    """Every ordered pair of conflicting instances, for all sizes in the context.

    Pairs of combinations that may change places are kept, marked with their axiom.  Raises BudgetError when
    `max_operations` isl operations do not suffice, InputError when the original order is ambiguous.
    """
    with operation_budget("dependence analysis", max_operations):
        orders = {s.name: order_of(scop, s) for s in scop.statements}
        by_tensor = _touches_by_tensor(scop)
        precedence = _Precedence(orders, {})
        found: list[Dependence] = []
        for group in by_tensor.values():
            found += _conflicts(scop, group, precedence)
    return Dependences(tuple(found), tuple(orders.values()))


def reduced_dependences(scop: Scop, *, max_operations: int | None = DEPENDENCE_OPERATIONS) -> Dependences:
    """Dependences that every legal schedule must keep and that imply all others: the scheduler's form.

    Tensors with data-dependent accesses, calls or combinations that may change places keep every pair.
    """
    everything = compute_dependences(scop, max_operations=max_operations)
    with operation_budget("dataflow analysis", max_operations):
        orders = {m.in_name: m for m in everything.orders}
        found: list[Dependence] = []
        for tensor, group in _touches_by_tensor(scop).items():
            own = [d for d in everything if d.tensor == tensor]
            simple = all(t.access_class == EXACT for t in group) and all(d.is_ordered for d in own)
            found += _reduced(own, group, orders) if simple else [d for d in own if d.is_ordered]
    return Dependences(tuple(found), everything.orders)


def _touches_by_tensor(scop: Scop) -> dict[str, list[Touch]]:
    written = written_tensors(scop)
    groups: dict[str, list[Touch]] = {t.name: [] for t in scop.tensors if t.name in written}
    for statement in scop.statements:
        for touch in touches(scop, statement, written):
            groups[touch.tensor].append(touch)
    return groups


@dataclass(frozen=True, slots=True)
class _Precedence:
    """Which instance pairs are in the original order, one relation for each pair of statements, made once."""

    orders: Mapping[str, Map]
    known: dict[tuple[str, str], Map | None]

    def between(self, source: str, sink: str) -> Map | None:
        """None when no instance of `source` comes before one of `sink`."""
        key = (source, sink)
        if key not in self.known:
            relation = before(self.orders[source], self.orders[sink])
            self.known[key] = None if relation.is_empty() else relation
        return self.known[key]


def _conflicts(scop: Scop, group: list[Touch], precedence: _Precedence) -> Iterator[Dependence]:
    to_instance = [t.relation.reverse() for t in group]
    for a in group:
        for b, cells_of_b in zip(group, to_instance, strict=True):
            kinds = _kinds(a, b)
            earlier = precedence.between(a.statement, b.statement) if kinds else None
            if earlier is None:
                continue
            relation = a.relation.apply_range(cells_of_b).intersect(earlier)
            if not relation.is_empty():
                yield _dependence(scop, a, b, kinds, relation)


def _kinds(a: Touch, b: Touch) -> tuple[str, ...]:
    present = {FLOW: a.writes and b.reads, ANTI: a.reads and b.writes, OUTPUT: a.writes and b.writes}
    return tuple(kind for kind in KINDS if present[kind])


def _dependence(scop: Scop, a: Touch, b: Touch, kinds: tuple[str, ...], relation: Map) -> Dependence:
    classes = {a.access_class, b.access_class}
    certain = MAY not in classes or OPAQUE in classes  # a call touches every cell of its tensors
    axiom = reorder_axiom(scop, a, b)
    return Dependence(a.statement, b.statement, kinds, a.tensor, relation, certain, axiom, a, b)


def _reduced(own: Iterable[Dependence], group: list[Touch], orders: Mapping[str, Map]) -> list[Dependence]:
    """The last ones only; all of them, which means the same, where isl's dataflow analysis does not manage."""
    try:
        return list(_last_only(own, group, orders))
    except UnsupportedError:
        return [d for d in own if d.is_ordered]


def _last_only(own: Iterable[Dependence], group: list[Touch], orders: Mapping[str, Map]) -> Iterator[Dependence]:
    """Flow from the last writer, anti to the next writer, output to the next writer."""
    writes = [t for t in group if t.writes]
    reads = [t for t in group if t.reads]
    kinds = {kind for d in own for kind in d.kinds}
    relations = [t.relation for t in writes]
    used = [orders[name] for name in dict.fromkeys(t.statement for t in group)]
    for kind in (k for k in KINDS if k in kinds):
        if kind == FLOW:
            maps = last_sources(sinks=[t.relation for t in reads], must_sources=relations, orders=used)
        elif kind == ANTI:
            sources = [t.relation for t in reads]
            maps = last_sources(sinks=relations, may_sources=sources, kills=relations, orders=used)
        else:
            maps = last_sources(sinks=relations, must_sources=relations, orders=used)
        for m in maps:
            a = next(t for t in (reads if kind == ANTI else writes) if t.statement == m.in_name)
            b = next(t for t in (reads if kind == FLOW else writes) if t.statement == m.out_name)
            yield Dependence(m.in_name, m.out_name, (kind,), a.tensor, m, True, None, a, b)
