"""How long an evaluation will take, before it begins."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from polyopt.ir import Scop
from polyopt.reference._plan import Block, Leaf, PlanNode, Repeat, make_plan
from polyopt.reference._region import enter, plan_region
from polyopt.reference._repeat import compiled_bounds, hull
from polyopt.sets import Set

__all__ = ["expected_seconds", "most_instances"]

CALL_S = 2e-5
"""One run of a leaf: some numpy calls."""
SCALAR_S = 2e-6
"""One instance, run alone."""
POINT_S = 2e-8
"""One point of an elementwise leaf."""
PRODUCT_S = 3e-10
"""One point of a leaf that sums products."""
LONG = 10_000
"""Iterations of a loop above which it is asked whether so many instances exist."""


def most_instances(scop: Scop, sizes: Mapping[str, int]) -> int:
    """The volume of the boxes around all domains."""
    return sum(_box_volume(s.domain.fix(sizes), sizes) for s in scop.statements)


def _box_volume(domain: Set, sizes: Mapping[str, int]) -> int:
    """The points of the box around a domain."""
    if domain.is_empty():
        return 0
    bounds = [domain.bounds(d, ()) for d in domain.dims]
    return prod(max(0, high.evaluate(sizes) - low.evaluate(sizes) + 1) for low, high in bounds)


def expected_seconds(scop: Scop, sizes: Mapping[str, int]) -> float:
    """About how long `evaluate` runs at `sizes`: a plan is made and its loops are counted, nothing is run."""
    plan = make_plan(scop, tuple(sorted(sizes.items())), False)
    return _seconds(plan.root, {})


def _seconds(node: PlanNode, env: dict[str, int]) -> float:
    if isinstance(node, Block):
        return sum((_seconds(c, env) for c in node.children), 0.0)
    if isinstance(node, Leaf):
        return _leaf_seconds(node, env)
    values = _values(node, env)
    if not values:
        return 0.0
    return len(values) * _seconds(node.body, {**env, node.name: values[len(values) // 2]})


def _values(node: Repeat, env: Mapping[str, int]) -> range:
    """The range of the loop at the middle iteration of the loops around it; no longer than its instances are many."""
    dense = hull(compiled_bounds(node), env)
    if len(dense) <= LONG:
        return dense
    most = sum(_box_volume(p.instances, {}) for p in node.parts)
    return dense[:: max(1, len(dense) // max(1, most))]


def _leaf_seconds(leaf: Leaf, env: Mapping[str, int]) -> float:
    if not leaf.dims:
        return SCALAR_S
    domain = leaf.part.domain
    region = enter(plan_region(domain, leaf.dims, leaf.sequential), env)
    if region is None:
        return CALL_S
    sums = leaf.part.combine == "+" and len(region.dims) > 2
    return CALL_S + region.volume * (PRODUCT_S if sums else POINT_S)
