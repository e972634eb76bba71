"""Statements while a plan is made: sizes filled in, iterators replaced level by level by the symbols of the order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from polyopt.ir import Access, Apply, Expr, Read, Scop, Statement, accesses, substitute_access, substitute_expr
from polyopt.reference._node import build_node, dtype_kind
from polyopt.sets import Affine, Constraint, Set, affine

__all__ = ["Level", "Part", "bind_level", "drop_level", "level_bounds", "make_parts"]


@dataclass(frozen=True, slots=True)
class Level:
    """One level of the order. `vector`: its iterations are independent, so that it becomes an axis of arrays."""

    name: str
    vector: bool


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """A statement without parameters.

    values: every iterator in terms of levels and `free`.  free: iterators no level has replaced.  domain: over levels
    and free.  order: the levels still to come.  whole_order: all of them, in terms of the iterators.  instances: the
    domain over the iterators.  bound: level -> its position in whole_order.
    """

    position: int
    name: str
    values: tuple[tuple[str, Affine], ...]
    free: tuple[str, ...]
    domain: Set
    order: tuple[Affine, ...]
    whole_order: tuple[Affine, ...]
    target: Access
    value: Expr
    combine: str | None
    instances: Set
    bound: tuple[tuple[str, int], ...] = ()

    def accesses(self) -> list[tuple[Access, str]]:
        """Every access with its use: `read`, `write`, or the combiner for a target that is combined into."""
        own = [(a, "read") for a in (*_inner(self.target), *accesses(self.value))]
        return [(self.target, self.combine or "write"), *own]


def _inner(access: Access) -> tuple[Access, ...]:
    """The accesses inside the data-dependent subscripts of a target."""
    return accesses(Read(access))[1:]


def make_parts(scop: Scop, sizes: Mapping[str, int]) -> list[Part]:
    """One part for every statement that has an instance at these sizes."""
    parts = []
    for position, s in enumerate(scop.statements):
        domain = s.domain.fix(sizes)
        if not domain.is_empty():
            parts.append(_part(scop, position, s, _without_params(domain, sizes), sizes))
    return parts


def _without_params(domain: Set, sizes: Mapping[str, int]) -> Set:
    """The same points with no parameter in sight."""
    found: Set | None = None
    for piece in domain.basic():
        rows = [c.substitute(sizes) for c in piece]
        if not all(c.holds({}) for c in rows if c.expr.is_constant):
            continue
        part = Set.from_constraints("", domain.dims, [c for c in rows if not c.expr.is_constant])
        found = part if found is None else found.union(part)
    return found if found is not None else Set.empty("", domain.dims)


def _part(scop: Scop, position: int, s: Statement, domain: Set, sizes: Mapping[str, int]) -> Part:
    padding = (affine(0),) * (scop.order_length() - len(s.order))
    order = tuple(e.substitute(sizes) for e in s.order) + padding
    target = substitute_access(s.assign.target, sizes)
    value, combine = _find_combination(target, substitute_expr(s.assign.value, sizes), s.assign.combine)
    if combine is not None and not _is_reorderable(scop, target.tensor, value, combine):
        value, combine = Apply(combine, (Read(target), value)), None
    values = tuple((i, affine(i)) for i in s.iterators)
    return Part(position, s.name, values, s.iterators, domain, order, order, target, value, combine, domain)


def _find_combination(target: Access, value: Expr, combine: str | None) -> tuple[Expr, str | None]:
    """`t = t + e` as `t += e` (also `*`, min, max, either side), when e does not read the tensor of t."""
    if combine is None and isinstance(value, Apply) and value.op in ("+", "*", "min", "max"):
        for own, other in (value.args, value.args[::-1]):
            if own == Read(target) and all(a.tensor != target.tensor for a in accesses(other)):
                return other, value.op
    return value, combine


def _is_reorderable(scop: Scop, target: str, value: Expr, combine: str) -> bool:
    """Whether combining in any order gives the same: stores to integers must not cut off or wrap differently."""
    tensors = scop.tensor_map()
    into = tensors[target].dtype
    node = build_node(value, tensors)
    if dtype_kind(into) == "float":
        return True
    if dtype_kind(into) == "bool":
        return combine in ("min", "max") and node.kind == "bool"
    if node.kind == "float":
        return False
    same = isinstance(value, Read) and tensors[value.access.tensor].dtype == into
    return combine in ("+", "*") or into == "int64" or same


def drop_level(part: Part) -> Part:
    """The part without its first remaining order entry."""
    return replace(part, order=part.order[1:])


def bind_level(part: Part, name: str) -> Part:
    """Let `name` stand for the first remaining order entry; an iterator that it determines is replaced."""
    entry = part.order[0]
    iterator = _solvable(part, entry)
    bound = (*part.bound, (name, len(part.whole_order) - len(part.order)))
    if iterator is None:
        domain = part.domain.add_dims([name]).constrain([Constraint(entry - name, True)])
        return replace(part, domain=domain, order=part.order[1:], bound=bound)
    c = entry.coefficient(iterator)
    rest = entry - affine(iterator) * c
    solved = (affine(name) - rest) // c if c > 0 else (rest - name) // -c
    if entry == affine(iterator):
        domain = part.domain.rename(dims={iterator: name})
    else:
        domain = part.domain.add_dims([name]).constrain([Constraint(entry - name, True)]).project_out([iterator])
    by = {iterator: solved}
    return replace(
        part,
        values=tuple((i, e.substitute(by)) for i, e in part.values),
        free=tuple(f for f in part.free if f != iterator),
        domain=domain,
        order=tuple(e.substitute(by) for e in part.order[1:]),
        target=substitute_access(part.target, by),
        value=substitute_expr(part.value, by),
        bound=bound,
    )


def _solvable(part: Part, entry: Affine) -> str | None:
    """A free iterator that occurs in `entry` only as a plain multiple; one with coefficient 1 or -1 if there is one."""
    found = [f for f in part.free if entry.coefficient(f) and entry.is_linear_in([f])]
    return min(found, key=lambda f: abs(entry.coefficient(f)), default=None)


def level_bounds(part: Part, name: str, known: tuple[str, ...]) -> tuple[Affine, Affine]:
    """Inclusive bounds of a dimension of the domain in terms of the levels in `known`."""
    return part.domain.bounds(name, known)
