"""Loop code as values: loops, guards and calls of statements over quasi-affine expressions.

What isl generates is turned into these nodes; whatever reads them (printers, emitters, the validator) needs no isl.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from polyopt.errors import InternalError
from polyopt.sets.affine import Affine, Constraint

__all__ = ["AllOf", "AnyOf", "Block", "Call", "Condition", "For", "If", "LoopNode", "calls", "loops", "negation"]


@dataclass(frozen=True, slots=True)
class AllOf:
    """Every part holds (no parts: true)."""

    parts: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    """At least one part holds (no parts: false)."""

    parts: tuple[Condition, ...]


Condition = Constraint | AllOf | AnyOf


@dataclass(frozen=True, slots=True)
class Call:
    """One instance of `statement`, its iterators having the values `arguments`."""

    statement: str
    arguments: tuple[Affine, ...]


@dataclass(frozen=True, slots=True)
class Block:
    """The children one after the other."""

    children: tuple[LoopNode, ...] = ()


@dataclass(frozen=True, slots=True)
class If:
    """`then` where `condition` holds, `other` elsewhere."""

    condition: Condition
    then: LoopNode
    other: LoopNode = Block()


@dataclass(frozen=True, slots=True)
class For:
    """`body` for iterator = lower, lower + step, ... as long as it is at most `upper` (both ends included).

    kind: `sequential`, or `parallel` or `vector` when the iterations may run in any order.
    """

    iterator: str
    lower: Affine
    upper: Affine
    body: LoopNode
    step: int = 1
    kind: str = "sequential"

    def __post_init__(self) -> None:
        if self.step < 1:
            raise InternalError(f"the loop {self.iterator} has the step {self.step}")


LoopNode = For | If | Block | Call


def calls(node: LoopNode) -> Iterator[Call]:
    """Every call in the text, from top to bottom."""
    if isinstance(node, Call):
        yield node
    elif isinstance(node, For):
        yield from calls(node.body)
    elif isinstance(node, If):
        yield from calls(node.then)
        yield from calls(node.other)
    else:
        for child in node.children:
            yield from calls(child)


def loops(node: LoopNode) -> Iterator[For]:
    """Every loop in the text, outer ones first."""
    if isinstance(node, For):
        yield node
        yield from loops(node.body)
    elif isinstance(node, If):
        yield from loops(node.then)
        yield from loops(node.other)
    elif isinstance(node, Block):
        for child in node.children:
            yield from loops(child)


def negation(condition: Condition) -> Condition:
    """What holds where `condition` does not.

    >>> negation(Constraint(Affine((("i", 1),), 0))).expr.python()
    '-i - 1'
    """
    if isinstance(condition, AllOf):
        return AnyOf(tuple(negation(c) for c in condition.parts))
    if isinstance(condition, AnyOf):
        return AllOf(tuple(negation(c) for c in condition.parts))
    less = Constraint(-condition.expr - 1)
    return AnyOf((Constraint(condition.expr - 1), less)) if condition.equality else less
