"""Loops to break, ways to break them, and what is wrong with loops by running them: shares nothing with isl."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from polyopt.frontend import read_scop
from polyopt.ir import LoopProgram, Scop
from polyopt.sets import Block, For, If, LoopNode

Instance = tuple[str, tuple[int, ...]]
N = TypeVar("N", bound=LoopNode)


@dataclass(frozen=True, slots=True)
class Subject:
    """A program, a schedule, and the same once more in plain Python: sizes -> instances in the schedule's order."""

    scop: Scop
    schedule: str
    ordered: Callable[[int], list[tuple[tuple[int, ...], Instance]]]


TRIANGLE = Subject(
    read_scop("""
scop: triangle
params: [N]
tensors:
  A: {shape: [N, N], dtype: float32, role: inout}
  b: {shape: [N], dtype: float32, role: output}
statements:
  - {name: Z, domain: "[i] : 0 <= i < N", order: "[i, 0, 0]", body: "b[i] = 0.0"}
  - {name: S, domain: "[i, j] : 0 <= j <= i < N", order: "[i, 1, j]", body: "b[i] += A[i, j]"}
"""),
    "{ Z[i] -> [floor(i/4), -1, i, 0]; S[i, j] -> [floor(i/4), floor(j/4), i, j] }",
    lambda n: sorted(
        [((i // 4, -1, i, 0), ("Z", (i,))) for i in range(n)]
        + [((i // 4, j // 4, i, j), ("S", (i, j))) for i in range(n) for j in range(i + 1)]
    ),
)
STRIPS = Subject(
    read_scop("""
scop: strips
params: [N]
tensors:
  A: {shape: [N + 1], dtype: float32, role: inout}
statements:
  - {name: S, domain: "[i] : 0 <= i < N", order: "[i]", body: "A[i + 1] = A[i]"}
"""),
    "{ S[i] -> [i - (i mod 4), i] }",
    lambda n: [((i - i % 4, i), ("S", (i,))) for i in range(n)],
)
SKEWED = Subject(
    read_scop("""
scop: skewed
params: [N]
tensors:
  A: {shape: [N, N], dtype: float32, role: inout}
statements:
  - {name: S, domain: "[i, j] : 0 <= i < N and 0 <= j < N", order: "[i, j]", body: "A[i, j] = A[i, j] + 1"}
"""),
    "{ S[i, j] -> [i + 2j, j] }",
    lambda n: sorted(((i + 2 * j, j), ("S", (i, j))) for i in range(n) for j in range(n)),
)


def edited(loops: LoopProgram, kind: type[N], number: int, change: Callable[[N], LoopNode]) -> LoopProgram:
    """The loops with one node changed: the `number`-th of its kind, from top to bottom."""
    count = itertools.count()

    def visit(node: LoopNode) -> LoopNode:
        if isinstance(node, kind) and next(count) == number:
            return change(node)
        if isinstance(node, For):
            return replace(node, body=visit(node.body))
        if isinstance(node, If):
            return replace(node, then=visit(node.then), other=visit(node.other))
        if isinstance(node, Block):
            return Block(tuple(visit(c) for c in node.children))
        return node

    changed = replace(loops, root=visit(loops.root))
    assert changed != loops, "there is no such node, or nothing changed"
    return changed


def run_text(loops: LoopProgram, statements: tuple[str, ...], sizes: Mapping[str, int]) -> list[Instance]:
    """The instances in the order in which Python runs the text of the loops."""
    ran: list[Instance] = []

    def record(name: str) -> Callable[..., None]:
        return lambda *values: ran.append((name, values))

    exec(loops.text(), {**sizes, **{name: record(name) for name in statements}})
    return ran


def faults(subject: Subject, loops: LoopProgram, size: int) -> set[tuple[object, ...]]:
    """Everything that is wrong at one size: (what, instance) and ('order', first, second)."""
    ran = run_text(loops, tuple(s.name for s in subject.scop.statements), {"N": size})
    ordered = subject.ordered(size)
    vectors = {instance: vector for vector, instance in ordered}
    count = Counter(ran)
    found: set[tuple[object, ...]] = {("outside", i) for i in count if i not in vectors}
    found |= {("missing", i) for i in vectors if not count[i]}
    found |= {("twice", i) for i in vectors if count[i] > 1}
    for late, early in itertools.combinations([i for i in ran if i in vectors], 2):
        if vectors[early] < vectors[late]:
            found.add(("order", early, late))
    return found
