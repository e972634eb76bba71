"""Splitting dimensions so that accesses through reshapes become linear.

`T[c // 64, c % 64]` over 0 <= c < 256 becomes `T[c1, c0]` with c = 64*c1 + c0: an exact change of the iteration space
that needs the extent to be a multiple of the divisor (otherwise the dimension stays as it is).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from polyopt.ir import (
    Access,
    Assign,
    Expr,
    Index,
    Indirect,
    Read,
    Statement,
    rewrite,
    substitute_access,
    substitute_expr,
    walk,
)
from polyopt.sets import Affine, Constraint, Floor, Interval, Set, affine, interval, simplify, var

__all__ = ["linearise"]


Extra = tuple[Expr | None, Assign | None]
"""What a kernel computes besides its statement, in the same dimensions: a starting value, a finishing assignment."""


def linearise(
    statement: Statement, parallel: tuple[str, ...], initial: Expr | None = None, finish: Assign | None = None
) -> tuple[Statement, tuple[str, ...], Extra]:
    """Split constant-size parallel dimensions until no access has a floor of one of them, as far as that goes."""
    statement, parallel, extra = _eliminate(statement, parallel, (initial, finish))
    for _ in range(8):
        ranges = constant_ranges(statement.domain)
        statement = replace(statement, body=_simplified(statement.assign, ranges))
        extra = (_simplified_value(extra[0], ranges), _simplified(extra[1], ranges) if extra[1] else None)
        found = _divisor(statement, extra, parallel, ranges)
        if found is None:
            break
        dim, divisor = found
        statement, extra = _split(statement, extra, dim, divisor)
        parallel = tuple(x for d in parallel for x in ((f"{d}_1", f"{d}_0") if d == dim else (d,)))
    return statement, parallel, extra


def _eliminate(
    statement: Statement, parallel: tuple[str, ...], extra: Extra
) -> tuple[Statement, tuple[str, ...], Extra]:
    """Replace dimensions that an equality of the domain fixes: over `[i, j] : i = j` only j is left."""
    while True:
        parts = statement.domain.basic()
        rows = [c.expr for c in parts[0] if c.equality and c.expr.is_linear()] if len(parts) == 1 else []
        found = next(((d, e) for e in rows for d in parallel if abs(e.coefficient(d)) == 1), None)
        if found is None:
            return statement, parallel, extra
        dim, row = found
        value = (row - affine(dim) * row.coefficient(dim)) * -row.coefficient(dim)
        domain = statement.domain.project_out([dim])
        order = tuple(e.substitute({dim: value}) for e in statement.order)
        body, extra = _moved(statement.assign, {dim: value}), _moved_extra(extra, {dim: value})
        statement = replace(statement, domain=domain, order=order, body=body)
        parallel = tuple(d for d in parallel if d != dim)


def constant_ranges(domain: Set) -> dict[str, Interval]:
    """Inclusive constant bounds of the dimensions that have them."""
    found: dict[str, Interval] = {}
    if domain.is_empty():
        return found
    for d in domain.dims:
        if domain.is_bounded(d):
            low, high = domain.bounds(d)
            found[d] = (interval(low, {})[0], interval(high, {})[1])
    return found


def _divisor(
    statement: Statement, extra: Extra, parallel: Iterable[str], ranges: Mapping[str, Interval]
) -> tuple[str, int] | None:
    """A dimension and a divisor that removes a floor, the largest divisor first."""
    candidates: set[tuple[int, str]] = set()
    for floor in _floors(statement, extra):
        for d in sorted(floor.arg.variables()):
            low, high = ranges.get(d, (None, None))
            step = abs(floor.arg.coefficient(d))
            if d not in parallel or low != 0 or high is None or step == 0 or floor.divisor % step:
                continue
            quotient = floor.divisor // step
            if 1 < quotient <= high and (high + 1) % quotient == 0:
                candidates.add((quotient, d))
    if not candidates:
        return None
    divisor, dim = max(candidates)
    return dim, divisor


def _floors(statement: Statement, extra: Extra) -> Iterator[Floor]:
    for value in _affines(statement, extra):
        for atom, _ in value.terms:
            if isinstance(atom, Floor):
                yield atom


def _affines(statement: Statement, extra: Extra) -> Iterator[Affine]:
    bodies = [statement.assign, *([extra[1]] if extra[1] else [])]
    values = [b.value for b in bodies] + ([extra[0]] if extra[0] is not None else [])
    for body in bodies:
        yield from _access_affines(body.target)
    for value in values:
        for node in walk(value):
            if isinstance(node, Read):
                yield from _access_affines(node.access)
            elif isinstance(node, Index):
                yield node.value


def _access_affines(access: Access) -> Iterator[Affine]:
    for s in access.subscripts:
        if isinstance(s, Indirect):
            yield s.offset
            yield from _access_affines(s.access)
        else:
            yield s


def _simplified(body: Assign, ranges: Mapping[str, Interval]) -> Assign:
    value = _simplified_value(body.value, ranges)
    assert value is not None
    return Assign(_simplified_access(body.target, ranges), value, body.combine)


def _simplified_access(a: Access, ranges: Mapping[str, Interval]) -> Access:
    subscripts = [
        Indirect(_simplified_access(s.access, ranges), simplify(s.offset, ranges))
        if isinstance(s, Indirect)
        else simplify(s, ranges)
        for s in a.subscripts
    ]
    return Access(a.tensor, tuple(subscripts))


def _simplified_value(value: Expr | None, ranges: Mapping[str, Interval]) -> Expr | None:
    def node(e: Expr) -> Expr:
        if isinstance(e, Read):
            return Read(_simplified_access(e.access, ranges))
        return Index(simplify(e.value, ranges)) if isinstance(e, Index) else e

    return None if value is None else rewrite(value, node)


def _split(statement: Statement, extra: Extra, dim: str, divisor: int) -> tuple[Statement, Extra]:
    high, low = f"{dim}_1", f"{dim}_0"
    values = {dim: var(high) * divisor + low}
    dims = [x for d in statement.iterators for x in ((high, low) if d == dim else (d,))]
    old = statement.domain
    domain = Set.empty(old.name, dims, old.params)
    inside = [Constraint(affine(low)), Constraint(affine(divisor - 1) - low)]
    for part in old.basic():
        rows = [c.substitute(values) for c in part]
        domain = domain.union(Set.from_constraints(old.name, dims, [*rows, *inside], old.params))
    order = tuple(e.substitute(values) for e in statement.order)
    body = _moved(statement.assign, values)
    return replace(statement, domain=domain, order=order, body=body), _moved_extra(extra, values)


def _moved_extra(extra: Extra, values: Mapping[str, Affine]) -> Extra:
    initial, finish = extra
    return (
        None if initial is None else substitute_expr(initial, values),
        None if finish is None else _moved(finish, values),
    )


def _moved(body: Assign, values: Mapping[str, Affine]) -> Assign:
    return Assign(substitute_access(body.target, values), substitute_expr(body.value, values), body.combine)
