"""The loops of a program as its order vectors give them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from polyopt.ir import Assign, Scop, Statement, substitute_access, substitute_expr
from polyopt.sets import Affine, affine

__all__ = ["LoopNode", "all_nodes", "loop_nests", "loops_of", "names_text", "path_of", "plain_scop", "shared_loops"]


@dataclass(frozen=True, slots=True)
class LoopNode:
    """One loop.  iterators: (statement, its name of the loop's iterator) in textual order; level: the entry of the
    order vectors that it is; body: the loops inside.
    """

    iterators: tuple[tuple[str, str], ...]
    level: int
    body: tuple[LoopNode, ...]

    @property
    def members(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.iterators)

    @property
    def name(self) -> str:
        """The iterator, or all the names that statements have for it."""
        return "/".join(dict.fromkeys(i for _, i in self.iterators))


def plain_scop(scop: Scop) -> Scop:
    """The same program, in which an iterator that has only one value is that value and no loop.

    Every order entry must be a constant or an iterator, and stays one.
    """
    return replace(scop, statements=tuple(_plain(s) for s in scop.statements))


def _plain(s: Statement) -> Statement:
    values = dict(_fixed_values(s))
    if not values:
        return s
    order = tuple(e.substitute(values) for e in s.order)
    body = s.body
    if isinstance(body, Assign):
        target = substitute_access(body.target, values)
        body = Assign(target, substitute_expr(body.value, values), body.combine)
    return replace(s, domain=s.domain.project_out(values), order=order, body=body)


def _fixed_values(s: Statement) -> Iterator[tuple[str, Affine]]:
    if s.domain.is_empty():
        return
    for i in s.iterators:
        if s.domain.is_bounded(i):
            low, high = s.domain.bounds(i)
            if low.is_constant and low == high:
                yield i, low


def loops_of(s: Statement) -> tuple[str, ...]:
    """The iterators of the loops around a statement, outermost first."""
    return tuple(next(iter(e.variables())) for e in s.order if not e.is_constant)


def loop_nests(scop: Scop) -> tuple[LoopNode, ...]:
    """The outermost loops in textual order; statements share a loop when all that comes before it is the same."""
    return tuple(_nodes(scop.statements, 0, scop.order_length()))


def _nodes(statements: tuple[Statement, ...], level: int, length: int) -> Iterator[LoopNode]:
    if level >= length or not statements:
        return
    entries = {s.name: s.order[level] if level < len(s.order) else affine(0) for s in statements}
    inside = tuple(s for s in statements if not entries[s.name].is_constant)
    for value in sorted({e.const for e in entries.values() if e.is_constant}):
        same = tuple(s for s in statements if entries[s.name] == affine(value))
        yield from _nodes(same, level + 1, length)
    if inside:
        iterators = tuple((s.name, next(iter(entries[s.name].variables()))) for s in inside)
        yield LoopNode(iterators, level, tuple(_nodes(inside, level + 1, length)))


def all_nodes(nodes: tuple[LoopNode, ...]) -> Iterator[LoopNode]:
    """Every loop, outer ones before inner ones."""
    for node in nodes:
        yield node
        yield from all_nodes(node.body)


def path_of(nodes: tuple[LoopNode, ...], statement: str) -> tuple[LoopNode, ...]:
    """The loops around a statement, outermost first."""
    for node in nodes:
        if statement in node.members:
            return (node, *path_of(node.body, statement))
    return ()


def shared_loops(nodes: tuple[LoopNode, ...], a: str, b: str) -> int:
    """How many loops two statements share as the program stands."""
    pairs = zip(path_of(nodes, a), path_of(nodes, b), strict=False)
    return sum(1 for x, y in pairs if x is y)


def names_text(names: tuple[str, ...]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
