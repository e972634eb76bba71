"""Lexicographic order between instances of two statements, and the smallest pair that a relation holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import islpy as isl

from polyopt.errors import InputError
from polyopt.sets._map import Map
from polyopt.sets._set import Set
from polyopt.sets._smallest import smallest_point

__all__ = [
    "PairPoint",
    "before",
    "bound_below",
    "carried_by",
    "differ_first_at",
    "in_arity",
    "not_before",
    "pad_order",
    "restrict_range",
    "smallest_pair",
    "with_in_dims",
]

_IN, _OUT, _PARAM, _SET = isl.dim_type.in_, isl.dim_type.out, isl.dim_type.param, isl.dim_type.set


def bound_below(context: Set, params: Sequence[str]) -> Set:
    """`context` with `p >= 0` added for every parameter that has no smallest value in it."""
    result = context.isl.params()
    for p in params:
        position = result.find_dim_by_name(_PARAM, p)
        if position < 0:
            position = result.dim(_PARAM)
            result = result.add_dims(_PARAM, 1).set_dim_name(_PARAM, position, p)
        alone = result.project_out(_PARAM, position + 1, result.dim(_PARAM) - position - 1)
        if not alone.project_out(_PARAM, 0, position).dim_has_lower_bound(_PARAM, 0):
            result = result.lower_bound_val(_PARAM, position, isl.Val(0))
    return Set(result.from_params())


def pad_order(order: Map, length: int) -> Map:
    """The order vector made `length` long with zeros."""
    missing = length - order.out_arity
    if missing <= 0:
        return order
    result = order.isl.add_dims(_OUT, missing)
    for k in range(order.out_arity, length):
        result = result.fix_val(_OUT, k, isl.Val(0))
    return Map(result)


def in_arity(relation: Map) -> int:
    """The number of input dimensions, named or not."""
    return int(relation.isl.dim(_IN))


def with_in_dims(relation: Map, dims: Sequence[str]) -> Map:
    """The same relation, its input dimensions called `dims`."""
    result = relation.isl
    for k, d in enumerate(dims):
        result = result.set_dim_name(_IN, k, d)
    return Map(result)


def restrict_range(relation: Map, image: Set) -> Map:
    """The pairs whose output lies in `image` (same tuple, dimensions in the same order)."""
    return Map(relation.isl.intersect_range(image.isl))


def before(a: Map, b: Map) -> Map:
    """{ x -> y : a(x) comes before b(y) }; the two order vectors must be equally long."""
    return Map(a.isl.lex_lt_map(b.isl))


def not_before(a: Map, b: Map) -> Map:
    """{ x -> y : a(x) comes after b(y) or equals it }."""
    return Map(a.isl.lex_ge_map(b.isl))


def carried_by(a: Map, b: Map, dim: int) -> Map:
    """{ x -> y : a(x) and b(y) differ first in entry `dim`, and a(x) is the smaller one }."""
    return Map(_through(a, b, _first_at(a, dim)))


def differ_first_at(a: Map, b: Map, dim: int) -> Map:
    """{ x -> y : a(x) and b(y) differ first in entry `dim` }."""
    step = _first_at(a, dim)
    return Map(_through(a, b, step.union(step.reverse())))


def _first_at(order: Map, dim: int) -> isl.Map:
    space = order.isl.get_space().range().map_from_set()
    step = isl.Map.universe(space)
    for k in range(dim):
        step = step.equate(_IN, k, _OUT, k)
    return step.order_lt(_IN, dim, _OUT, dim)


def _through(a: Map, b: Map, step: isl.Map) -> isl.Map:
    return a.isl.apply_range(step).apply_range(b.isl.reverse())


@dataclass(frozen=True, slots=True, order=True)
class PairPoint:
    """One pair of a relation at fixed parameters; compares by parameters, then source order, then sink order."""

    params: tuple[int, ...]
    source_order: tuple[int, ...]
    sink_order: tuple[int, ...]
    source: tuple[int, ...]
    sink: tuple[int, ...]


def smallest_pair(relation: Map, source_order: Map, sink_order: Map, params: Sequence[str]) -> PairPoint | None:
    """The pair of `relation` with the smallest parameters (in the order of `params`), then the first source, then the
    first sink by the two order maps; None when the relation is empty.

    Raises InputError when there is no smallest pair (a parameter or an instance without a lower bound).
    """
    by_order = relation.isl.apply_domain(_with_instance(source_order)).apply_range(_with_instance(sink_order))
    n_in, n_out = by_order.dim(_IN), by_order.dim(_OUT)
    flat = _params_in_front(by_order.wrap().flatten(), params)
    cuts = [len(params), source_order.out_arity, n_in - source_order.out_arity, sink_order.out_arity]
    cuts.append(n_out - sink_order.out_arity)
    found: list[PairPoint] = []
    for part in flat.get_basic_sets():
        point = _lexmin(part)
        if point is not None:
            found.append(_split(point, cuts))
    return min(found, default=None)


def _with_instance(order: Map) -> isl.Map:
    """{ x -> [order(x), x] }."""
    domain = order.isl.domain()
    instance = isl.Map.identity(domain.get_space().map_from_set()).reset_tuple_id(_OUT)
    return order.isl.flat_range_product(instance)


def _params_in_front(flat: isl.Set, params: Sequence[str]) -> isl.Set:
    for k, p in enumerate(params):
        position = flat.find_dim_by_name(_PARAM, p)
        if position < 0:
            flat = flat.insert_dims(_SET, k, 1)
        else:
            flat = flat.move_dims(_SET, k, _PARAM, position, 1)
    return flat


def _lexmin(part: isl.BasicSet) -> list[int] | None:
    if part.is_empty():
        return None
    point = smallest_point(isl.Set.from_basic_set(part))
    if point is None:
        raise InputError(
            "there is no smallest violation: a size or an iterator is unbounded below",
            help="bound the sizes in the context and the iterators in the domain",
        )
    return point


def _split(point: list[int], cuts: list[int]) -> PairPoint:
    parts: list[tuple[int, ...]] = []
    start = 0
    for width in cuts:
        parts.append(tuple(point[start : start + width]))
        start += width
    params, source_order, source, sink_order, sink = parts
    return PairPoint(params, source_order, sink_order, source, sink)
