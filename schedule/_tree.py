"""Schedule trees: an order as loops (bands), sequences and filters.

A tree orders the instances of a program.  The order vector of an instance is read along its way from the root: a band
contributes one entry for each member, a sequence the position of the child whose filter holds the instance.  Source of
the idea: Verdoolaege, Guelton, Grosser and Cohen, "Schedule trees", IMPACT 2014; what is left out here are isl's
extension and context nodes, which a program's own order never needs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from polyopt.errors import InputError, InternalError, nearest
from polyopt.sets import Affine, Set

__all__ = [
    "KINDS_OF_MEMBERS",
    "PARALLEL",
    "SEQUENTIAL",
    "UNROLLED",
    "VECTOR",
    "Band",
    "Filter",
    "Leaf",
    "Mark",
    "Member",
    "Node",
    "Path",
    "ScheduleTree",
    "Sequence",
    "Unordered",
    "Where",
    "bands",
    "children",
    "find_band",
    "find_member",
    "instances_at",
    "node_at",
    "replace_at",
    "with_children",
]

SEQUENTIAL, PARALLEL, VECTOR, UNROLLED = KINDS_OF_MEMBERS = ("sequential", "parallel", "vector", "unrolled")
"""How the iterations of a loop run: in order | in any order | together, side by side | in order, written out."""


@dataclass(frozen=True, slots=True)
class Member:
    """One loop of a band: statement -> the expression of its instances' iteration, in textual order of statements."""

    name: str
    exprs: tuple[tuple[str, Affine], ...]
    kind: str = SEQUENTIAL

    def expr(self, statement: str) -> Affine:
        """The iteration of an instance of `statement`; KeyError when the loop is not around it."""
        return dict(self.exprs)[statement]

    @property
    def statements(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.exprs)


@dataclass(frozen=True, slots=True)
class Leaf:
    """The end of a path.  At most one instance is left there, or several that no dependence orders."""


@dataclass(frozen=True, slots=True)
class Band:
    """Nested loops, outermost first."""

    members: tuple[Member, ...]
    child: Node = Leaf()

    def names(self) -> tuple[str, ...]:
        return tuple(m.name for m in self.members)


@dataclass(frozen=True, slots=True)
class Filter:
    """The instances that go on below: one set for each statement, in textual order; empty sets are left out."""

    instances: tuple[Set, ...]
    child: Node = Leaf()

    @property
    def statements(self) -> tuple[str, ...]:
        return tuple(s.name for s in self.instances)


@dataclass(frozen=True, slots=True)
class Sequence:
    """Children that run one after the other."""

    children: tuple[Filter, ...]


@dataclass(frozen=True, slots=True)
class Unordered:
    """Children that may run in any order (isl calls it `set`)."""

    children: tuple[Filter, ...]


@dataclass(frozen=True, slots=True)
class Mark:
    """A name on the tree below, for people and for `find_band`."""

    name: str
    child: Node = Leaf()


Node = Leaf | Band | Sequence | Unordered | Mark
Path = tuple[int, ...]
"""Positions of children from the root; a filter and its child count as one step."""

Where = str | Path
"""A band: by its path, by the name of a mark right above it, or by the name of one of its members."""


@dataclass(frozen=True, slots=True)
class ScheduleTree:
    """domain: all instances, one set for each statement in textual order (the context is part of the sets)."""

    domain: tuple[Set, ...]
    root: Node

    @property
    def statements(self) -> tuple[str, ...]:
        return tuple(s.name for s in self.domain)

    def instances(self, statement: str) -> Set:
        return next(s for s in self.domain if s.name == statement)


def children(node: Node) -> tuple[Node, ...]:
    """The nodes right below, filters skipped."""
    if isinstance(node, Leaf):
        return ()
    if isinstance(node, Band | Mark):
        return (node.child,)
    return tuple(f.child for f in node.children)


def with_children(node: Node, below: tuple[Node, ...]) -> Node:
    """The same node above other ones."""
    if isinstance(node, Leaf):
        return node
    if isinstance(node, Band | Mark):
        return replace(node, child=below[0])
    return replace(node, children=tuple(replace(f, child=c) for f, c in zip(node.children, below, strict=True)))


def node_at(tree: ScheduleTree, path: Path) -> Node:
    """The node at `path`.  Raises InputError when there is none."""
    node = tree.root
    for depth, k in enumerate(path):
        below = children(node)
        if not 0 <= k < len(below):
            raise InputError(
                f"the schedule tree has no node {list(path)}: {list(path[:depth])} has {len(below)} children",
                help="count children from 0, from the root down",
                id="tree-path",
            )
        node = below[k]
    return node


def replace_at(tree: ScheduleTree, path: Path, change: Callable[[Node], Node]) -> ScheduleTree:
    """The tree with the node at `path` exchanged for `change(node)`."""
    node_at(tree, path)
    return replace(tree, root=_replaced(tree.root, path, change))


def _replaced(node: Node, path: Path, change: Callable[[Node], Node]) -> Node:
    if not path:
        return change(node)
    below = list(children(node))
    below[path[0]] = _replaced(below[path[0]], path[1:], change)
    return with_children(node, tuple(below))


def instances_at(tree: ScheduleTree, path: Path) -> tuple[Set, ...]:
    """The instances that reach the node at `path`, one set for each statement that has any."""
    sets: tuple[Set, ...] = tree.domain
    node = tree.root
    for k in path:
        if isinstance(node, Sequence | Unordered):
            sets = filtered(sets, node.children[k])
        node = children(node)[k]
    return sets


def filtered(sets: tuple[Set, ...], below: Filter) -> tuple[Set, ...]:
    """What a filter lets through."""
    passed = {f.name: f for f in below.instances}
    kept = (s.intersect(passed[s.name]) for s in sets if s.name in passed)
    return tuple(s for s in kept if not s.is_empty())


def bands(tree: ScheduleTree) -> Iterator[tuple[Path, Band]]:
    """Every band with its path, outer ones first, in textual order."""
    yield from _bands(tree.root, ())


def _bands(node: Node, path: Path) -> Iterator[tuple[Path, Band]]:
    if isinstance(node, Band):
        yield path, node
    for k, child in enumerate(children(node)):
        yield from _bands(child, (*path, k))


def find_band(tree: ScheduleTree, where: Where) -> tuple[Path, Band]:
    """The band that `where` names.  Raises InputError when there is none, or more than one."""
    if not isinstance(where, str):
        node = node_at(tree, where)
        if not isinstance(node, Band):
            raise InputError(
                f"the node {list(where)} of the schedule tree is a {type(node).__name__.lower()}, not a band",
                help=f"bands: {_listed(tree)}",
                id="tree-path",
            )
        return where, node
    found = [(p, b) for p, b in bands(tree) if where in b.names() or _mark_above(tree, p) == where]
    if len(found) != 1:
        how = "no band" if not found else f"{len(found)} bands"
        known = {n for _, b in bands(tree) for n in b.names()}
        raise InputError(
            f"the schedule tree has {how} called {where!r}{'' if found else nearest(where, sorted(known))}",
            help=f"name a loop of one band, or give its path; bands: {_listed(tree)}",
            id="tree-path",
        )
    return found[0]


def find_member(tree: ScheduleTree, loop: str, where: Where | None = None) -> tuple[Path, Band, int]:
    """(path, band, position in it) of the loop called `loop`, in the band `where` when the name alone is ambiguous."""
    path, band = find_band(tree, loop if where is None else where)
    if loop not in band.names():
        raise InputError(
            f"the band {list(path)} has no loop {loop!r}{nearest(loop, band.names())}",
            help=f"its loops: {', '.join(band.names())}",
            id="tree-path",
        )
    return path, band, band.names().index(loop)


def _mark_above(tree: ScheduleTree, path: Path) -> str | None:
    if not path:
        return None
    above = node_at(tree, path[:-1])
    return above.name if isinstance(above, Mark) else None


def _listed(tree: ScheduleTree) -> str:
    return "; ".join(f"{list(p)} ({', '.join(b.names())})" for p, b in bands(tree)) or "none"


def exprs_of(values: Mapping[str, Affine], order: tuple[str, ...]) -> tuple[tuple[str, Affine], ...]:
    """`Member.exprs` from a mapping, statements in the order given."""
    unknown = set(values) - set(order)
    if unknown:
        raise InternalError(f"expressions for statements that the tree does not hold: {sorted(unknown)}")
    return tuple((name, values[name]) for name in order if name in values)
