"""Exact dataflow between accesses to one array (isl's array dataflow analysis)."""

from __future__ import annotations

from collections.abc import Sequence

import islpy as isl

from polyopt.errors import UnsupportedError
from polyopt.sets._map import Map

__all__ = ["last_sources", "union_of"]


def union_of(maps: Sequence[Map]) -> isl.UnionMap:
    """All maps together; at least one."""
    total = isl.UnionMap.from_map(maps[0].isl)
    for m in maps[1:]:
        total = total.union(isl.UnionMap.from_map(m.isl))
    return total


def last_sources(
    *,
    sinks: Sequence[Map],
    must_sources: Sequence[Map] = (),
    may_sources: Sequence[Map] = (),
    kills: Sequence[Map] = (),
    orders: Sequence[Map],
) -> tuple[Map, ...]:
    """Source instance -> sink instance, one map for each pair of statements.

    A sink depends on the last must-source before it and on every may-source in between; a kill hides earlier sources.
    sinks, sources, kills: instance -> cell.  orders: instance -> order vector, all equally long.  Raises
    UnsupportedError where isl (0.27) stumbles over its own integer divisions.
    """
    if not sinks or not (must_sources or may_sources):
        return ()
    info = isl.UnionAccessInfo.from_sink(union_of(sinks))
    if must_sources:
        info = info.set_must_source(union_of(must_sources))
    if may_sources:
        info = info.set_may_source(union_of(may_sources))
    if kills:
        info = info.set_kill(union_of(kills))
    try:
        flow = info.set_schedule_map(union_of(orders)).compute_flow()
    except isl.Error as error:
        if "involves some of the domain dimensions" not in str(error):
            raise
        raise UnsupportedError("isl's dataflow analysis fails on these accesses", id="dataflow") from error
    found: list[isl.Map] = []
    flow.get_may_dependence().coalesce().foreach_map(found.append)
    return tuple(sorted((Map(m) for m in found if not m.is_empty()), key=lambda m: (m.in_name, m.out_name)))
