"""Strip-mining."""

from __future__ import annotations

from polyopt.ir import Scop
from polyopt.schedule._tree import Member, ScheduleTree
from polyopt.schedule.transform._edit import Loop, find_loop, fresh_name, mapped, replaced, whole, with_members
from polyopt.schedule.transform._legal import require_legal

__all__ = ["strip_mine"]


def strip_mine(scop: Scop, tree: ScheduleTree, loop: Loop, size: int) -> ScheduleTree:
    """A loop becomes a loop over strips of `size` iterations and a loop in the strip; the order stays as it is.

    Rewrite, size 4:    loop i: i    ->    loop i_o: i//4; loop i: i

    Raises TileSizeError on a size below 1.
    """
    found = find_loop(tree, loop)
    strip = whole(f"the strip of {found.member.name!r}", size)
    outer = mapped(Member(fresh_name(tree, f"{found.member.name}_o"), found.member.exprs), lambda _s, e: e // strip)
    changed = replaced(tree, found.path, with_members(found, (*found.outer, outer, found.member, *found.inner)))
    return require_legal(scop, changed, f"strip-mining {found.member.name} by {strip}")
