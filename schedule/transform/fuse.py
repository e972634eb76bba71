"""Loop fusion."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from polyopt.errors import InputError
from polyopt.ir import Scop
from polyopt.schedule._tree import SEQUENTIAL, Band, Filter, Member, Node, ScheduleTree, Sequence, node_at
from polyopt.schedule.transform._edit import Loop, LoopAt, find_loop, replaced, whole
from polyopt.schedule.transform._legal import require_legal
from polyopt.sets import Set

__all__ = ["fuse"]


def fuse(
    scop: Scop,
    tree: ScheduleTree,
    first: Loop,
    second: Loop,
    *,
    depth: int = 1,
    shifts: Mapping[str, int] | None = None,
) -> ScheduleTree:
    """Two nests that follow each other in a sequence share their `depth` outermost loops.

    first, second: the outermost loops.  shifts: loop of the first nest -> what is added to the iterations of the second
    one, so that it comes later.

    Rewrite, shifts {i: 1}:    in sequence                   loop i: S: i; T: j + 1
                                 loop i: S: i         ->       in sequence: S; T
                                 loop j: T: j

    Raises LegalityError with the witness when a dependence forbids it, InputError when the loops are not the outermost
    ones of two children of one sequence that follow each other.
    """
    a, b = find_loop(tree, first), find_loop(tree, second)
    path = a.path[:-1]
    sequence = node_at(tree, path) if a.path else None
    together = isinstance(sequence, Sequence) and b.path[:-1] == path and b.path[-1] == a.path[-1] + 1
    if not together or a.position or b.position:
        raise InputError(
            f"the loops {a.member.name!r} and {b.member.name!r} are not the outermost ones of neighbours in a sequence",
            help="reorder the sequence first, and name the outermost loops of the two nests",
            id="tree-path",
        )
    assert isinstance(sequence, Sequence)
    whole("the depth", depth)
    for nest in (a, b):
        if len(nest.band.members) < depth:
            raise InputError(
                f"the nest of {nest.member.name!r} has {len(nest.band.members)} loops, {depth} were asked for",
                help="fuse fewer loops",
                id="tree-path",
            )
    k = a.path[-1]
    fused = _fused(sequence.children[k], sequence.children[k + 1], (a, b), depth, _checked(a, depth, shifts or {}))
    rest = (*sequence.children[:k], fused, *sequence.children[k + 2 :])
    node: Node = Sequence(rest) if len(rest) > 1 else fused.child
    return require_legal(scop, replaced(tree, path, node), f"fusing {a.member.name} and {b.member.name}")


def _checked(a: LoopAt, depth: int, shifts: Mapping[str, int]) -> Mapping[str, int]:
    shared = a.band.names()[:depth]
    for name, amount in shifts.items():
        if name not in shared or isinstance(amount, bool) or not isinstance(amount, int):
            raise InputError(
                f"the shift of {name!r} by {amount!r} is not possible",
                help=f"give a whole number for a loop of the first nest: {', '.join(shared)}",
                id="tree-path",
            )
    return shifts


def _fused(
    first: Filter, second: Filter, nests: tuple[LoopAt, LoopAt], depth: int, shifts: Mapping[str, int]
) -> Filter:
    a, b = (n.band for n in nests)
    members: list[Member] = []
    for m, n in zip(a.members[:depth], b.members[:depth], strict=True):
        exprs = dict(m.exprs)
        for s, e in n.exprs:
            late = e + shifts.get(m.name, 0)
            if exprs.setdefault(s, late) != late:
                raise InputError(
                    f"{s} runs in both nests, at {exprs[s]} and at {late}",
                    help="fuse nests of different statements, or of the same iterations",
                    id="tree-path",
                )
        members.append(Member(m.name, tuple(exprs.items()), SEQUENTIAL))
    below = Sequence((replace(first, child=_rest(a, depth)), replace(second, child=_rest(b, depth))))
    return Filter(_joined(first.instances, second.instances), Band(tuple(members), below))


def _rest(band: Band, depth: int) -> Node:
    left = band.members[depth:]
    return Band(left, band.child) if left else band.child


def _joined(first: tuple[Set, ...], second: tuple[Set, ...]) -> tuple[Set, ...]:
    sets = {s.name: s for s in first}
    for s in second:
        sets[s.name] = sets[s.name].union(s) if s.name in sets else s
    return tuple(sets.values())
