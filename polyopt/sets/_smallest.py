"""The lexicographically smallest point of an integer set."""

from __future__ import annotations

import islpy as isl

__all__ = ["smallest_point"]

_SET = isl.dim_type.set


def smallest_point(points: isl.Set) -> list[int] | None:
    """Its coordinates; None when there is no smallest one.  `points` must not be empty.

    isl's lexmin now and then stumbles over its own integer divisions ("involves some of the domain dimensions"): then
    one coordinate after the other is made as small as it can be.
    """
    try:
        point = points.lexmin().sample_point()
    except isl.Error:
        return _by_coordinates(points)
    return [int(point.get_coordinate_val(_SET, k).to_python()) for k in range(points.dim(_SET))]


def _by_coordinates(points: isl.Set) -> list[int] | None:
    found: list[int] = []
    for k in range(points.dim(_SET)):
        least = points.dim_min_val(k)
        if not least.is_int():
            return None
        found.append(int(least.to_python()))
        points = points.fix_val(_SET, k, least)
    return found
