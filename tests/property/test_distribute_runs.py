"""Distributed programs compute what the original ones do, whatever the order inside their parallel dimensions."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from polyopt.ir import Scop
from polyopt.reference import inputs, interpret
from polyopt.schedule import Leaf, LoopTree, compute_dependences, distribute, leaves, normalise
from tests.property._chains import chains
from tests.property._runnable import SIZES, runnable_programs
from tests.property._trees import in_tree_order


def check_tree(scop: Scop, tree: tuple[LoopTree, ...]) -> None:
    """Every statement is one leaf; the loops around it and its parallel dimensions are its iterators."""
    assert sorted(leaf.statement for leaf in leaves(tree)) == sorted(s.name for s in scop.statements)

    def visit(nodes: tuple[LoopTree, ...], around: dict[str, tuple[str, ...]]) -> None:
        for node in nodes:
            if isinstance(node, Leaf):
                own = (*around.get(node.statement, ()), *node.parallel)
                assert sorted(own) == sorted(scop.statement(node.statement).iterators)
                continue
            assert sorted(n for n, _ in node.iterators) == sorted(leaf.statement for leaf in leaves(node.body))
            visit(node.body, {**around, **{n: (*around.get(n, ()), i) for n, i in node.iterators}})

    visit(tree, {})


@settings(max_examples=60)
@given(runnable_programs(), st.data())
def test_any_order_inside_parallel_dimensions(scop: Scop, data: st.DataObject) -> None:
    normal = normalise(scop)
    distributed, tree = distribute(normal, compute_dependences(normal))
    check_tree(distributed, tree)
    arrays = inputs(scop, SIZES, mode="exact")
    expected = interpret(scop, arrays, SIZES, "exact")
    for name, values in interpret(in_tree_order(distributed, tree, data), arrays, SIZES, "exact").items():
        assert np.array_equal(values, expected[name]), name


@settings(max_examples=40)
@given(chains(), st.data())
def test_producers_come_before_their_users(scop: Scop, data: st.DataObject) -> None:
    sizes = {"N": data.draw(st.integers(1, 4)), "M": data.draw(st.integers(1, 4))}
    normal = normalise(scop)
    distributed, tree = distribute(normal, compute_dependences(normal))
    check_tree(distributed, tree)
    arrays = inputs(scop, sizes, mode="exact")
    expected = interpret(scop, arrays, sizes, "exact")
    for name, values in interpret(in_tree_order(distributed, tree, data), arrays, sizes, "exact").items():
        assert np.array_equal(values, expected[name]), name
