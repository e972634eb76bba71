"""The loop tree of a program as an order that the judge reads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from polyopt.backend import tree_text
from polyopt.ir import Scop
from polyopt.schedule import Leaf, LoopTree, Verdict, check
from polyopt.sets import Affine, affine, var

__all__ = ["LoopSchedule", "judge_schedule", "order_vectors"]

Vectors = Mapping[str, Sequence[Affine]]


@dataclass(frozen=True, slots=True)
class LoopSchedule:
    """`tree` orders the statements of `scop`, whose original order is the one that it is judged against."""

    scop: Scop
    tree: tuple[LoopTree, ...]

    def without_empty(self) -> LoopSchedule:
        """The same without leaves that have no instance in the context, and without loops around nothing."""
        empty = {s.name for s in self.scop.statements if s.domain.intersect_params(self.scop.context).is_empty()}
        return LoopSchedule(self.scop, _without(self.tree, empty)) if empty else self

    def text(self, notes: Sequence[str] = ()) -> str:
        """The loop tree, lines of notes, then the same order as an isl union map."""
        vectors, _ = order_vectors(self)
        rows = [
            f"{s.name}[{', '.join(s.iterators)}] -> [{', '.join(e.text() for e in vectors[s.name])}]"
            for s in self.scop.statements
        ]
        above = "\n".join([tree_text(self.tree).rstrip(), *notes])
        return f"{above}\n\n{{ {'; '.join(rows)} }}\n"


def _without(nodes: tuple[LoopTree, ...], names: set[str]) -> tuple[LoopTree, ...]:
    kept: list[LoopTree] = []
    for node in nodes:
        if isinstance(node, Leaf):
            kept += [] if node.statement in names else [node]
            continue
        body = _without(node.body, names)
        if body:
            kept.append(replace(node, iterators=tuple(i for i in node.iterators if i[0] not in names), body=body))
    return tuple(kept)


def order_vectors(schedule: LoopSchedule) -> tuple[dict[str, list[Affine]], tuple[int, ...]]:
    """The order vector of every statement, and the dimensions that run in parallel.

    A vector alternates positions in the text and sequential iterators; the parallel iterators of all leaves begin at
    the same dimension behind the longest of these, so that "parallel" means the same for all statements.
    """
    prefixes = dict(_prefixes(schedule.tree, {}, ()))
    depth = max((len(p) for p, _ in prefixes.values()), default=0)
    width = max((len(leaf.parallel) for _, leaf in prefixes.values()), default=0)
    vectors = {
        name: [*prefix, *[affine(0)] * (depth - len(prefix)), *(var(i) for i in leaf.parallel)]
        for name, (prefix, leaf) in prefixes.items()
    }
    return vectors, tuple(range(depth, depth + width))


def _prefixes(
    nodes: tuple[LoopTree, ...], outer: Mapping[str, tuple[Affine, ...]], above: tuple[Affine, ...]
) -> Iterator[tuple[str, tuple[tuple[Affine, ...], Leaf]]]:
    """Statement -> its vector up to its leaf.  above: the vector so far of statements that `outer` does not name."""
    for k, node in enumerate(nodes):
        if isinstance(node, Leaf):
            yield node.statement, ((*outer.get(node.statement, above), affine(k)), node)
        else:
            inner = {name: (*outer.get(name, above), affine(k), var(i)) for name, i in node.iterators}
            yield from _prefixes(node.body, inner, ())


def judge_schedule(schedule: LoopSchedule, at: Mapping[str, int]) -> Verdict:
    """Judge the order and the parallel dimensions, at the sizes `at` (for all sizes when empty)."""
    vectors, parallel = order_vectors(schedule)
    return check(schedule.scop, vectors, parallel=parallel, at=at or None)
