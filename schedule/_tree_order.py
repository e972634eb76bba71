"""The order that a schedule tree gives, and the equal program in that order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from polyopt.errors import InputError
from polyopt.ir import Scop, Statement
from polyopt.schedule._tree import (
    SEQUENTIAL,
    Band,
    Filter,
    Leaf,
    Mark,
    Node,
    ScheduleTree,
    Unordered,
    children,
    filtered,
)
from polyopt.sets import Affine, Map, Set, affine, pad_order

__all__ = ["Piece", "TreePieces", "apply_tree", "tree_maps", "tree_pieces"]


_Vectors = Mapping[str, tuple[Affine, ...]]
_Unordered = tuple[int, tuple[Set, ...]]


@dataclass(frozen=True, slots=True)
class Piece:
    """The instances of one statement at one leaf, and their order vector."""

    instances: Set
    vector: tuple[Affine, ...]

    @property
    def statement(self) -> str:
        return self.instances.name


@dataclass(frozen=True, slots=True)
class TreePieces:
    """pieces: in the order of the leaves.  unordered: an entry and instances among which a difference that comes first
    in that entry says nothing: children of an unordered node, iterations of a parallel loop.
    """

    pieces: tuple[Piece, ...]
    unordered: tuple[_Unordered, ...]

    @property
    def length(self) -> int:
        return max((len(p.vector) for p in self.pieces), default=0)


def tree_pieces(tree: ScheduleTree) -> TreePieces:
    """Every leaf's instances with their order vectors, not padded.

    Raises InputError when a band says nothing about a statement that reaches it, or a filter drops instances.
    """
    unordered: list[_Unordered] = []
    pieces = tuple(_walk(tree.root, tree.domain, {s.name: () for s in tree.domain}, unordered))
    return TreePieces(pieces, tuple(unordered))


def _walk(node: Node, sets: tuple[Set, ...], vectors: _Vectors, unordered: list[_Unordered]) -> Iterator[Piece]:
    if isinstance(node, Leaf):
        yield from (Piece(s, vectors[s.name]) for s in sets if not s.is_empty())
    elif isinstance(node, Mark):
        yield from _walk(node.child, sets, vectors, unordered)
    elif isinstance(node, Band):
        yield from _walk(node.child, sets, _through_band(node, sets, vectors, unordered), unordered)
    else:
        if isinstance(node, Unordered):
            unordered.append((_depth(sets, vectors), sets))
        _refuse_lost(sets, node.children)
        for k, (below, child) in enumerate(zip(node.children, children(node), strict=True)):
            inside = filtered(sets, below)
            yield from _walk(child, inside, {s.name: (*vectors[s.name], affine(k)) for s in inside}, unordered)


def _through_band(band: Band, sets: tuple[Set, ...], vectors: _Vectors, unordered: list[_Unordered]) -> _Vectors:
    result = dict(vectors)
    for m in band.members:
        if m.kind != SEQUENTIAL:
            unordered.append((_depth(sets, result), sets))
        known = dict(m.exprs)
        for s in sets:
            if s.name not in known:
                raise InputError(
                    f"the loop {m.name!r} of the schedule tree says nothing about {s.name}",
                    help=f"give {s.name} an iteration of {m.name}",
                    id="schedule",
                )
            result[s.name] = (*result[s.name], known[s.name])
    return result


def _depth(sets: tuple[Set, ...], vectors: _Vectors) -> int:
    return len(vectors[sets[0].name]) if sets else 0


def _refuse_lost(sets: tuple[Set, ...], below: tuple[Filter, ...]) -> None:
    for s in sets:
        left = s
        for passed in (p for f in below for p in f.instances if p.name == s.name):
            left = left.subtract(passed)
        if not left.is_empty():
            raise InputError(
                f"no child of a sequence runs {left.smallest() or left} of {s.name}",
                help="let the filters of the children cover every instance",
                id="schedule",
            )


def tree_maps(tree: ScheduleTree) -> tuple[tuple[Map, ...], tuple[_Unordered, ...]]:
    """(for each statement its instances -> order vector, all equally long; unordered entries as in `TreePieces`)."""
    found = tree_pieces(tree)
    length = max(found.length, 1)
    maps = {s.name: Map.from_exprs(s, "", [affine(0)] * length) for s in tree.domain if s.is_empty()}
    for p in found.pieces:
        order = pad_order(Map.from_exprs(p.instances, "", p.vector or (affine(0),)), length)
        maps[p.statement] = maps[p.statement].union(order) if p.statement in maps else order
    return tuple(maps[s.name] for s in tree.domain), found.unordered


def apply_tree(scop: Scop, tree: ScheduleTree) -> Scop:
    """An equal program that runs in the order of `tree`, which the caller judged legal.

    A statement that the tree splits into k pieces becomes k statements `S`, `S_1`, ..., `S_<k-1>`.
    """
    found = tree_pieces(tree)
    names = {s.name for s in scop.statements}
    made: list[Statement] = []
    count: dict[str, int] = {}
    for p in found.pieces:
        statement = scop.statement(p.statement)
        k = count[p.statement] = count.get(p.statement, -1) + 1
        name = p.statement if k == 0 else _fresh(f"{p.statement}_{k}", names)
        names.add(name)
        vector = p.vector or (affine(0),)
        if not Map.from_exprs(p.instances, "", vector).is_injective():  # no dependence orders these instances
            vector = (*vector, *map(affine, statement.iterators))
        made.append(replace(statement, name=name, domain=p.instances.rename(name=name).coalesce(), order=vector))
    return replace(scop, statements=tuple(made))


def _fresh(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    return name
