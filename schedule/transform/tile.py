"""Rectangular tiling."""

from __future__ import annotations

from collections.abc import Mapping

from polyopt.ir import Scop
from polyopt.schedule._tree import Band, Member, ScheduleTree, Where, find_band
from polyopt.schedule.transform._edit import chosen, fresh_name, replaced
from polyopt.schedule.transform._legal import require_legal

__all__ = ["tile"]


def tile(scop: Scop, tree: ScheduleTree, where: Where, sizes: Mapping[str, int]) -> ScheduleTree:
    """Tiles of `sizes` (loop -> iterations, 1 allowed) for the loops of a band and of the bands right inside of it.

    Loops without a size stay whole, inside of the tiles.

    Rewrite, sizes {i: 4, j: 8}:

        loop i: i; loop j: j    ->    loop i_o: i//4; loop j_o: j//8; loop i: i; loop j: j

    Raises LegalityError with the witness when the loops are not permutable, TileSizeError on a size below 1, InputError
    when the band has no such loop.  Source: Irigoin and Triolet, "Supernode partitioning", POPL 1988.
    """
    path, band = find_band(tree, where)
    tiles: list[Member] = []
    for member, size in chosen(band, sizes):
        name = fresh_name(tree, f"{member.name}_o", [t.name for t in tiles])
        tiles.append(Member(name, tuple((s, e // size) for s, e in member.exprs)))
    if not tiles:
        return tree
    what = "tiling " + ", ".join(f"{m.name} by {size}" for m, size in chosen(band, sizes))
    return require_legal(scop, replaced(tree, path, Band(tuple(tiles), band)), what)
