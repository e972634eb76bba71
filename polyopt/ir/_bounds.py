"""Questions about one statement's domain, answered from its constraints when they say it plainly, by isl otherwise.

A model has hundreds of statements whose accesses are plain; isl is asked only about the rest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from polyopt.errors import InputError
from polyopt.sets import Affine, Constraint, Interval, Map, Set, interval

__all__ = [
    "DomainFacts",
    "domain_facts",
    "is_injective",
    "same_place_example",
    "smallest_example",
    "unbounded_side",
    "violation",
]

Terms = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Piece:
    """One conjunction: `least[terms]` is the smallest c with `terms + c >= 0` among its rows; `ranges` of variables."""

    rows: tuple[Constraint, ...]
    least: Mapping[Terms, int]
    ranges: Mapping[str, Interval]

    def entails(self, expr: Affine) -> bool:
        """Whether the rows plainly say `expr >= 0`; False means only that they do not."""
        known = self.least.get(expr.terms)
        if known is not None and known <= expr.const:
            return True
        low, _ = interval(expr, self.ranges)
        return low is not None and low >= 0


@dataclass(frozen=True, slots=True)
class DomainFacts:
    """A domain within the context, and its conjunctions."""

    domain: Set
    pieces: tuple[Piece, ...]

    def always_nonnegative(self, expr: Affine) -> bool:
        """Whether `expr >= 0` at every point."""
        if all(p.entails(expr) for p in self.pieces):
            return True
        return self.domain.constrain([Constraint(-expr - 1)]).is_empty()


def domain_facts(domain: Set, context: Set, context_rows: Sequence[Constraint]) -> DomainFacts:
    """Facts about `domain` within `context`, whose own rows (when it is one conjunction) are `context_rows`."""
    inside = domain.intersect_params(context)
    return DomainFacts(inside, tuple(_piece([*rows, *context_rows]) for rows in domain.basic()))


def _piece(rows: Sequence[Constraint]) -> Piece:
    least: dict[Terms, int] = {}
    ranges: dict[str, Interval] = {}
    for row in rows:
        for expr in (row.expr, -row.expr) if row.equality else (row.expr,):
            least[expr.terms] = min(expr.const, least.get(expr.terms, expr.const))
            _narrow(ranges, expr)
    return Piece(tuple(rows), least, ranges)


def _narrow(ranges: dict[str, Interval], expr: Affine) -> None:
    """Use `c * name + const >= 0` for the range of `name`."""
    if len(expr.terms) != 1:
        return
    name, c = expr.terms[0]
    if not isinstance(name, str):
        return
    low, high = ranges.get(name, (None, None))
    if c > 0:
        bound = -(expr.const // c)
        low = bound if low is None else max(low, bound)
    else:
        bound = expr.const // -c
        high = bound if high is None else min(high, bound)
    ranges[name] = (low, high)


# -- bounded iterators ------------------------------------------------------------------------------------------------
def unbounded_side(facts: DomainFacts) -> tuple[str, str] | None:
    """The first iterator without a bound in the params, and which: 'lower' or 'upper'; None when all have both."""
    dims = facts.domain.dims
    if all(_plainly_bounded(dims, p.rows) for p in facts.pieces):
        return None
    for dim in dims:
        alone = facts.domain.project_onto([dim])
        if not alone.is_empty() and not alone.is_bounded(dim):
            below = alone.constrain([Constraint(Affine(((dim, -1),)))])
            lower = below.is_empty() or below.is_bounded(dim)
            return dim, "upper" if lower else "lower"
    return None


def _plainly_bounded(dims: Sequence[str], rows: Sequence[Constraint]) -> bool:
    """Whether bounds follow row by row, each from iterators that are already bounded."""
    linear = [r for r in rows if r.expr.is_linear_in(dims)]
    bounded: set[str] = set()
    while len(bounded) < len(dims):
        sides: dict[str, set[int]] = {}
        for row in linear:
            free = [(a, c) for a, c in row.expr.terms if isinstance(a, str) and a in dims and a not in bounded]
            if len(free) == 1:
                name, c = free[0]
                sides.setdefault(str(name), set()).update((1, -1) if row.equality else (1 if c > 0 else -1,))
        new = {name for name, found in sides.items() if len(found) == 2}
        if not new:
            return False
        bounded |= new
    return True


# -- cells out of bounds ----------------------------------------------------------------------------------------------
def violation(facts: DomainFacts, index: Affine, extent: Affine, params: Sequence[str]) -> dict[str, int] | None:
    """The smallest sizes and the first instance with `index` outside of `0 <= index < extent`; None when there is none.

    An empty dict says that there are such instances but no smallest one.
    """
    wrong = [e for e in (index, extent - 1 - index) if not facts.always_nonnegative(e)]
    found = [smallest_example(facts.domain.constrain([Constraint(-e - 1)]), params) for e in wrong]
    names = (*params, *facts.domain.dims)
    return min(found, key=lambda at: [at[n] for n in names] if at else [], default=None)


def smallest_example(points: Set, params: Sequence[str]) -> dict[str, int]:
    """The smallest sizes and the first point; empty when there is no smallest one."""
    try:
        return points.smallest(params) or {}
    except InputError:
        return {}


# -- the order of instances -------------------------------------------------------------------------------------------
def is_injective(facts: DomainFacts, order: Sequence[Affine]) -> bool:
    """Whether no two instances have the same order vector."""
    known: set[str] = set()
    dims = frozenset(facts.domain.dims)
    changed = True
    while changed and known != dims:
        changed = False
        for expr in order:
            free = expr.variables() & (dims - known)
            if len(free) == 1 and expr.is_linear_in(free):
                known |= free
                changed = True
    return known == dims or Map.from_exprs(facts.domain, "", tuple(order)).is_injective()


def same_place_example(
    facts: DomainFacts, order: Sequence[Affine], params: Sequence[str]
) -> tuple[dict[str, int], dict[str, int]] | None:
    """Smallest sizes and the first two instances with the same order vector, one after the other in the iterators."""
    dims = facts.domain.dims
    second = tuple(f"{d}_2" for d in dims)
    placed = Map.from_exprs(facts.domain, "", tuple(order))
    pairs = placed.apply_range(placed.reverse()).wrapped(dims, second)
    found: list[dict[str, int]] = []
    for k, d in enumerate(dims):
        equal = [Constraint(_difference(a, b), equality=True) for a, b in zip(dims[:k], second[:k], strict=True)]
        later = pairs.constrain([*equal, Constraint(_difference(second[k], d) - 1)])
        at = smallest_example(later, params)
        if at:
            found.append(at)
    best = min(found, key=lambda at: [at[n] for n in (*params, *dims, *second)], default=None)
    if best is None:
        return None
    sizes = {p: best[p] for p in params}
    return {**sizes, **{d: best[d] for d in dims}}, {**sizes, **{d: best[s] for d, s in zip(dims, second, strict=True)}}


def _difference(a: str, b: str) -> Affine:
    return Affine(((a, 1),)) - b
