"""Finding and replacing parts of a schedule tree."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from collections.abc import Sequence as Seq
from dataclasses import dataclass, replace
from numbers import Integral

from polyopt.errors import InputError, TileSizeError, nearest
from polyopt.schedule._tree import (
    SEQUENTIAL,
    Band,
    Filter,
    Leaf,
    Mark,
    Member,
    Node,
    Path,
    ScheduleTree,
    Sequence,
    Unordered,
    bands,
    children,
    filtered,
    find_band,
    node_at,
)
from polyopt.sets import Affine, Map, Set

__all__ = [
    "Loop",
    "LoopAt",
    "chain_of",
    "chosen",
    "find_loop",
    "find_sequence",
    "fresh_name",
    "loop_names",
    "mapped",
    "nested",
    "outer_exprs",
    "reaching",
    "replaced",
    "restricted",
    "sequence_of",
    "time_of",
    "whole",
    "with_members",
]

Loop = str | tuple[Path, str]
"""A loop: its name where only one band has it, or the path of its band and its name."""


@dataclass(frozen=True, slots=True)
class LoopAt:
    """A loop that was found: the path of its band, the band, and the position of the loop in it."""

    path: Path
    band: Band
    position: int

    @property
    def member(self) -> Member:
        return self.band.members[self.position]

    @property
    def outer(self) -> tuple[Member, ...]:
        """The loops of the band outside of this one."""
        return self.band.members[: self.position]

    @property
    def inner(self) -> tuple[Member, ...]:
        """The loops of the band inside of this one."""
        return self.band.members[self.position + 1 :]


def find_loop(tree: ScheduleTree, loop: Loop) -> LoopAt:
    """The loop that `loop` names.  Raises InputError when there is none, or more than one."""
    where, name = (loop, loop) if isinstance(loop, str) else loop
    path, band = find_band(tree, where)
    if name not in band.names():
        raise InputError(
            f"the band {list(path)} of the schedule tree has no loop {name!r}{nearest(name, band.names())}",
            help=f"its loops: {', '.join(band.names())}",
            id="tree-path",
        )
    return LoopAt(path, band, band.names().index(name))


def find_sequence(tree: ScheduleTree, path: Path) -> Sequence:
    """The sequence at `path`.  Raises InputError when the node there is another one."""
    node = node_at(tree, path)
    if not isinstance(node, Sequence):
        raise InputError(
            f"the node {list(path)} of the schedule tree is a {type(node).__name__.lower()}, not a sequence",
            help="give the path of a node whose children run one after the other",
            id="tree-path",
        )
    return node


def chain_of(tree: ScheduleTree, loop: Loop, other: Loop) -> tuple[LoopAt, LoopAt]:
    """Two loops of which one is nested in the other with nothing but loops between.  Raises InputError otherwise."""
    a, b = find_loop(tree, loop), find_loop(tree, other)
    outer, inner = sorted((a.path, b.path), key=len)
    between = [node_at(tree, inner[:k]) for k in range(len(outer), len(inner))]
    if inner[: len(outer)] != outer or not all(isinstance(n, Band) for n in between):
        raise InputError(
            f"the loops {a.member.name!r} and {b.member.name!r} are not nested directly in each other",
            help="distribute or fuse first, so that nothing but loops stands between them",
            id="tree-path",
        )
    return a, b


def replaced(tree: ScheduleTree, path: Path, node: Node) -> ScheduleTree:
    """The tree with `node` in the place of what is at `path`."""
    return replace(tree, root=_replaced(tree.root, path, node))


def _replaced(at: Node, path: Path, node: Node) -> Node:
    if not path:
        return node
    k, rest = path[0], path[1:]
    if isinstance(at, Band | Mark):
        return replace(at, child=_replaced(at.child, rest, node))
    if isinstance(at, Sequence | Unordered):
        below = at.children[k]
        changed = replace(below, child=_replaced(below.child, rest, node))
        return replace(at, children=(*at.children[:k], changed, *at.children[k + 1 :]))
    raise InputError("the path leads below a leaf", help="count children from 0, from the root down", id="tree-path")


def with_members(found: LoopAt, members: Seq[Member], child: Node | None = None) -> Node:
    """The band of a loop with other members; a band without any is its child."""
    below = found.band.child if child is None else child
    return Band(tuple(members), below) if members else below


def nested(members: Seq[Member], child: Node) -> Node:
    """The loops around `child`, in one band with those that it begins with."""
    inner = child if isinstance(child, Band) else Band((), child)
    together = (*members, *inner.members)
    return Band(together, inner.child) if together else child


def reaching(tree: ScheduleTree, path: Path) -> tuple[Set, ...]:
    """The instances that reach the node at `path`, one set for each statement."""
    sets, node = tree.domain, tree.root
    for k in path:
        if isinstance(node, Sequence | Unordered):
            sets = filtered(sets, node.children[k])
        node = children(node)[k]
    return sets


def outer_exprs(tree: ScheduleTree, path: Path, statement: str) -> tuple[Affine, ...]:
    """The iterations of the loops above `path`, outermost first, for the instances of a statement."""
    found: list[Affine] = []
    node = tree.root
    for k in path:
        if isinstance(node, Band):
            found += [dict(m.exprs)[statement] for m in node.members]
        node = children(node)[k]
    return tuple(found)


def time_of(instances: Set, exprs: Seq[Affine], dims: Seq[str]) -> Set:
    """The iterations at which instances run, as a set without a name with dimensions `dims`."""
    return Map.from_exprs(instances, "", exprs).range(dims)


def mapped(member: Member, change: Callable[[str, Affine], Affine]) -> Member:
    """The loop with `change(statement, iteration)` for every iteration; no longer known to be parallel."""
    return replace(member, exprs=tuple((s, change(s, e)) for s, e in member.exprs), kind=SEQUENTIAL)


def loop_names(tree: ScheduleTree) -> frozenset[str]:
    """The names of all loops."""
    return frozenset(n for _, b in bands(tree) for n in b.names())


def fresh_name(tree: ScheduleTree, name: str, taken: Seq[str] = ()) -> str:
    """`name`, or `name` with as many `_` behind it as no loop has."""
    known = loop_names(tree) | set(taken)
    while name in known:
        name += "_"
    return name


def sequence_of(parts: Seq[tuple[tuple[Set, ...], Node]], *, keep: bool = False) -> Node:
    """The parts (instances, what they do) one after the other; parts without instances are left out.

    keep: a sequence even around a single part.
    """
    present = [(tuple(s.coalesce() for s in sets if not s.is_empty()), node) for sets, node in parts]
    running = [(sets, node) for sets, node in present if sets]
    if len(running) == 1 and not keep:
        return running[0][1]
    filters = (Filter(sets, restricted(node, frozenset(s.name for s in sets))) for sets, node in running)
    return Sequence(tuple(filters)) if running else Leaf()


def restricted(node: Node, statements: frozenset[str]) -> Node:
    """The node without what it says about other statements."""
    if isinstance(node, Leaf):
        return node
    if isinstance(node, Mark):
        return replace(node, child=restricted(node.child, statements))
    if isinstance(node, Band):
        members = (replace(m, exprs=tuple((s, e) for s, e in m.exprs if s in statements)) for m in node.members)
        return Band(tuple(members), restricted(node.child, statements))
    kept: list[Filter] = []
    for f in node.children:
        instances = tuple(s for s in f.instances if s.name in statements)
        if instances:
            kept.append(Filter(instances, restricted(f.child, statements)))
    if len(kept) == 1:
        return kept[0].child
    return replace(node, children=tuple(kept))


def whole(what: str, value: object, least: int = 1) -> int:
    """`value` as a number for a transformation.  Raises TileSizeError unless it is whole and at least `least`."""
    if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < least:
        raise TileSizeError(
            f"{what} is {value!r}, expected a whole number of at least {least}", help=f"give {least} or more"
        )
    return int(value)


def chosen(band: Band, sizes: Mapping[str, int]) -> tuple[tuple[Member, int], ...]:
    """The loops that `sizes` names, of a band and of the bands right inside of it, with their sizes."""
    members = list(band.members)
    node = band.child
    while isinstance(node, Band):
        members += node.members
        node = node.child
    names = [m.name for m in members]
    for name in sizes:
        if name not in names:
            raise InputError(
                f"there is no loop {name!r} in the band or right inside of it{nearest(name, names)}",
                help=f"its loops: {', '.join(names)}",
                id="tree-path",
            )
    return tuple((m, whole(f"the tile size of {m.name!r}", sizes[m.name])) for m in members if m.name in sizes)
