"""Parallel and vector loops."""

from __future__ import annotations

from collections.abc import Sequence as Seq
from dataclasses import replace

from polyopt.errors import InputError, require_type
from polyopt.ir import Scop
from polyopt.schedule._tree import (
    PARALLEL,
    VECTOR,
    Band,
    Leaf,
    Mark,
    Member,
    Node,
    ScheduleTree,
)
from polyopt.schedule.transform._edit import (
    Loop,
    find_loop,
    fresh_name,
    mapped,
    replaced,
    restricted,
    whole,
    with_members,
)
from polyopt.schedule.transform._legal import require_legal

__all__ = ["parallel", "vectorise"]


def parallel(scop: Scop, tree: ScheduleTree, loops: Loop | Seq[Loop]) -> ScheduleTree:
    """The iterations of the loops may run in any order, and at the same time.

    Rewrite:    loop i: i    ->    parallel loop i: i

    Raises LegalityError with the witness when one of them carries a dependence.
    """
    require_type(loops, (str, Seq), "loops", help="name a loop, or give a list of loops")
    chosen = [loops] if isinstance(loops, str) or _is_path_and_name(loops) else list(loops)
    changed, names = tree, []
    for loop in chosen:
        found = find_loop(changed, loop)  # type: ignore[arg-type]
        member = replace(found.member, kind=PARALLEL)
        names.append(member.name)
        changed = replaced(changed, found.path, with_members(found, (*found.outer, member, *found.inner)))
    return require_legal(scop, changed, f"running {', '.join(names)} in parallel")


def _is_path_and_name(loops: object) -> bool:
    return isinstance(loops, tuple) and len(loops) == 2 and isinstance(loops[0], tuple)


def vectorise(scop: Scop, tree: ScheduleTree, loop: Loop, width: int) -> ScheduleTree:
    """`width` iterations of the innermost loop run in lock step: each statement for all of them, then the next one.

    Rewrite, width 8:    loop i: i                    loop i_o: i//8
                           in sequence: S; T    ->      in sequence: vector loop i: S; vector loop i: T

    Raises LegalityError with the witness when a dependence forbids it, InputError when there are loops inside,
    TileSizeError on a width below 1.
    """
    found = find_loop(tree, loop)
    lanes = whole(f"the width of {found.member.name!r}", width)
    if found.inner:
        raise InputError(
            f"{found.member.name} is not the innermost loop: {', '.join(m.name for m in found.inner)} stand inside",
            help="interchange first, or vectorise the innermost loop",
            id="tree-path",
        )
    outer = mapped(replace(found.member, name=fresh_name(tree, f"{found.member.name}_o")), lambda _s, e: e // lanes)
    inside = _lanes(found.band.child, replace(found.member, kind=VECTOR))
    node = with_members(found, (*found.outer, outer), inside)
    return require_legal(scop, replaced(tree, found.path, node), f"vectorising {found.member.name} by {lanes}")


def _lanes(node: Node, member: Member) -> Node:
    """`node` with the vector loop around every leaf."""
    if isinstance(node, Leaf):
        return Band((member,))
    if isinstance(node, Mark):
        return replace(node, child=_lanes(node.child, member))
    if isinstance(node, Band):
        raise InputError(
            f"{member.name} is not the innermost loop: {', '.join(node.names())} stand inside",
            help="vectorise the innermost loop",
            id="tree-path",
        )
    below = (replace(f, child=restricted(_lanes(f.child, member), frozenset(f.statements))) for f in node.children)
    return replace(node, children=tuple(below))
