"""Proofs that a system of integer constraints has no solution, as lists of steps that a small checker can follow.

A system is rows that all hold and clauses of which one alternative (a list of rows) holds.  The steps close goals,
depth first; the first goal is the rows.  Rows are counted from 0 in the order in which they join a goal.

    ["farkas", [[row, multiplier], ...]]            closes it: the sum has no variables and is negative
    ["cut", [[row, multiplier], ...], divisor]      a new row: the sum divided, its constant rounded down
    ["split", [[variable, coefficient], ...], c]    two goals, with form <= c and with form >= c + 1
    ["or", clause]                                  a goal for each alternative, with its rows

Multipliers are nonnegative, except those of equalities.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from polyopt.schedule._integer_rows import Cuts, Form, IntegerRows, Point, Sum

__all__ = ["MAX_PROBLEMS", "GivenUp", "ProofRow", "Step", "prove_empty"]

MAX_PROBLEMS = 4_000
"""Linear problems that are solved for one proof."""

MAX_SPLITS = 24
"""Splits on top of each other, below one combination of alternatives."""

MAX_ROUNDS = 6
"""Rounds of cuts before a split."""

MAX_CANDIDATES = 8
"""Fractional variables of which each is tried before one is split on both sides."""

ProofRow = tuple[Form, bool]
"""A form that is at least 0, or 0 when True."""

Step = list[object]


@dataclass(frozen=True, slots=True)
class GivenUp:
    """Why there is no proof."""

    reason: str


class _GiveUpError(Exception):
    """Carries the reason out of the search."""


@dataclass(frozen=True, slots=True)
class _Closed:
    """A goal and the sum of rows that contradicts it.  needs: numbers of the cuts that take part."""

    sum: Sum
    needs: frozenset[int]


@dataclass(frozen=True, slots=True)
class _Branched:
    """A goal and how it is split; each child comes with the numbers of the rows that join it.

    mark: rows of lower number were known there.
    """

    step: Step
    children: tuple[tuple[tuple[int, ...], _Node], ...]
    mark: int

    @property
    def needs(self) -> frozenset[int]:
        return frozenset().union(*(child.needs for _, child in self.children))


_Node = _Closed | _Branched


def prove_empty(rows: Sequence[ProofRow], clauses: Sequence[Sequence[Sequence[ProofRow]]]) -> list[Step] | GivenUp:
    """The steps that show that the system has no integer solution.

    >>> prove_empty([({"i": 2, "j": -2, "": 1}, True)], [])
    [['cut', [[0, 1]], 2], ['cut', [[0, -1]], 2], ['farkas', [[1, 1], [2, 1]]]]
    """
    search = _Search(clauses, Cuts())
    numbers = tuple(search.cuts.number() for _ in rows)
    given = IntegerRows(search.cuts)
    try:
        root = search.goal(given, list(zip(numbers, rows, strict=True)), tuple(range(len(clauses))))
    except _GiveUpError as error:
        return GivenUp(str(error))
    steps: list[Step] = []
    _write(root, {n: k for k, n in enumerate(numbers)}, search.cuts, steps)
    return steps


@dataclass(slots=True)
class _Search:
    clauses: Sequence[Sequence[Sequence[ProofRow]]]
    cuts: Cuts
    problems: int = 0

    def goal(self, rows: IntegerRows, joining: Sequence[tuple[int, ProofRow]], open_clauses: tuple[int, ...]) -> _Node:
        """The proof of a goal: the rows, those that join, and clauses that nothing was chosen of yet."""
        answer = self._answer(rows, joining)
        if not isinstance(answer, Point):
            return _closed(answer, self.cuts)
        if open_clauses:
            return self._choose(rows, open_clauses)
        return self._split(rows, answer, MAX_SPLITS)

    def _answer(self, rows: IntegerRows, joining: Sequence[tuple[int, ProofRow]]) -> Sum | Point:
        found = rows.add((number, form, is_equality) for number, (form, is_equality) in joining)
        return self._solved(rows) if found is None else found

    def _solved(self, rows: IntegerRows) -> Sum | Point:
        self.problems += 1
        if self.problems > MAX_PROBLEMS:
            raise _GiveUpError(f"more than {MAX_PROBLEMS} linear problems")
        return rows.solve()

    def _choose(self, rows: IntegerRows, open_clauses: tuple[int, ...]) -> _Node:
        mark = self.cuts.next_number
        clause, *left = open_clauses
        children: list[tuple[tuple[int, ...], _Node]] = []
        for alternative in self.clauses[clause]:
            joining = [(self.cuts.number(), row) for row in alternative]
            children.append((tuple(n for n, _ in joining), self.goal(rows.copy(), joining, tuple(left))))
        return _Branched(["or", clause], tuple(children), mark)

    def _split(self, rows: IntegerRows, point: Point, depth: int) -> _Node:
        """Cut fractional points off; then split on a form, best where one side is contradictory at once."""
        answer = self._cut_off(rows, point)
        if not isinstance(answer, Point):
            return _closed(answer, self.cuts)
        if not answer.fractional:
            raise _GiveUpError("an integer point fulfils all constraints")
        if not depth:
            raise _GiveUpError(f"more than {MAX_SPLITS} splits")
        mark = self.cuts.next_number
        halves: list[tuple[_Half, _Half]] = []
        for form, bound, _ in answer.fractional[:MAX_CANDIDATES]:
            pair = (self._half(rows, form, bound, -1), self._half(rows, form, bound, 1))
            halves.append(pair)
            if any(not isinstance(h.answer, Point) for h in pair):
                break
        else:
            pair = halves[0]
        children = tuple(((h.number,), self._below(h, depth - 1)) for h in pair)
        return _Branched(["split", [list(t) for t in sorted(pair[0].form.items())], pair[0].bound], children, mark)

    def _cut_off(self, rows: IntegerRows, point: Point) -> Sum | Point:
        answer: Sum | Point = point
        for _ in range(MAX_ROUNDS):
            if not isinstance(answer, Point) or not answer.fractional:
                break
            found = rows.tighten(answer)
            answer = self._solved(rows) if found is None else found
        return answer

    def _half(self, rows: IntegerRows, form: Form, bound: int, sign: int) -> _Half:
        """form <= bound, or form >= bound + 1 where the sign is 1."""
        number, below = self.cuts.number(), rows.copy()
        row = {**{v: sign * c for v, c in form.items()}, "": bound if sign < 0 else -bound - 1}
        return _Half(form, bound, number, below, self._answer(below, [(number, (row, False))]))

    def _below(self, half: _Half, depth: int) -> _Node:
        if isinstance(half.answer, Point):
            return self._split(half.rows, half.answer, depth)
        return _closed(half.answer, self.cuts)


@dataclass(frozen=True, slots=True)
class _Half:
    form: Form
    bound: int
    number: int
    rows: IntegerRows
    answer: Sum | Point


def _closed(total: Sum, cuts: Cuts) -> _Closed:
    needs: set[int] = set()
    open_sums = [total]
    while open_sums:
        for number in open_sums.pop():
            if number in cuts.made and number not in needs:
                needs.add(number)
                open_sums.append(cuts.made[number][0])
    return _Closed(total, frozenset(needs))


def _write(node: _Node, place: dict[int, int], cuts: Cuts, steps: list[Step]) -> None:
    """Append the steps of a goal.  place: number of a row -> its position in the goal."""
    here = dict(place)
    for number in sorted(n for n in node.needs if n not in here and (isinstance(node, _Closed) or n < node.mark)):
        total, divisor = cuts.made[number]
        steps.append(["cut", _terms(total, here), divisor])
        here[number] = len(here)
    if isinstance(node, _Closed):
        steps.append(["farkas", _terms(node.sum, here)])
        return
    steps.append(node.step)
    for numbers, child in node.children:
        _write(child, {**here, **{n: len(here) + k for k, n in enumerate(numbers)}}, cuts, steps)


def _terms(total: Sum, place: dict[int, int]) -> list[list[int]]:
    return [[place[n], m] for n, m in sorted(total.items(), key=lambda t: place[t[0]])]
