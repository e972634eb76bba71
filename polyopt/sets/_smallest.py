"""The lexicographically smallest point of an integer set."""

from __future__ import annotations

import islpy as isl

__all__ = ["smallest_point"]

_SET = isl.dim_type.set


def smallest_point(points: isl.Set) -> list[int] | None:
    """Its coordinates; None when there is no smallest one.  `points` must not be empty.

    One coordinate after the other is made as small as it can be.  isl's lexmin (0.27) is not used: on sets that hold
    integer divisions from earlier operations it now and then fails ("involves some of the domain dimensions") or gives
    an empty set where there are points; `tests/fuzz/corpus/lexmin-*.yaml` are two programs that showed it.
    """
    found: list[int] = []
    for k in range(points.dim(_SET)):
        least = points.dim_min_val(k)
        if not least.is_int():
            return None
        found.append(int(least.to_python()))
        points = points.fix_val(_SET, k, least)
    return found
