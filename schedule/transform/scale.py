"""Scaling statements along a loop."""

from __future__ import annotations

from collections.abc import Mapping

from polyopt.errors import InputError, nearest
from polyopt.ir import Scop
from polyopt.schedule._tree import ScheduleTree
from polyopt.schedule.transform._edit import Loop, find_loop, mapped, replaced, whole, with_members
from polyopt.schedule.transform._legal import require_legal

__all__ = ["scale"]


def scale(scop: Scop, tree: ScheduleTree, loop: Loop, factors: int | Mapping[str, int]) -> ScheduleTree:
    """The iterations of statements are multiplied (one factor for all, or statement -> factor; the others stay).

    Rewrite, factors {T: 2}:    loop i: S: i; T: i    ->    loop i: S: i; T: 2*i

    With one factor for all the order stays as it is.  Raises LegalityError with the witness when a dependence forbids
    it, TileSizeError on a factor below 1.
    """
    found = find_loop(tree, loop)
    known = dict(found.member.exprs)
    given = factors if isinstance(factors, Mapping) else dict.fromkeys(known, factors)
    for name in given:
        if name not in known:
            raise InputError(
                f"the loop {found.member.name!r} runs no statement {name!r}{nearest(name, known)}",
                help=f"its statements: {', '.join(known)}",
                id="tree-path",
            )
    checked = {name: whole(f"the factor of {name}", f) for name, f in given.items()}
    member = mapped(found.member, lambda s, e: e * checked.get(s, 1))
    changed = replaced(tree, found.path, with_members(found, (*found.outer, member, *found.inner)))
    return require_legal(scop, changed, f"scaling {found.member.name}")
