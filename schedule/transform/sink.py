"""Sinking statements into a loop."""

from __future__ import annotations

from dataclasses import replace

from polyopt.errors import InputError
from polyopt.ir import Scop
from polyopt.schedule._tree import SEQUENTIAL, Band, Filter, Member, Node, Path, ScheduleTree, Sequence
from polyopt.schedule.transform._edit import find_sequence, outer_exprs, reaching, replaced, time_of
from polyopt.schedule.transform._legal import require_legal
from polyopt.sets import Affine, AffineLike, Set, affine, maximum, minimum

__all__ = ["sink"]

FIRST, LAST = "first", "last"


def sink(
    scop: Scop, tree: ScheduleTree, path: Path, child: int, into: int, at: AffineLike | str = FIRST
) -> ScheduleTree:
    """A child of a sequence moves into the outermost loop of its neighbour, at one iteration of it.

    path: the sequence.  child, into: positions of the child that moves and of the neighbour.  at: `first`, `last`, or
    an expression of sizes and numbers.

    Rewrite, at first:    in sequence             loop i: S: 0; T: i
                            S              ->       in sequence: S; T
                            loop i: T: i

    Where the loop has no iteration the child runs all the same.  Raises LegalityError with the witness when a
    dependence forbids it, InputError when there is no such loop.
    """
    sequence = find_sequence(tree, path)
    a, b = min(child, into), max(child, into)
    count = len(sequence.children)
    if b != a + 1 or not 0 <= a < b < count:
        raise InputError(
            f"the children {child} and {into} of the sequence {list(path)} are no neighbours ({count} children)",
            help="reorder the sequence first",
            id="tree-path",
        )
    moved, target = sequence.children[child], sequence.children[into]
    band = target.child
    if not isinstance(band, Band):
        raise InputError(
            f"child {into} of the sequence {list(path)} is no loop", help="name a child that is a loop", id="tree-path"
        )
    exprs = {s.name: _iteration(scop, tree, path, band, into, s, at) for s in moved.instances}
    node = _sunk(sequence, moved, target, band, exprs)
    return require_legal(scop, replaced(tree, path, node), f"sinking {', '.join(exprs)} into {band.members[0].name}")


def _sunk(sequence: Sequence, moved: Filter, target: Filter, band: Band, exprs: dict[str, Affine]) -> Node:
    first = band.members[0]
    both = set(exprs) & {s for s, _ in first.exprs}
    if both:
        raise InputError(
            f"{', '.join(sorted(both))} runs in both children",
            help="sink statements that the loop does not run yet",
            id="tree-path",
        )
    loop = Member(first.name, (*first.exprs, *exprs.items()), SEQUENTIAL)
    rest: Node = Band(band.members[1:], band.child) if band.members[1:] else band.child
    inside = (moved, replace(target, child=rest))
    if sequence.children.index(moved) > sequence.children.index(target):
        inside = (inside[1], inside[0])
    fused = Filter((*moved.instances, *target.instances), Band((loop,), Sequence(inside)))
    k = min(sequence.children.index(moved), sequence.children.index(target))
    children = (*sequence.children[:k], fused, *sequence.children[k + 2 :])
    return Sequence(children) if len(children) > 1 else fused.child


def _iteration(
    scop: Scop, tree: ScheduleTree, path: Path, band: Band, into: int, moved: Set, at: AffineLike | str
) -> Affine:
    """The iteration at which an instance of `moved` runs, in its own iterators."""
    if at not in (FIRST, LAST):
        entry = affine(at)
        unknown = sorted(entry.variables() - set(scop.params))
        if unknown:
            raise InputError(
                f"{unknown[0]!r} is no size of {scop.name}",
                help=f"give first, last, or numbers and sizes: {', '.join(scop.params) or 'none'}",
                id="unknown-name",
            )
        return entry
    loop = dict(band.members[0].exprs)
    sets = [s for s in reaching(tree, (*path, into)) if not s.is_empty()]
    around = {s.name: outer_exprs(tree, path, s.name) for s in (*sets, moved)}
    dims = [f"o{k}" for k in range(len(around[moved.name]))]
    bounds = [time_of(s, [*around[s.name], loop[s.name]], [*dims, "v"]).bounds("v", dims) for s in sets]
    if not bounds:
        return affine(0)
    bound = minimum(*(b[0] for b in bounds)) if at == FIRST else maximum(*(b[1] for b in bounds))
    return bound.substitute(dict(zip(dims, around[moved.name], strict=True)))
