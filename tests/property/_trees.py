"""A loop tree as an order of the original kind, with the parallel dimensions in any order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from hypothesis import strategies as st

from polyopt.ir import Scop
from polyopt.schedule import Leaf, LoopTree
from polyopt.sets import Affine, affine, var


def in_tree_order(scop: Scop, tree: tuple[LoopTree, ...], data: st.DataObject) -> Scop:
    """The instances in the order of the tree; those of one leaf that nothing orders in an order that is drawn."""
    vectors: dict[str, tuple[Affine, ...]] = {}
    _visit(tree, {}, (), vectors, data)
    assert sorted(vectors) == sorted(s.name for s in scop.statements)
    return replace(scop, statements=tuple(replace(s, order=vectors[s.name]) for s in scop.statements))


def _visit(
    nodes: tuple[LoopTree, ...],
    inside: Mapping[str, tuple[Affine, ...]],
    above: tuple[Affine, ...],
    vectors: dict[str, tuple[Affine, ...]],
    data: st.DataObject,
) -> None:
    for position, node in enumerate(nodes):
        if isinstance(node, Leaf):
            prefix = (*inside.get(node.statement, above), affine(position))
            assert node.statement not in vectors
            vectors[node.statement] = (*prefix, *_any_order(node.parallel, data))
        else:
            inner = {n: (*inside.get(n, above), affine(position), var(i)) for n, i in node.iterators}
            _visit(node.body, inner, (), vectors, data)


def _any_order(dims: tuple[str, ...], data: st.DataObject) -> list[Affine]:
    """A mixture first, then every dimension, forwards or backwards."""
    if not dims:
        return []
    mixed = affine(data.draw(st.integers(0, 4)))
    for d in dims:
        mixed = mixed + var(d) * data.draw(st.integers(-2, 2))
    return [
        mixed % data.draw(st.integers(1, 5)),
        *(var(d) * data.draw(st.sampled_from([1, -1])) for d in data.draw(st.permutations(dims))),
    ]
