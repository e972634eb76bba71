"""The lexicographically smallest point of an integer set."""

from __future__ import annotations

import islpy as isl

__all__ = ["smallest_point"]

_SET = isl.dim_type.set


def smallest_point(points: isl.Set) -> list[int] | None:
    """Its coordinates; None when there is no smallest one.  `points` must not be empty.

    In each conjunction one coordinate after the other is made as small as it can be; the first of these points it is.
    isl's lexmin (0.27) is not used: on sets that hold integer divisions from earlier operations it now and then fails
    ("involves some of the domain dimensions") or gives an empty set where there are points;
    `tests/fuzz/corpus/lexmin-*.yaml` are two programs that showed it.  Nor is the minimum of a union: an empty part of
    it counts as 0.
    """
    found: list[int] | None = None
    for part in points.get_basic_sets():
        if part.is_empty():
            continue
        point = _smallest_of(isl.Set.from_basic_set(part))
        if point is None:
            return None
        found = point if found is None else min(found, point)
    return found


def _smallest_of(part: isl.Set) -> list[int] | None:
    """Of one conjunction."""
    found: list[int] = []
    for k in range(part.dim(_SET)):
        least = part.dim_min_val(k)
        if not least.is_int():
            return None
        found.append(int(least.to_python()))
        part = part.fix_val(_SET, k, least)
    return found
