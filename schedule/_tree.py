"""Schedule trees: an order as loops (bands), sequences and filters.

A tree orders the instances of a program.  The order vector of an instance is read along its way from the root: a band
contributes one entry for each member, a sequence the position of the child whose filter holds the instance.  Source of
the idea: Verdoolaege, Guelton, Grosser and Cohen, "Schedule trees", IMPACT 2014; what is left out here are isl's
extension and context nodes, which a program's own order never needs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from polyopt.errors import InputError, nearest, require_type
from polyopt.sets import Affine, Set

__all__ = [
    "PARALLEL",
    "SEQUENTIAL",
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
    "filtered",
    "find_band",
    "node_at",
]

SEQUENTIAL, PARALLEL, VECTOR = "sequential", "parallel", "vector"
"""How the iterations of a loop run: in order | in any order | at the same time, as lanes."""


@dataclass(frozen=True, slots=True)
class Member:
    """One loop of a band: statement -> the expression of its instances' iteration, in textual order of statements."""

    name: str
    exprs: tuple[tuple[str, Affine], ...]
    kind: str = SEQUENTIAL


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


def children(node: Node) -> tuple[Node, ...]:
    """The nodes right below, filters skipped."""
    if isinstance(node, Leaf):
        return ()
    if isinstance(node, Band | Mark):
        return (node.child,)
    return tuple(f.child for f in node.children)


def node_at(tree: ScheduleTree, path: Path) -> Node:
    """The node at `path`.  Raises InputError when there is none."""
    require_type(tree, ScheduleTree, "tree", help="give a schedule tree, such as original_tree(scop)")
    require_type(path, tuple, "path", help="give the positions of children from the root down, such as (0, 1)")
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
    require_type(tree, ScheduleTree, "tree", help="give a schedule tree, such as original_tree(scop)")
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


def _mark_above(tree: ScheduleTree, path: Path) -> str | None:
    if not path:
        return None
    above = node_at(tree, path[:-1])
    return above.name if isinstance(above, Mark) else None


def _listed(tree: ScheduleTree) -> str:
    return "; ".join(f"{list(p)} ({', '.join(b.names())})" for p, b in bands(tree)) or "none"
