"""Reordering the children of a sequence."""

from __future__ import annotations

from collections.abc import Sequence as Seq

from polyopt.errors import InputError
from polyopt.ir import Scop
from polyopt.schedule._tree import Path, ScheduleTree, Sequence
from polyopt.schedule.transform._edit import find_sequence, replaced
from polyopt.schedule.transform._legal import require_legal

__all__ = ["reorder"]


def reorder(scop: Scop, tree: ScheduleTree, path: Path, order: Seq[int]) -> ScheduleTree:
    """The children of the sequence at `path` run in another order: first child `order[0]`, then `order[1]`, ...

    Rewrite, order [1, 0]:    in sequence: S; T    ->    in sequence: T; S

    Raises LegalityError with the witness when a dependence forbids it, InputError when `order` is no permutation.
    """
    sequence = find_sequence(tree, path)
    if sorted(order) != list(range(len(sequence.children))):
        raise InputError(
            f"{list(order)} does not name each of the {len(sequence.children)} children once",
            help="count the children from 0 and name each of them",
            id="tree-path",
        )
    node = Sequence(tuple(sequence.children[k] for k in order))
    return require_legal(scop, replaced(tree, path, node), f"reordering the sequence {list(path)} to {list(order)}")
