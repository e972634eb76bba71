"""Shifting statements along a loop."""

from __future__ import annotations

from collections.abc import Mapping

from polyopt.errors import InputError, nearest
from polyopt.ir import Scop
from polyopt.schedule._tree import ScheduleTree
from polyopt.schedule.transform._edit import Loop, find_loop, mapped, replaced, with_members
from polyopt.schedule.transform._legal import require_legal
from polyopt.sets import AffineLike, affine

__all__ = ["shift"]


def shift(scop: Scop, tree: ScheduleTree, loop: Loop, amounts: Mapping[str, AffineLike]) -> ScheduleTree:
    """Statements move along a loop by constant amounts or sizes (statement -> amount; the others stay).

    Rewrite, amounts {T: 1}:    loop i: S: i; T: i    ->    loop i: S: i; T: i + 1

    Raises LegalityError with the witness when a dependence forbids it, InputError on an unknown statement and on
    amounts that are not made of sizes and numbers.
    """
    found = find_loop(tree, loop)
    known = dict(found.member.exprs)
    added = {name: affine(a) for name, a in amounts.items()}
    for name, amount in added.items():
        if name not in known:
            raise InputError(
                f"the loop {found.member.name!r} runs no statement {name!r}{nearest(name, known)}",
                help=f"its statements: {', '.join(known)}",
                id="tree-path",
            )
        _refuse_iterators(scop, amount.variables())
    member = mapped(found.member, lambda s, e: e + added.get(s, affine(0)))
    changed = replaced(tree, found.path, with_members(found, (*found.outer, member, *found.inner)))
    text = ", ".join(f"{s} by {a}" for s, a in added.items())
    return require_legal(scop, changed, f"shifting {text} along {found.member.name}")


def _refuse_iterators(scop: Scop, names: frozenset[str]) -> None:
    for name in sorted(names):
        if name not in scop.params:
            raise InputError(
                f"{name!r} is no size of {scop.name}{nearest(name, scop.params)}",
                help=f"amounts are made of numbers and sizes: {', '.join(scop.params) or 'none'}",
                id="unknown-name",
            )
