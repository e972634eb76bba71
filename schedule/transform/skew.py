"""Loop skewing."""

from __future__ import annotations

from polyopt.errors import InputError
from polyopt.ir import Scop
from polyopt.schedule._tree import ScheduleTree
from polyopt.schedule.transform._edit import Loop, chain_of, mapped, replaced, with_members
from polyopt.schedule.transform._legal import require_legal

__all__ = ["skew"]


def skew(scop: Scop, tree: ScheduleTree, loop: Loop, by: Loop, factor: int = 1) -> ScheduleTree:
    """`factor` times the iteration of another loop of the nest is added to a loop.

    Rewrite, skew(j, by=i, factor=2):    loop i: i; loop j: j    ->    loop i: i; loop j: j + 2*i

    By a loop outside of it this never changes the order, but it makes loops permutable.  Raises LegalityError with the
    witness when `by` stands inside and a dependence forbids it.  Source: Wolfe, "Loop skewing", IJPP 1986.
    """
    if isinstance(factor, bool) or not isinstance(factor, int):
        raise InputError(f"the skewing factor is {factor!r}, expected a whole number", help="give an int")
    found, other = chain_of(tree, loop, by)
    if (found.path, found.position) == (other.path, other.position):
        raise InputError(
            f"skewing {found.member.name}: by the loop itself", help="skew it by another loop", id="tree-path"
        )
    added = dict(other.member.exprs)
    member = mapped(found.member, lambda s, e: e + added[s] * factor)
    changed = replaced(tree, found.path, with_members(found, (*found.outer, member, *found.inner)))
    return require_legal(scop, changed, f"skewing {found.member.name} by {factor}*{other.member.name}")
