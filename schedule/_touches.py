"""What each statement touches: its accesses, one record for each tensor element that it names."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from polyopt.errors import InputError
from polyopt.ir import Access, Indirect, OpaqueCall, Scop, Statement, access_chain, access_relation, accesses
from polyopt.sets import Map, Set, before, bound_below, smallest_pair, var

__all__ = ["EXACT", "MAY", "OPAQUE", "Touch", "order_of", "sizes_context", "touches", "written_tensors"]

EXACT, MAY, OPAQUE = "exact", "may", "opaque"
"""Access classes: surely this cell | perhaps this cell (a data-dependent subscript) | the whole tensor (a call)."""


@dataclass(frozen=True, slots=True)
class Touch:
    """One access of a statement; a target that is combined into is both read and written by it.

    access: None for an opaque call.  relation: instance -> cell.  combine: the operator that combines into the cell.
    """

    statement: str
    tensor: str
    access: Access | None
    relation: Map
    reads: bool
    writes: bool
    combine: str | None = None

    @property
    def access_class(self) -> str:
        if self.access is None:
            return OPAQUE
        return EXACT if self.access.is_exact else MAY

    def __str__(self) -> str:
        if self.access is None:
            return f"the call {self.statement} on {self.tensor}"
        return f"{self.access} in {self.statement}"


def sizes_context(scop: Scop) -> Set:
    """The sizes that the program is for: its context, and 0 or more for a size that the context leaves open below."""
    return bound_below(scop.context, scop.params)


def order_of(scop: Scop, statement: Statement) -> Map:
    """The original order vector of each instance, textual position last.

    Raises InputError when two instances of the statement have the same one.
    """
    context = sizes_context(scop)
    order = scop.schedule_map(statement).intersect_domain(statement.domain.intersect_params(context))
    if not order.is_injective():
        same = order.apply_range(order.reverse())
        instance = Map.from_exprs(statement.domain, "", [var(i) for i in statement.iterators])
        pair = smallest_pair(same.intersect(before(instance, instance)), order, order, scop.params)
        example = "" if pair is None else f", for example {statement.name}{list(pair.source)} and {list(pair.sink)}"
        raise InputError(
            f"two instances of {statement.name} have the same place in the original order{example}",
            help="add an iterator to its order vector",
            id="order",
        )
    return order


def written_tensors(scop: Scop) -> frozenset[str]:
    """Names of the tensors that some statement may write."""
    names: set[str] = set()
    for s in scop.statements:
        names.update(s.body.may_write if isinstance(s.body, OpaqueCall) else (s.body.target.tensor,))
    return frozenset(names)


def touches(scop: Scop, statement: Statement, tensors: frozenset[str]) -> Iterator[Touch]:
    """Every access of `statement` to one of `tensors`, each distinct one once, the target first."""
    domain = statement.domain.intersect_params(sizes_context(scop))
    if isinstance(statement.body, OpaqueCall):
        yield from _call_touches(scop, statement, statement.body, domain, tensors)
        return
    target, combine = statement.body.target, statement.body.combine
    reads = dict.fromkeys((*access_chain(target)[1:], *accesses(statement.body.value)))
    if target.tensor in tensors:
        relation = access_relation(domain, target, scop.tensor(target.tensor), scop.params)
        yield Touch(statement.name, target.tensor, target, relation, combine is not None, True, combine)
    for access in reads:
        if access.tensor in tensors:
            relation = access_relation(domain, access, scop.tensor(access.tensor), scop.params)
            yield Touch(statement.name, access.tensor, access, relation, True, False)


def _call_touches(
    scop: Scop, statement: Statement, call: OpaqueCall, domain: Set, tensors: frozenset[str]
) -> Iterator[Touch]:
    anywhere = Indirect(Access("", ()))
    for name in dict.fromkeys((*call.may_write, *call.may_read)):
        if name in tensors:
            tensor = scop.tensor(name)
            whole = access_relation(domain, Access(name, (anywhere,) * len(tensor.shape)), tensor, scop.params)
            yield Touch(statement.name, name, None, whole, name in call.may_read, name in call.may_write)
