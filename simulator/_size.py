"""How long a program is before it is run."""

from __future__ import annotations

from collections.abc import Mapping

from polyopt.ir.program import Loop, Node, Program

__all__ = ["expected_instructions"]


def expected_instructions(program: Program, sizes: Mapping[str, int]) -> int:
    """About how many instructions run at `sizes`: inner loops are counted as in the first iteration of the outer
    ones.
    """
    return _count(program.body, dict(sizes))


def _count(nodes: tuple[Node, ...], env: dict[str, int]) -> int:
    total = 0
    for n in nodes:
        if not isinstance(n, Loop):
            total += 1
            continue
        first = n.lower.evaluate(env)
        trips = len(range(first, n.upper.evaluate(env), n.step))
        if trips:
            total += trips * _count(n.body, {**env, n.var: first})
    return total
