"""Unrolling, and unroll-and-jam."""

from __future__ import annotations

from dataclasses import replace

from polyopt.errors import InputError
from polyopt.ir import Scop
from polyopt.schedule._tree import Band, Member, Node, ScheduleTree
from polyopt.schedule.transform._edit import (
    Loop,
    LoopAt,
    find_loop,
    fresh_name,
    mapped,
    reaching,
    replaced,
    sequence_of,
    time_of,
    whole,
    with_members,
)
from polyopt.schedule.transform._legal import require_legal
from polyopt.sets import Affine, Constraint, Set

__all__ = ["unroll", "unroll_and_jam"]

MOST_COPIES = 1024
"""Copies of a loop body that a tree may hold."""


def unroll(scop: Scop, tree: ScheduleTree, loop: Loop, factor: int | None = None) -> ScheduleTree:
    """`factor` iterations of a loop, or all of them, are written out after each other; the order stays as it is.

    Rewrite, factor 2:    loop i: i    ->    loop i_o: i//2
                            S                  in sequence: S if i%2 == 0; S if i%2 == 1

    Raises TileSizeError on a factor below 1, and InputError when all iterations are asked for and their number depends
    on sizes.
    """
    found = find_loop(tree, loop)
    sets = reaching(tree, found.path)
    below = Band(found.inner, found.band.child) if found.inner else found.band.child
    if factor is None:
        low, high = _range(found, sets)
        node = with_members(found, found.outer, _copies(sets, found.member, below, low, high + 1, None))
    else:
        count = whole(f"the unrolling factor of {found.member.name!r}", factor)
        copies = _copies(sets, found.member, below, 0, count, count)
        node = with_members(found, (*found.outer, _strips(tree, found.member, count)), copies)
    return require_legal(scop, replaced(tree, found.path, node), f"unrolling {found.member.name}")


def unroll_and_jam(scop: Scop, tree: ScheduleTree, loop: Loop, factor: int) -> ScheduleTree:
    """`factor` iterations of a loop run together inside of the loops of its band.

    Rewrite, factor 2:    loop i: i           loop i_o: i//2
                          loop j: j    ->     loop j: j
                            S                   in sequence: S if i%2 == 0; S if i%2 == 1

    Raises LegalityError with the witness when a dependence forbids it, TileSizeError on a factor below 1.
    """
    found = find_loop(tree, loop)
    count = whole(f"the factor of {found.member.name!r}", factor)
    copies = _copies(reaching(tree, found.path), found.member, found.band.child, 0, count, count)
    node = with_members(found, (*found.outer, _strips(tree, found.member, count), *found.inner), copies)
    return require_legal(scop, replaced(tree, found.path, node), f"unrolling and jamming {found.member.name}")


def _strips(tree: ScheduleTree, member: Member, factor: int) -> Member:
    named = replace(member, name=fresh_name(tree, f"{member.name}_o"))
    return mapped(named, lambda _s, e: e // factor)


def _copies(sets: tuple[Set, ...], member: Member, below: Node, begin: int, end: int, modulus: int | None) -> Node:
    """`below` for each iteration from `begin` to `end`, or for each remainder of a modulus."""
    if end - begin > MOST_COPIES:
        raise InputError(
            f"unrolling {member.name} makes {end - begin} copies, more than {MOST_COPIES}",
            help="give a smaller factor",
            id="tile-size",
        )
    exprs = dict(member.exprs)

    def at(s: Set, value: int) -> Set:
        entry: Affine = exprs[s.name] if modulus is None else exprs[s.name] % modulus
        return s.constrain([Constraint(entry - value, equality=True)])

    return sequence_of([(tuple(at(s, value) for s in sets), below) for value in range(begin, end)])


def _range(found: LoopAt, sets: tuple[Set, ...]) -> tuple[int, int]:
    exprs = dict(found.member.exprs)
    lows, highs = [], []
    for s in (s for s in sets if not s.is_empty()):
        low, high = time_of(s, [exprs[s.name]], ["v"]).bounds("v")
        lows.append(low)
        highs.append(high)
    constant = [b.const for b in (*lows, *highs) if b.is_constant]
    if not lows:
        return 0, -1
    if len(constant) < len(lows) + len(highs):
        raise InputError(
            f"the number of iterations of {found.member.name} depends on sizes",
            help="give a factor, or fix the sizes first",
            id="tile-size",
        )
    return min(constant), max(constant)
