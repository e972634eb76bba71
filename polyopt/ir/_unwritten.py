"""Cells that are read before anything wrote them, found exactly for all sizes in the context.

Only reads that surely happen count: those of exact accesses outside the branches of a selection.  A tensor that some
data-dependent write or call may fill is left alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from polyopt.ir.expr import Access, Apply, Cast, Expr, Read, Uninterpreted
from polyopt.ir.scop import Assign, Scop, Statement, access_relation
from polyopt.sets import Map, Set, before

__all__ = ["Unwritten", "unwritten_reads"]


@dataclass(frozen=True, slots=True)
class Unwritten:
    """`statement` reads `access` at the instances `instances` before any statement wrote the cell."""

    statement: Statement
    access: Access
    instances: Set


def unwritten_reads(scop: Scop) -> Iterator[Unwritten]:
    """In textual order, one for each access with such instances."""
    known = _Known(scop)
    for s in scop.statements:
        if isinstance(s.body, Assign):
            for access in dict.fromkeys(_sure_reads(s.body)):
                if scop.tensor(access.tensor).role in ("output", "temp") and access.tensor not in known.uncertain:
                    left = known.never_written(s, access)
                    if not left.is_empty():
                        yield Unwritten(s, access, left)


def _sure_reads(body: Assign) -> Iterator[Access]:
    if body.combine is not None and body.target.is_exact:
        yield body.target
    yield from _evaluated(body.value)


def _evaluated(value: Expr) -> Iterator[Access]:
    """Exact accesses that every evaluation reads."""
    if isinstance(value, Read):
        if value.access.is_exact:
            yield value.access
        return
    for part in _parts(value):
        yield from _evaluated(part)


def _parts(value: Expr) -> tuple[Expr, ...]:
    """The operands that are surely evaluated."""
    if isinstance(value, Apply):
        return value.args[:1] if value.op in ("select", "and", "or") else value.args
    if isinstance(value, Cast):
        return (value.arg,)
    return value.args if isinstance(value, Uninterpreted) else ()


@dataclass(slots=True)
class _Known:
    """uncertain: tensors that a data-dependent write or a call may fill.  writers: tensor -> statements whose write is
    exact.
    """

    scop: Scop
    uncertain: set[str] = field(default_factory=set)
    writers: dict[str, list[Statement]] = field(default_factory=dict)
    orders: dict[str, Map] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for s in self.scop.statements:
            if not isinstance(s.body, Assign):
                self.uncertain |= set(s.body.may_write)
            elif s.body.target.is_exact:
                self.writers.setdefault(s.body.target.tensor, []).append(s)
            else:
                self.uncertain.add(s.body.target.tensor)

    def never_written(self, s: Statement, access: Access) -> Set:
        """The instances of `s` that read a cell which nothing wrote before."""
        domain = s.domain.intersect_params(self.scop.context)
        tensor = self.scop.tensor(access.tensor)
        read = access_relation(domain, access, tensor, self.scop.params)
        left = domain
        for writer in self.writers.get(access.tensor, ()):
            if left.is_empty():
                break
            written = self.written_by(writer)
            pairs = written.apply_range(read.reverse())
            if not _is_wholly_before(writer, s):
                pairs = pairs.intersect(before(self.order(writer), self.order(s)))
            covered = pairs.range(domain.dims).rename(name=s.name)
            left = left.subtract(covered)
        return left

    def written_by(self, writer: Statement) -> Map:
        domain = writer.domain.intersect_params(self.scop.context)
        target = writer.assign.target
        return access_relation(domain, target, self.scop.tensor(target.tensor), self.scop.params)

    def order(self, s: Statement) -> Map:
        if s.name not in self.orders:
            self.orders[s.name] = self.scop.schedule_map(s)
        return self.orders[s.name]


def _is_wholly_before(a: Statement, b: Statement) -> bool:
    """Whether constants alone put every instance of `a` before every one of `b`."""
    for x, y in zip(a.order, b.order, strict=False):
        if not (x.is_constant and y.is_constant):
            return False
        if x.const != y.const:
            return x.const < y.const
    return False
