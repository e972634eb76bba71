"""Diamond tiling of stencils."""

from __future__ import annotations

from dataclasses import replace

from polyopt.errors import InputError, LegalityError
from polyopt.ir import Scop
from polyopt.schedule._tree import PARALLEL, SEQUENTIAL, Band, Member, ScheduleTree
from polyopt.schedule.transform._edit import Loop, chain_of, fresh_name, replaced, whole
from polyopt.schedule.transform._legal import require_legal

__all__ = ["diamond"]

STEEPEST = 4
"""Slopes that are tried: a stencil that reaches further in one step is refused."""


def diamond(scop: Scop, tree: ScheduleTree, time: Loop, space: Loop, size: int) -> ScheduleTree:
    """Tiles bounded by `r*time + space` and `r*time - space`, all tiles of a wavefront in parallel from the start.

    The slope r is the smallest one, up to 4, that is legal.  Other loops of the nest run inside of the tiles.

    Rewrite, a = (r*t + i)//size, b = (r*t - i)//size:

        loop t: t; loop i: i    ->    loop t_w: a + b; parallel loop i_o: a; loop t: t; loop i: i

    Raises LegalityError with the witness for the steepest slope when none is legal, TileSizeError on a size below 1.
    Source: Bandishti, Pananilath and Bondhugula, "Tiling stencil computations to maximize parallelism", SC 2012.
    """
    steps, place = chain_of(tree, time, space)
    if (steps.path, steps.position) == (place.path, place.position):
        raise InputError(
            f"the loops in time and in space are both {steps.member.name}", help="name two loops", id="tree-path"
        )
    edge = whole("the size of a diamond", size)
    wave = fresh_name(tree, f"{steps.member.name}_w")
    across = fresh_name(tree, f"{place.member.name}_o", [wave])
    path, band = (steps.path, steps.band) if len(steps.path) <= len(place.path) else (place.path, place.band)
    what = f"diamond tiling of {steps.member.name} and {place.member.name} by {edge}"
    for slope in range(1, STEEPEST + 1):
        members = _wavefront(steps.member, place.member, slope, edge, (wave, across))
        try:
            return require_legal(scop, replaced(tree, path, Band(members, band)), what)
        except LegalityError:
            if slope == STEEPEST:
                raise
    raise AssertionError("unreachable")


def _wavefront(time: Member, space: Member, slope: int, size: int, names: tuple[str, str]) -> tuple[Member, Member]:
    places = dict(space.exprs)
    rising = {s: (e * slope + places[s]) // size for s, e in time.exprs}
    falling = {s: (e * slope - places[s]) // size for s, e in time.exprs}
    wave = tuple((s, rising[s] + falling[s]) for s in rising)
    return (
        Member(names[0], wave, SEQUENTIAL),
        replace(space, name=names[1], exprs=tuple(rising.items()), kind=PARALLEL),
    )
