"""Loop interchange."""

from __future__ import annotations

from polyopt.errors import InputError
from polyopt.ir import Scop
from polyopt.schedule._tree import Band, Member, Path, ScheduleTree, node_at
from polyopt.schedule.transform._edit import Loop, chain_of, mapped, replaced
from polyopt.schedule.transform._legal import require_legal

__all__ = ["interchange"]


def interchange(scop: Scop, tree: ScheduleTree, first: Loop, second: Loop) -> ScheduleTree:
    """Two loops of one nest change places; nothing but loops may stand between them.

    Rewrite:    loop i: i; loop j: j    ->    loop j: j; loop i: i

    Raises LegalityError with the witness when a dependence forbids it.
    """
    a, b = chain_of(tree, first, second)
    names = f"interchanging {a.member.name} and {b.member.name}"
    if (a.path, a.position) == (b.path, b.position):
        raise InputError(f"{names}: it is the same loop", help="name two loops", id="tree-path")
    changed = _put(_put(tree, a.path, a.position, b.member), b.path, b.position, a.member)
    return require_legal(scop, changed, names)


def _put(tree: ScheduleTree, path: Path, position: int, member: Member) -> ScheduleTree:
    band = node_at(tree, path)
    assert isinstance(band, Band)
    moved = mapped(member, lambda _s, e: e)
    return replaced(tree, path, Band((*band.members[:position], moved, *band.members[position + 1 :]), band.child))
