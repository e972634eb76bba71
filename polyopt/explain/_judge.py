"""Asking the judge of schedules about a few statements and a few dependences of a program."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from polyopt.errors import BudgetError
from polyopt.explain._finding import distance
from polyopt.explain._nest import loops_of
from polyopt.ir import Scop
from polyopt.schedule import Dependence, Dependences, Verdict, Witness, compute_dependences, judge, read_order
from polyopt.sets import Affine, affine, carried_by, operation_budget

__all__ = ["Court", "witness_text"]

MAX_OPERATIONS = 5_000_000
"""isl operations that one question may take; then the answer is unknown."""


@dataclass(frozen=True, slots=True)
class Court:
    """A program with all its dependences.  Its order vectors hold constants and iterators only."""

    scop: Scop
    dependences: Dependences

    @staticmethod
    def of(scop: Scop) -> Court:
        return Court(scop, compute_dependences(scop))

    def original(self, name: str) -> tuple[Affine, ...]:
        """The order vector of a statement as the program stands, padded, textual position last."""
        position = [s.name for s in self.scop.statements].index(name)
        order = self.scop.statements[position].order
        return (*order, *[affine(0)] * (self.scop.order_length() - len(order)), affine(position))

    def judge(
        self,
        vectors: Mapping[str, Sequence[Affine]],
        *,
        parallel: Sequence[int] = (),
        only: Callable[[Dependence], bool] = lambda d: True,
    ) -> Verdict:
        """The verdict on an order of the statements that `vectors` names, by the dependences among them that `only`
        accepts.  Unknown when the budget is spent.
        """
        scop = replace(self.scop, statements=tuple(s for s in self.scop.statements if s.name in vectors))
        items = tuple(d for d in self.dependences if d.source in vectors and d.sink in vectors and only(d))
        try:
            with operation_budget("the explanation", MAX_OPERATIONS):
                order = read_order(scop, vectors, parallel=parallel)
                return judge(scop, Dependences(items, self.dependences.orders), order)
        except BudgetError as error:
            return Verdict("unknown", "proved", error.message)

    def free_across(self, names: Collection[str], level: int) -> Iterator[Dependence]:
        """Dependences that may change places (a reduction's) and that the loop at `level` carries."""
        for d in self.dependences:
            if d.is_ordered or d.source not in names or d.sink not in names:
                continue
            a, b = self.dependences.order(d.source), self.dependences.order(d.sink)
            if not d.relation.intersect(carried_by(a, b, level)).is_empty():
                yield d

    def loops(self, name: str) -> tuple[str, ...]:
        return loops_of(self.scop.statement(name))

    def witness_text(self, witness: Witness) -> str:
        """The pair with its distance in the loops that both statements have."""
        return witness_text(witness, self.loops(witness.source.statement), self.loops(witness.sink.statement))


def witness_text(witness: Witness, source: tuple[str, ...], sink: tuple[str, ...]) -> str:
    """The pair, its distance in the loops that both have, and the sizes."""
    steps = ", ".join(map(str, distance(witness, source, sink)))
    sizes = ", ".join(f"{n} = {v}" for n, v in witness.params)
    cell = ", ".join(map(str, witness.cell)) or "()"
    pair = f"{witness.kind} dependence {witness.source} -> {witness.sink} on {witness.tensor}[{cell}]"
    return f"{pair} at distance ({steps}){f', {sizes}' if sizes else ''}"
