"""Sequential loops: over a range, or over the listed values that have instances when these lie far apart."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from polyopt.reference._affine import Env, IntArray, affine_array, compile_affine
from polyopt.reference._part import Part
from polyopt.reference._plan import Repeat
from polyopt.reference._region import enter, list_points, plan_region

__all__ = ["compiled_bounds", "hull", "list_instances", "repeat"]

LISTED = 2**22
"""Instances that are listed at most."""

PATIENCE = 1000
"""Iterations before it is asked how many of them have instances."""

Runner = Callable[[dict[str, int]], None]
Bounds = Sequence[tuple[Callable[[Env], int], Callable[[Env], int]]]


def repeat(node: Repeat, body: Runner) -> Runner:
    """`body` for every value of the level that has instances, and perhaps for others, in ascending order.

    A loop over a range costs as many iterations as the range is long.  Once these are more than PATIENCE and more than
    all instances in it, the values that occur are listed, for each value of the levels around it.
    """
    loop = _Loop(node)

    def run(env: dict[str, int]) -> None:
        for value in loop.values(env):
            env[node.name] = value
            body(env)
        env.pop(node.name, None)

    return run


def compiled_bounds(node: Repeat) -> Bounds:
    """The bounds of each part as functions of the levels around the loop."""
    return [(compile_affine(low), compile_affine(high)) for low, high in node.bounds]


def hull(bounds: Bounds, env: Mapping[str, int]) -> range:
    """From the smallest lower to the largest upper bound of the parts that have an iteration."""
    ranges = [(low(env), high(env)) for low, high in bounds]
    ranges = [(low, high) for low, high in ranges if low <= high]
    if not ranges:
        return range(0)
    return range(min(low for low, _ in ranges), max(high for _, high in ranges) + 1)


class _Loop:
    """visited: iterations so far.  listed: values of the levels around -> values with instances; None before that is
    needed.
    """

    def __init__(self, node: Repeat) -> None:
        self.node = node
        self.bounds = compiled_bounds(node)
        self.visited = 0
        self.count: int | None = None
        self.listed: Mapping[tuple[int, ...], list[int]] | None = None

    def values(self, env: Mapping[str, int]) -> Iterable[int]:
        if self.listed is not None:
            return self.listed.get(tuple(env[o] for o in self.node.outer), ())
        dense = hull(self.bounds, env)
        self.visited += len(dense)
        if self.visited > PATIENCE and self.is_sparse():
            self.listed = _listed(self.node)
            return self.values(env)
        return dense

    def is_sparse(self) -> bool:
        if self.count is None:
            self.count = sum(p.instances.count() for p in self.node.parts)
        return self.count <= LISTED and self.visited > self.count


def _listed(node: Repeat) -> dict[tuple[int, ...], list[int]]:
    """Values of the outer levels -> the values of this level that have instances, ascending."""
    rows = np.concatenate([_level_values(p, (*node.outer, node.name)) for p in node.parts])
    rows = np.unique(rows, axis=0)
    changes = np.flatnonzero((np.diff(rows[:, :-1], axis=0) != 0).any(axis=1)) + 1
    found: dict[tuple[int, ...], list[int]] = {}
    for group in np.split(rows, changes):
        if len(group):
            found[tuple(group[0, :-1].tolist())] = group[:, -1].tolist()
    return found


def _level_values(part: Part, levels: tuple[str, ...]) -> IntArray:
    """One row for each instance: the values of the levels."""
    indices, count = list_instances(part)
    columns = [indices[v] for v in levels]
    return np.stack(columns, axis=1) if count else np.zeros((0, len(levels)), np.int64)


def list_instances(part: Part) -> tuple[dict[str, IntArray], int]:
    """Iterators and levels -> their value at every instance; the number of instances."""
    region = enter(plan_region(part.instances, part.instances.dims, ()), {})
    points = {} if region is None else list_points(region)
    count = 0 if region is None else next(iter(points.values())).size if points else 1
    indices: dict[str, IntArray] = {}
    if region is not None:
        indices.update({n: np.full(count, v, np.int64) for n, v in region.env.items()})
    indices.update(points)
    values = {v: affine_array(part.whole_order[k], indices) for v, k in part.bound} if count else {}
    indices.update({v: np.broadcast_to(np.asarray(a, np.int64), (count,)) for v, a in values.items()})
    return indices, count
