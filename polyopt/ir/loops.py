"""A program's instances as loop code in some order, and its text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from polyopt.sets import AllOf, AnyOf, Block, Call, Condition, Constraint, For, If, LoopNode

__all__ = ["LoopProgram", "condition_text", "loops_text"]


@dataclass(frozen=True, slots=True)
class LoopProgram:
    """Loops that run the statement instances of a program, for sizes in the program's context.

    params: the sizes that occur, in declared order.  The statements' bodies stay with the program.
    """

    name: str
    params: tuple[str, ...]
    root: LoopNode

    def text(self) -> str:
        """The loops in Python, a call of the statement's name for each instance."""
        return loops_text(self.root)


def loops_text(node: LoopNode, depth: int = 0) -> str:
    """`node` in Python; nothing to run is `pass`."""
    return "\n".join(_lines(node, depth)) + "\n"


def _lines(node: LoopNode, depth: int) -> Iterator[str]:
    pad = "    " * depth
    if isinstance(node, Call):
        yield f"{pad}{node.statement}({', '.join(a.python() for a in node.arguments)})"
    elif isinstance(node, For):
        step = f", {node.step}" if node.step != 1 else ""
        note = "" if node.kind == "sequential" else f"  # {node.kind}"
        yield f"{pad}for {node.iterator} in range({node.lower.python()}, {(node.upper + 1).python()}{step}):{note}"
        yield from _lines(node.body, depth + 1)
    elif isinstance(node, If):
        yield f"{pad}if {condition_text(node.condition)}:"
        yield from _lines(node.then, depth + 1)
        if node.other != Block():
            yield f"{pad}else:"
            yield from _lines(node.other, depth + 1)
    elif node.children:
        for child in node.children:
            yield from _lines(child, depth)
    else:
        yield f"{pad}pass"


def condition_text(condition: Condition) -> str:
    """The condition in Python."""
    if isinstance(condition, Constraint):
        return condition.python()
    if not condition.parts:
        return "True" if isinstance(condition, AllOf) else "False"
    word = " and " if isinstance(condition, AllOf) else " or "
    return word.join(
        f"({condition_text(c)})" if isinstance(c, AllOf | AnyOf) else condition_text(c) for c in condition.parts
    )
