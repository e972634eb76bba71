"""Loop distribution."""

from __future__ import annotations

from collections.abc import Sequence as Seq

from polyopt.errors import InputError
from polyopt.ir import Scop
from polyopt.schedule._tree import Filter, Member, ScheduleTree, Sequence
from polyopt.schedule.transform._edit import Loop, find_loop, nested, replaced, restricted, with_members
from polyopt.schedule.transform._legal import require_legal

__all__ = ["distribute_loop"]


def distribute_loop(scop: Scop, tree: ScheduleTree, loop: Loop, groups: Seq[Seq[int]] | None = None) -> ScheduleTree:
    """A loop around a sequence, with the loops of its band inside of it, becomes a loop for each group of children.

    groups: children, counted from 0, in the order of the sequence; each alone when left out.

    Rewrite:    loop i: i                        in sequence
                in sequence: S; T         ->       loop i: S
                                                   loop i: T

    Raises LegalityError with the witness when a dependence forbids it, InputError when no sequence is inside.
    """
    found = find_loop(tree, loop)
    below = found.band.child
    if not isinstance(below, Sequence):
        raise InputError(
            f"the loop {found.member.name!r} has no sequence inside: there is nothing to distribute",
            help="name the innermost loop around the statements to take apart",
            id="tree-path",
        )
    parts = [[k] for k in range(len(below.children))] if groups is None else [list(g) for g in groups]
    if [k for g in parts for k in g] != list(range(len(below.children))) or not all(parts):
        raise InputError(
            f"the groups {parts} do not name the {len(below.children)} children in their order",
            help="name every child once, in the order in which they run",
            id="tree-path",
        )
    taken = (found.member, *found.inner)
    made = Sequence(tuple(_part(below, taken, g) for g in parts))
    node = with_members(found, found.outer, made)
    return require_legal(scop, replaced(tree, found.path, node), f"distributing {found.member.name}")


def _part(sequence: Sequence, members: Seq[Member], group: Seq[int]) -> Filter:
    own = [sequence.children[k] for k in group]
    names = {s.name for f in own for s in f.instances}
    instances = []
    for name in (s.name for f in sequence.children for s in f.instances):
        if name in names:
            names.discard(name)
            pieces = [s for f in own for s in f.instances if s.name == name]
            total = pieces[0]
            for piece in pieces[1:]:
                total = total.union(piece)
            instances.append(total)
    child = own[0].child if len(own) == 1 else Sequence(tuple(own))
    statements = frozenset(s.name for s in instances)
    return Filter(tuple(instances), restricted(nested(members, child), statements))
