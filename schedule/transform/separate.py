"""Separation of full from partial tiles."""

from __future__ import annotations

from polyopt.errors import InputError
from polyopt.ir import Scop
from polyopt.schedule._tree import Band, Member, Node, Path, ScheduleTree, Where, find_band
from polyopt.schedule.transform._edit import outer_exprs, reaching, replaced, sequence_of, time_of
from polyopt.schedule.transform._legal import require_legal
from polyopt.sets import Affine, Constraint, Floor, Map, Set, affine, restrict_range, var

__all__ = ["separate"]

_Tiled = tuple[tuple[Member, Member, int], ...]
"""(tile loop, point loop, size)."""


def separate(scop: Scop, tree: ScheduleTree, where: Where) -> ScheduleTree:
    """Tiles that are full, whose loops then need no bounds of the domain, are told apart from those at the rim.

    where: a band of tile loops right above the band of the loops that they tile, as `tile` makes them.  A tile is full
    when every statement in it runs at every point.

    Rewrite:    loop i_o: i//4    ->    loop i_o: i//4
                loop i: i                 in sequence
                                            loop i: S if the tile is full
                                            loop i: S if it is not

    The order stays as it is.  Raises InputError when there are no such bands or no tile is ever full.  Source: Ancourt
    and Irigoin, "Scanning polyhedra with DO loops", PPoPP 1991.
    """
    path, band = find_band(tree, where)
    points = band.child
    if not isinstance(points, Band):
        raise InputError(
            f"no loops stand right inside the band {list(path)}",
            help="name the band of tile loops that tile made",
            id="tree-path",
        )
    tiled = _tiled(band, points)
    sets = reaching(tree, (*path, 0))
    partial = _partial(tree, path, band, tiled, sets)
    outer = {s.name: [*outer_exprs(tree, path, s.name), *_exprs(band, s.name)] for s in sets}
    rim = tuple(restrict_range(Map.from_exprs(s, "", outer[s.name]), partial).domain() for s in sets)
    full = tuple(s.subtract(r) for s, r in zip(sets, rim, strict=True))
    if all(s.is_empty() for s in full):
        raise InputError("no tile is full at any size", help="choose smaller tiles", id="tile-size")
    node: Node = Band(band.members, sequence_of([(full, points), (rim, points)]))
    return require_legal(scop, replaced(tree, path, node), f"separating the tiles of {', '.join(band.names())}")


def _exprs(band: Band, statement: str) -> list[Affine]:
    return [dict(m.exprs)[statement] for m in band.members]


def _tiled(tiles: Band, points: Band) -> _Tiled:
    """Which loop each tile loop tiles; loops that are no tiles of another are left out."""
    found: list[tuple[Member, Member, int]] = []
    for t in tiles.members:
        match = next(((p, size) for p in points.members for size in _divisors(t) if _is_tile(t, p, size)), None)
        if match is not None:
            found.append((t, *match))
    if not found:
        raise InputError(
            f"none of the loops {', '.join(tiles.names())} tiles one of {', '.join(points.names())}",
            help="name the band of tile loops that tile made",
            id="tree-path",
        )
    return tuple(found)


def _divisors(tile: Member) -> list[int]:
    return sorted({a.divisor for _, e in tile.exprs for a, _ in e.terms if isinstance(a, Floor)} | {1})


def _is_tile(tile: Member, point: Member, size: int) -> bool:
    points = dict(point.exprs)
    return all(e == points[s] // size for s, e in tile.exprs)


def _partial(tree: ScheduleTree, path: Path, band: Band, tiled: _Tiled, sets: tuple[Set, ...]) -> Set:
    """(loops around, tile loops) of the tiles in which a statement lacks a point."""
    around = max(len(outer_exprs(tree, path, s.name)) for s in sets)
    tiles = [f"o{k}" for k in range(around + len(band.members))]
    dims = [f"p{k}" for k in range(len(tiled))]
    position = {id(m): tiles[around + k] for k, m in enumerate(band.members)}
    spans: list[Set] = []
    for s in (s for s in sets if not s.is_empty()):
        exprs = [*outer_exprs(tree, path, s.name), *_exprs(band, s.name), *(dict(p.exprs)[s.name] for _, p, _ in tiled)]
        spans.append(time_of(s, exprs, [*tiles, *dims]))
    if not spans:
        raise InputError("no instance reaches these tiles", help="name tiles that run", id="tile-size")
    every = spans[0]
    for span in spans[1:]:
        every = every.union(span)
    boxes = every.project_onto(tiles).add_dims(dims)
    for (t, _, size), p in zip(tiled, dims, strict=True):
        low = affine(var(position[id(t)])) * size
        boxes = boxes.constrain([Constraint(var(p) - low), Constraint(low + size - 1 - var(p))])
    missing = [boxes.subtract(span).project_onto(tiles) for span in spans]
    total = missing[0]
    for m in missing[1:]:
        total = total.union(m)
    return total
