"""Loop reversal."""

from __future__ import annotations

from polyopt.ir import Scop
from polyopt.schedule._tree import ScheduleTree
from polyopt.schedule.transform._edit import Loop, find_loop, mapped, replaced, with_members
from polyopt.schedule.transform._legal import require_legal

__all__ = ["reverse"]


def reverse(scop: Scop, tree: ScheduleTree, loop: Loop) -> ScheduleTree:
    """The loop runs backwards.

    Rewrite:    loop i: i    ->    loop i: -i

    Raises LegalityError with the witness when the loop carries a dependence.
    """
    found = find_loop(tree, loop)
    member = mapped(found.member, lambda _s, e: -e)
    changed = replaced(tree, found.path, with_members(found, (*found.outer, member, *found.inner)))
    return require_legal(scop, changed, f"reversing {found.member.name}")
