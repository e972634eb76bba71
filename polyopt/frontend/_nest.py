"""Loop nests of a kernel: a place in the nest, and the domains and order vectors that follow from it."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, replace

from polyopt.errors import InputError, UnsupportedError
from polyopt.frontend._affine import Condition, parse_affine, restrict
from polyopt.frontend._names import Names, show
from polyopt.ir import Expr
from polyopt.sets import Affine, Constraint, Set, affine, var

__all__ = ["LoopHeader", "Nest", "read_loop"]


@dataclass(frozen=True, slots=True)
class LoopHeader:
    """`for iterator in range(...)`: the iterator keeps its value; `forward` says in which direction it runs."""

    iterator: str
    condition: Condition
    forward: bool


@dataclass(frozen=True, slots=True)
class Nest:
    """The loops and conditions around a statement.

    `order` is the prefix [position, i, position, j, ...] of the order vector, with -i for a loop that runs downwards.
    `guard` is the part of the conditions that depends on data.
    """

    iterators: tuple[str, ...] = ()
    conditions: tuple[Condition, ...] = ()
    order: tuple[Affine, ...] = ()
    guard: Expr | None = None

    def inside(self, loop: LoopHeader, position: int) -> Nest:
        i = var(loop.iterator)
        return replace(
            self,
            iterators=(*self.iterators, loop.iterator),
            conditions=(*self.conditions, loop.condition),
            order=(*self.order, affine(position), i if loop.forward else -i),
        )

    def where(self, condition: Condition) -> Nest:
        return replace(self, conditions=(*self.conditions, condition))

    def domain(self, name: str, params: Sequence[str]) -> Set:
        """Every instance of a statement that stands here."""
        result = Set.universe(name, self.iterators, params)
        for condition in self.conditions:
            result = restrict(result, condition)
        return result.coalesce()


def read_loop(node: ast.For, names: Names) -> LoopHeader:
    """The header of a loop over `range` with affine bounds and a constant step.  Raises InputError."""
    if not isinstance(node.target, ast.Name):
        raise UnsupportedError(
            f"a loop has one variable, found {show(node.target)}",
            help="write for i in range(...)",
            where=names.locate(node.target),
        )
    if node.orelse:
        raise UnsupportedError(
            "for ... else is not known", help="move the else part behind the loop", where=names.locate(node.orelse[0])
        )
    _check_fresh(node.target, names)
    low, high, step = _range(node.iter, names)
    i = var(node.target.id)
    ends = (i - low, high - 1 - i) if step > 0 else (low - i, i - high - 1)
    rows = [Constraint(e) for e in ends]
    if abs(step) > 1:
        rows.append(Constraint(ends[0] % abs(step), equality=True))
    return LoopHeader(node.target.id, (tuple(rows),), step > 0)


def _check_fresh(target: ast.Name, names: Names) -> None:
    for known, what in ((names.iterators, "loop"), (names.params, "size"), (names.ranks, "tensor or local")):
        if target.id in known:
            raise InputError(
                f"the loop variable {target.id} is already the name of a {what}",
                id="duplicate",
                help="rename the loop variable",
                where=names.locate(target),
            )


def _range(node: ast.expr, names: Names) -> tuple[Affine, Affine, int]:
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "range"):
        raise UnsupportedError(
            f"cannot loop over {show(node)}", help="write for i in range(start, stop, step)", where=names.locate(node)
        )
    if node.keywords or not 1 <= len(node.args) <= 3 or any(isinstance(a, ast.Starred) for a in node.args):
        raise InputError(
            f"range takes one to three arguments: {show(node)}",
            help="write range(stop), range(start, stop) or range(start, stop, step)",
            id="arguments",
            where=names.locate(node),
        )
    ends = [parse_affine(a, names) for a in node.args]
    low, high = (affine(0), ends[0]) if len(ends) == 1 else (ends[0], ends[1])
    step = ends[2] if len(ends) == 3 else affine(1)
    if not step.is_constant or step.const == 0:
        raise InputError(
            f"the step {show(node.args[2])} is not a constant other than 0",
            id="step",
            help="write a number; a step that is a size is not affine",
            where=names.locate(node.args[2]),
        )
    return low, high, step.const
