"""May the iterations of one level run in any order?  Decided from accesses and domains alone, at fixed sizes.

Two accesses conflict when one writes and instances at *different* values of the level, but at the same values of all
levels outside it, touch one cell.  Combinations into a tensor with one operator do not conflict with each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import combinations_with_replacement

from polyopt.ir import COMBINES, Access, Indirect, map_accesses
from polyopt.reference._part import Level, Part
from polyopt.sets import Affine, Constraint, Map, Set, affine

__all__ = ["blocking_tensors", "expand_over", "is_private", "runs_before"]

Use = tuple[Part, Access, str]


def blocking_tensors(parts: Sequence[Part], levels: Sequence[Level], name: str) -> list[str]:
    """Tensors on which instances at different values of level `name` may conflict, in order of first access."""
    uses = _uses(parts)
    outer = frozenset(v.name for v in levels)
    return [t for t, found in uses.items() if _conflicts(found, outer, name)]


def _uses(parts: Iterable[Part]) -> dict[str, list[Use]]:
    uses: dict[str, list[Use]] = {}
    for p in parts:
        for access, use in p.accesses():
            uses.setdefault(access.tensor, []).append((p, access, use))
    return uses


def _conflicts(uses: list[Use], outer: frozenset[str], name: str) -> bool:
    if all(use == "read" for _, _, use in uses):
        return False
    pairs = combinations_with_replacement(list(dict.fromkeys(uses)), 2)
    return any(_may_meet(a, b, outer, name) for a, b in pairs if not _commute(a[2], b[2]))


def _commute(a: str, b: str) -> bool:
    """Two reads, or two combinations with one operator; a read between the latter meets one of them."""
    return a == b and (a == "read" or a in COMBINES)


def _may_meet(a: Use, b: Use, outer: frozenset[str], name: str) -> bool:
    (p, first, _), (q, second, _) = a, b
    pairs = [
        (x, y)
        for x, y in zip(first.subscripts, second.subscripts, strict=True)
        if isinstance(x, Affine) and isinstance(y, Affine)
    ]
    if any(_separates(x, y, outer, name) for x, y in pairs):
        return False
    joint, left, right = _joint(p, q, outer)
    equal = [Constraint(x.substitute(left) - y.substitute(right), True) for x, y in pairs]
    joint = joint.constrain(equal)
    here, there = affine(left[name]), affine(right[name])
    if not joint.constrain([Constraint(there - here - 1)]).is_empty():
        return True
    return a is not b and not joint.constrain([Constraint(here - there - 1)]).is_empty()


def _separates(x: Affine, y: Affine, outer: frozenset[str], name: str) -> bool:
    """Whether equal subscripts imply one value of the level, or the subscripts never are equal."""
    if x.variables() <= outer and y.variables() <= outer:
        return (x - y).is_constant and x != y
    if x != y or not x.variables() <= outer | {name}:
        return False
    return x.coefficient(name) != 0 and x.is_linear_in([name])


def _joint(p: Part, q: Part, outer: frozenset[str]) -> tuple[Set, dict[str, str], dict[str, str]]:
    """Pairs of instances that agree on the outer levels, and how each side's other dimensions are called."""
    left = {d: d if d in outer else f"p.{d}" for d in p.domain.dims}
    right = {d: d if d in outer else f"q.{d}" for d in q.domain.dims}
    first, second = p.domain.rename(dims=left), q.domain.rename(dims=right)
    own, other = set(first.dims), set(second.dims)
    first = first.add_dims([d for d in second.dims if d not in own])
    second = second.add_dims([d for d in first.dims if d not in other])
    return first.intersect(second), left, right


def runs_before(a: Part, b: Part) -> bool:
    """Whether every instance of `a` comes before every instance of `b` at the same levels, as far as constants tell."""
    for x, y in zip(a.order, b.order, strict=True):
        if not (x.is_constant and y.is_constant):
            return False
        if x != y:
            return x.const < y.const
    return a.position < b.position


def is_private(parts: Sequence[Part], tensor: str, levels: Sequence[Level], name: str) -> bool:
    """Whether each iteration of level `name` overwrites every cell of `tensor` before it reads it.

    Sufficient test: one part writes plainly, runs before all other parts that read or combine, and covers their cells.
    """
    uses = _uses(parts)[tensor]
    if not all(access.is_exact for _, access, _ in uses):
        return False
    readers = [(p, access) for p, access, use in uses if use != "write"]
    kept = [*(v.name for v in levels), name]
    for writer, target, use in uses:
        if use == "write" and all(p is not writer and runs_before(writer, p) for p, _ in readers):
            covered = _touched(writer, target, kept)
            return all(_touched(p, access, kept).is_subset(covered) for p, access in readers)
    return False


def _touched(part: Part, access: Access, kept: Sequence[str]) -> Set:
    """Cells by iteration: { [levels, cell] }."""
    columns = [*(affine(k) for k in kept), *access.affine_subscripts]
    return Map.from_exprs(part.domain, "", columns).range([f"c{k}" for k in range(len(columns))])


def expand_over(parts: Sequence[Part], tensor: str, name: str, low: int) -> list[Part]:
    """Give `tensor` a leading axis for level `name`, which starts at `low`."""
    leading = affine(name) - low

    def change(access: Access) -> Access:
        inner = tuple(s if isinstance(s, Affine) else Indirect(change(s.access), s.offset) for s in access.subscripts)
        return Access(access.tensor, (leading, *inner) if access.tensor == tensor else inner)

    return [replace(p, target=change(p.target), value=map_accesses(p.value, change)) for p in parts]
