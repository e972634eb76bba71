"""Statements under construction: boxes of iterators, guards and accesses, before any integer set is made."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace

from polyopt.frontend.torch._value import map_access, map_affine, restrict
from polyopt.ir import Access, Assign, Expr, Index, Indirect, Origin, Read, Statement, Tensor, map_accesses, walk
from polyopt.sets import Affine, Constraint, Interval, Set, affine, simplify

__all__ = ["Draft", "Store", "finish"]


@dataclass(frozen=True, slots=True)
class Store:
    """A tensor.  `free` says that its layout is ours to choose: an intermediate result."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    role: str
    free: bool = False

    def tensor(self, init: str | None = None) -> Tensor:
        return Tensor(self.name, tuple(affine(n) for n in self.shape), self.dtype, self.role, init)


@dataclass(frozen=True, slots=True)
class Draft:
    """A statement over the box `ranges` (inclusive) where `guards` hold.

    `runs` are groups of iterators, outermost first, that were one dimension of the operator: worth being one loop.
    """

    name: str
    ranges: Mapping[str, tuple[int, int]]
    guards: tuple[Constraint, ...]
    target: Access
    value: Expr
    combine: str | None
    origin: Origin
    runs: tuple[tuple[str, ...], ...] = ()

    def intervals(self) -> dict[str, Interval]:
        return dict(self.ranges)

    def accesses(self) -> Iterator[Access]:
        """The target and every outermost read."""
        yield self.target
        for node in walk(self.value):
            if isinstance(node, Read):
                yield node.access

    def plain_affines(self) -> Iterator[Affine]:
        """Every quasi-affine expression outside the subscripts of `accesses`: index values and guards."""
        for node in walk(self.value):
            if isinstance(node, Index):
                yield node.value
        for g in self.guards:
            yield g.expr

    def map_affine(self, change: Callable[[Affine], Affine]) -> Draft:
        """Apply `change` to every quasi-affine expression."""
        return replace(
            self,
            guards=tuple(Constraint(change(g.expr), g.equality) for g in self.guards),
            target=map_access(self.target, change),
            value=map_affine(self.value, change),
        )

    def map_accesses(self, change: Callable[[Access], Access]) -> Draft:
        """Apply `change` to the target and to every read, inside data-dependent subscripts first."""
        return replace(self, target=_deep(self.target, change), value=_deep_value(self.value, change))

    def simplified(self) -> Draft:
        """Bounds that mention one iterator move into the box, implied guards go, floors are decided.

        An iterator with a single value is replaced by it.  See `is_empty`.
        """
        ranges = dict(self.ranges)
        guards = [g for g in self.guards if not _absorb(g, ranges)]
        box: dict[str, Interval] = dict(ranges)
        kept = restrict([Constraint(simplify(g.expr, box), g.equality) for g in guards], box)
        if kept is None or any(high < low for low, high in ranges.values()):
            return replace(self, ranges={"none": (0, -1)}, guards=())
        moving = {i: r for i, r in ranges.items() if r[0] != r[1]}
        runs = tuple(tuple(i for i in run if i in moving) for run in self.runs)
        simple = replace(self, ranges=moving, guards=kept, runs=tuple(r for r in runs if len(r) > 1))
        return simple.map_affine(lambda e: simplify(e, box))

    def apart_from(self, names: Collection[str]) -> Draft:
        """The same statement with iterators whose names are not in `names`."""
        renaming: dict[str, str] = {}
        for i in self.ranges:
            fresh = i
            while fresh in names or fresh in renaming.values():
                fresh += "_"
            renaming[i] = fresh
        if all(old == new for old, new in renaming.items()):
            return self
        moved = replace(self, ranges={renaming[i]: r for i, r in self.ranges.items()}, runs=())
        return moved.map_affine(lambda e: e.substitute(renaming))

    @property
    def is_empty(self) -> bool:
        return any(high < low for low, high in self.ranges.values())


def _absorb(guard: Constraint, ranges: dict[str, tuple[int, int]]) -> bool:
    """Tighten `ranges` by a guard `c*i + k >= 0` (or `== 0`); False when it has another form."""
    if len(guard.expr.terms) != 1:
        return False
    name, c = guard.expr.terms[0]
    if not isinstance(name, str):
        return False
    k = guard.expr.const
    low, high = ranges[name]
    if guard.equality:
        ranges[name] = (max(low, -k // c), min(high, -k // c)) if k % c == 0 else (0, -1)
    elif c > 0:
        ranges[name] = (max(low, -(k // c)), high)
    else:
        ranges[name] = (low, min(high, k // -c))
    return True


def _deep(access: Access, change: Callable[[Access], Access]) -> Access:
    inner = tuple(
        s if isinstance(s, Affine) else Indirect(_deep(s.access, change), s.offset) for s in access.subscripts
    )
    return change(Access(access.tensor, inner))


def _deep_value(value: Expr, change: Callable[[Access], Access]) -> Expr:
    return map_accesses(value, lambda a: _deep(a, change))


def finish(draft: Draft, position: int) -> Statement | None:
    """The statement that stands at `position` of the original order; None when its domain is empty."""
    bounds = {i: (affine(low), affine(high + 1)) for i, (low, high) in draft.ranges.items()}
    domain = Set.box(draft.name, bounds).constrain(draft.guards)
    if domain.is_empty():
        return None
    order = (affine(position), *(affine(i) for i in draft.ranges))
    return Statement(draft.name, domain, order, Assign(draft.target, draft.value, draft.combine), draft.origin)
