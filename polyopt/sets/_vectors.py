"""Order vectors as relations: an instance may have several."""

from __future__ import annotations

from collections.abc import Sequence

import islpy as isl

from polyopt.sets._map import Map
from polyopt.sets._order import in_arity, with_in_dims

__all__ = [
    "append_constant",
    "append_entries",
    "first_vectors",
    "insert_constants",
    "plain_in_dims",
    "repeated",
    "restrict_vectors",
]

_OUT = isl.dim_type.out


def plain_in_dims(order: Map) -> Map:
    """The same relation, its input dimensions called d0, d1, ..."""
    return with_in_dims(order, [f"d{k}" for k in range(in_arity(order))])


def append_constant(order: Map, value: int) -> Map:
    """Every vector with one more entry, `value`."""
    last = order.out_arity
    return Map(order.isl.add_dims(_OUT, 1).fix_val(_OUT, last, isl.Val(value)))


def append_entries(order: Map, entries: Sequence[Map]) -> Map:
    """Every vector followed by the entries that each relation (instances to one number) gives its instance."""
    result = order.isl
    for e in entries:
        result = result.flat_range_product(e.isl.reset_tuple_id(_OUT))
    return Map(result)


def insert_constants(order: Map, constants: Sequence[tuple[int, int]]) -> Map:
    """The vectors with (position, value) put in, in the order given; positions count in the longer vector."""
    result = order.isl
    for position, value in constants:
        result = result.insert_dims(_OUT, position, 1).fix_val(_OUT, position, isl.Val(value))
    return Map(result)


def restrict_vectors(order: Map, others: Sequence[Map]) -> Map:
    """Only the vectors that one of `others` gives to one of its instances."""
    allowed: isl.Set | None = None
    for other in others:
        vectors = other.isl.range()
        allowed = vectors if allowed is None else allowed.union(vectors)
    return order if allowed is None else Map(order.isl.intersect_range(allowed))


def first_vectors(order: Map) -> Map:
    """Each instance's lexicographically first vector."""
    later = isl.Map.lex_lt(order.isl.get_space().range())
    return Map(order.isl.subtract(order.isl.apply_range(later)))


def repeated(order: Map) -> Map:
    """{ x -> x : x has two vectors or more }."""
    again = order.isl.lex_lt_map(order.isl)
    return Map(again.intersect(isl.Map.identity(again.get_space())))
