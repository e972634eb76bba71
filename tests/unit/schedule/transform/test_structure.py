"""Transformations of sequences, instance sets and storage."""

from __future__ import annotations

from typing import Any

import pytest

from polyopt.errors import InputError, LegalityError, PluginError, TileSizeError, UnsupportedError
from polyopt.schedule import ScheduleTree, bands, original_tree, outline
from polyopt.schedule.transform import (
    auto,
    contract,
    diamond,
    distribute_loop,
    expand,
    fuse,
    index_set_split,
    parallel,
    peel,
    reorder,
    separate,
    sink,
    skew,
    split_loop,
    tile,
    unroll,
)
from tests.unit.schedule._scops import program
from tests.unit.schedule.transform._programs import MATMUL, PIPELINE, STENCIL, TRIANGLE, holds, same_values


@pytest.mark.parametrize("amount", [1, 2, 7])
def test_fuse_with_a_shift(amount: int) -> None:
    tree = holds(PIPELINE, fuse(PIPELINE, original_tree(PIPELINE), "i", "j", shifts={"i": amount}))
    assert [b.names() for _, b in bands(tree)] == [("i",)]


def test_fuse_without_the_shift_is_illegal() -> None:
    with pytest.raises(LegalityError, match=r"flow dependence S\[2\] -> T\[1\] on B\[2\] with N = 3"):
        fuse(PIPELINE, original_tree(PIPELINE), "i", "j")


@pytest.mark.parametrize("depth", [1, 2])
def test_fuse_a_prefix_of_the_loops(depth: int) -> None:
    tree = holds(MATMUL, fuse(MATMUL, original_tree(MATMUL), ((0,), "i"), ((1,), "i"), depth=depth))
    assert len(next(b for _, b in bands(tree)).members) == depth
    back = holds(MATMUL, distribute_loop(MATMUL, tree, ((), "ij"[depth - 1])))
    if depth == 1:
        assert outline(back) == outline(original_tree(MATMUL))


def test_fuse_wants_neighbours() -> None:
    tree = original_tree(MATMUL)
    with pytest.raises(InputError, match="has 2 loops, 3 were asked for"):
        fuse(MATMUL, tree, ((0,), "i"), ((1,), "i"), depth=3)
    with pytest.raises(InputError, match="not the outermost ones of neighbours"):
        fuse(MATMUL, tree, ((1,), "i"), ((0,), "i"))
    with pytest.raises(InputError, match="not the outermost ones of neighbours"):
        fuse(MATMUL, tree, ((0,), "i"), ((1,), "j"))
    with pytest.raises(InputError, match="the shift of 'k' by 1"):
        fuse(MATMUL, tree, ((0,), "i"), ((1,), "i"), shifts={"k": 1})


def test_distribute() -> None:
    scop = program(
        "A[N + 1] float32 inout; B[N + 1] float32 inout; C[N + 1] float32 inout",
        ("S", "[i] : 0 <= i < N", "[i, 0]", "A[i] = B[i]*2.0"),
        ("T", "[i] : 0 <= i < N", "[i, 1]", "C[i] = A[i] + 1.0"),
        ("U", "[i] : 0 <= i < N", "[i, 2]", "B[i + 1] = A[i] + 1.0"),
    )
    tree = original_tree(scop)
    with pytest.raises(LegalityError, match="distributing i is illegal"):
        distribute_loop(scop, tree, "i")
    with pytest.raises(LegalityError):
        distribute_loop(scop, tree, "i", [[0], [1, 2]])
    with pytest.raises(InputError, match="do not name the 3 children"):
        distribute_loop(scop, tree, "i", [[0, 2], [1]])
    with pytest.raises(InputError, match="no sequence inside"):
        distribute_loop(STENCIL, original_tree(STENCIL), "i")
    later = reorder(scop, tree, (0,), [0, 2, 1])
    holds(scop, distribute_loop(scop, later, "i", [[0, 1], [2]]))


def test_reorder() -> None:
    tree = original_tree(PIPELINE)
    with pytest.raises(LegalityError, match="reordering the sequence"):
        reorder(PIPELINE, tree, (), [1, 0])
    for wrong in ([0], [0, 0], [0, 2], [1, 2, 0]):
        with pytest.raises(InputError, match="does not name each of the 2 children once"):
            reorder(PIPELINE, tree, (), wrong)
    with pytest.raises(InputError, match="is a band, not a sequence"):
        reorder(PIPELINE, tree, (0,), [0])


def test_index_set_split() -> None:
    palindrome = program("A[N] float32 inout", ("S", "[i] : 0 <= i < N", "[i]", "A[i] = A[N - 1 - i] + 1.0"))
    tree = original_tree(palindrome)
    with pytest.raises(LegalityError):
        parallel(palindrome, tree, "i")
    halves = holds(palindrome, index_set_split(palindrome, tree, (), {"S": "2i < N"}))
    both = parallel(palindrome, parallel(palindrome, halves, ((0,), "i")), ((1,), "i"))
    assert outline(holds(palindrome, both)).count("parallel") == 2
    with pytest.raises(LegalityError):
        index_set_split(palindrome, tree, (), {"S": "2i >= N"})
    with pytest.raises(InputError, match="no instance of 'T' reaches"):
        index_set_split(palindrome, tree, (), {"T": "i < 1"})
    with pytest.raises(InputError, match="cannot read the set"):
        index_set_split(palindrome, tree, (), {"S": "i <"})


@pytest.mark.parametrize("at", [0, 1, 3, 100, "N"])
def test_split_a_loop(at: int | str) -> None:
    tree = holds(STENCIL, split_loop(STENCIL, original_tree(STENCIL), "i", at))
    if at == 3:
        first, second = tree.root.child.children  # type: ignore[union-attr]
        assert {i for _, i in first.instances[0].points({"N": 9})} == {1, 2}
        assert {i for _, i in second.instances[0].points({"N": 9})} == {3, 4, 5, 6, 7}
    holds(TRIANGLE, split_loop(TRIANGLE, original_tree(TRIANGLE), "i", at))


@pytest.mark.parametrize(("first", "last"), [(0, 0), (1, 0), (0, 1), (2, 3), (50, 50)])
def test_peel(first: int, last: int) -> None:
    holds(STENCIL, peel(STENCIL, original_tree(STENCIL), "i", first=first, last=last))
    tree = holds(TRIANGLE, peel(TRIANGLE, original_tree(TRIANGLE), "j", first=first, last=last))
    if (first, last) == (0, 1):  # the last j depends on i
        assert outline(tree).count("loop j") == 2
    if (first, last) == (2, 3):
        parts = [f.instances[0].points({"N": 9}) for f in _nest_of_j(tree).children]
        assert [sum(1 for i, _ in part if i == 8) for part in parts] == [2, 3, 3]
        assert [sum(1 for i, _ in part if i == 3) for part in parts] == [2, 0, 1]
    with pytest.raises(TileSizeError, match="at least 0"):
        peel(STENCIL, original_tree(STENCIL), "i", first=-1)


def _nest_of_j(tree: ScheduleTree) -> Any:
    """The sequence in place of the loop j of TRIANGLE."""
    return tree.root.child.children[0].child  # type: ignore[union-attr]


def test_peel_a_tile_loop() -> None:
    tree = tile(TRIANGLE, original_tree(TRIANGLE), "i", {"i": 3})
    holds(TRIANGLE, peel(TRIANGLE, tree, ((0,), "i"), first=1))


def test_separate_full_tiles() -> None:
    tiled = tile(STENCIL, skew(STENCIL, original_tree(STENCIL), "i", by="t"), "t", {"t": 2, "i": 3})
    tree = holds(STENCIL, separate(STENCIL, tiled, "t_o"))
    full = next(b for p, b in bands(tree) if p == (0, 0))
    assert full.names() == ("t", "i")
    # a full tile holds 2*3 instances, wherever one instance of it is
    inside = tree.root.child.children[0].instances[0]  # type: ignore[union-attr]
    per_tile: dict[tuple[int, int], int] = {}
    for t, i in inside.points({"N": 12}):
        per_tile[t // 2, (t + i) // 3] = per_tile.get((t // 2, (t + i) // 3), 0) + 1
    assert per_tile
    assert set(per_tile.values()) == {6}
    every: dict[tuple[int, int], int] = {}
    for t, i in tree.domain[0].points({"N": 12}):
        every[t // 2, (t + i) // 3] = every.get((t // 2, (t + i) // 3), 0) + 1
    assert {k for k, n in every.items() if n == 6} == set(per_tile)


def test_separate_wants_tiles() -> None:
    with pytest.raises(InputError, match="no loops stand right inside"):
        separate(STENCIL, original_tree(STENCIL), "t")
    few = program("A[3] float32 inout", ("S", "[i] : 0 <= i < 3", "[i]", "A[i] = 1.0"), params="")
    with pytest.raises(InputError, match="no tile is full"):
        separate(few, tile(few, original_tree(few), "i", {"i": 8}), "i_o")


def test_sink_a_statement_into_a_loop() -> None:
    scop = program(
        "A[N, N] float32 input; s[N] float32 output",
        ("Z", "[i] : 0 <= i < N", "[i, 0, 0]", "s[i] = 0.0"),
        ("S", "[i, j] : 0 <= i < N and 0 <= j < N", "[i, 1, j]", "s[i] += A[i, j]"),
    )
    tree = original_tree(scop)
    sunk = holds(scop, sink(scop, tree, (0,), 0, 1))
    assert [b.names() for _, b in bands(sunk)] == [("i",), ("j",)]
    holds(scop, sink(scop, tree, (0,), 0, 1, at=-1))
    with pytest.raises(LegalityError):
        sink(scop, tree, (0,), 0, 1, at="last")
    with pytest.raises(InputError, match="no neighbours"):
        sink(scop, tree, (0,), 0, 2)
    with pytest.raises(InputError, match="is no loop"):
        sink(scop, tree, (0,), 1, 0)


def test_sink_at_the_end_of_a_triangular_loop() -> None:
    holds(TRIANGLE, sink(TRIANGLE, original_tree(TRIANGLE), (0,), 1, 0, at="last"))
    with pytest.raises(LegalityError):
        sink(TRIANGLE, original_tree(TRIANGLE), (0,), 1, 0, at="first")


@pytest.mark.parametrize("reach", [0, 1, 2, 5])
def test_contract_to_the_smallest_window(reach: int) -> None:
    scop = program(
        "A[N + 9] float32 input; T[N + 9] float32 temp; B[N + 9] float32 inout",
        ("S", "[i] : 0 <= i < N", "[i, 0]", "T[i] = A[i]*2.0"),
        ("R", f"[i] : {reach} <= i < N", "[i, 1]", f"B[i] = T[i] + T[i - {reach}]"),
    )
    found = contract(scop, "T", 0)
    assert found.copies == reach + 1
    same_values(scop, found.scop)


def test_contract_a_whole_array_only_when_the_loops_are_fused() -> None:
    scop = program(
        "A[N] float32 input; T[N] float32 temp; B[N] float32 inout",
        ("S", "[i] : 0 <= i < N", "[0, i]", "T[i] = A[i]*2.0"),
        ("R", "[i] : 0 <= i < N", "[1, i]", "B[i] = T[i] + 1.0"),
    )
    with pytest.raises(LegalityError, match="no window of up to 64 cells"):
        contract(scop, "T", 0)
    for tensor, axis, message in (("A", 0, "is input, not temp"), ("T", 1, "no axis 1"), ("U", 0, "no tensor 'U'")):
        with pytest.raises(InputError, match=message):
            contract(scop, tensor, axis)


def test_contract_time_steps_to_two() -> None:
    scop = program(
        "X[N + 2] float32 input; A[N + 2, N + 2] float32 temp; Y[N + 2] float32 inout",
        ("I", "[i] : 0 <= i < N + 2", "[0, 0, i]", "A[0, i] = X[i]"),
        ("L", "[t] : 1 <= t <= N", "[1, t, 0]", "A[t, 0] = X[0]"),
        ("H", "[t] : 1 <= t <= N", "[1, t, 1]", "A[t, N + 1] = X[N + 1]"),
        ("S", "[t, i] : 1 <= t <= N and 1 <= i <= N", "[1, t, 2, i]", "A[t, i] = A[t - 1, i - 1] + A[t - 1, i + 1]"),
        ("O", "[i] : 0 <= i < N + 2", "[2, i]", "Y[i] = A[N, i]"),
    )
    found = contract(scop, "A", 0)
    assert found.copies == 2
    same_values(scop, found.scop, (0, 1, 2, 3, 4))


def test_expand_makes_a_loop_parallel() -> None:
    scop = program(
        "A[N] float32 input; T[1] float32 temp; B[N] float32 inout",
        ("S", "[i] : 0 <= i < N", "[i, 0]", "T[0] = A[i]*2.0"),
        ("R", "[i] : 0 <= i < N", "[i, 1]", "B[i] = T[0] + 1.0"),
    )
    with pytest.raises(LegalityError):
        parallel(scop, original_tree(scop), "i")
    private = expand(scop, "T", {"S": ["i"]})
    same_values(scop, private)
    holds(private, parallel(private, original_tree(private), "i"))
    assert contract(private, "T", 1).copies == 1


def test_expand_a_sum_by_its_outer_loop_only() -> None:
    scop = program(
        "A[N, N] float32 input; s[1] float32 temp; B[N] float32 inout",
        ("Z", "[i] : 0 <= i < N", "[i, 0, 0]", "s[0] = 0.0"),
        ("S", "[i, j] : 0 <= i < N and 0 <= j < N", "[i, 1, j]", "s[0] += A[i, j]"),
        ("R", "[i] : 0 <= i < N", "[i, 2, 0]", "B[i] = s[0]"),
    )
    private = expand(scop, "s", {"Z": ["i"], "S": ["i"]})
    same_values(scop, private)
    holds(private, parallel(private, original_tree(private), "i"))
    with pytest.raises(UnsupportedError, match="would be torn apart"):
        expand(scop, "s", {"Z": ["i"], "S": ["j"]})
    with pytest.raises(InputError, match="nothing is said about S"):
        expand(scop, "s", {"Z": ["i"]})
    with pytest.raises(InputError, match="S has no iterator 'k'"):
        expand(scop, "s", {"Z": ["i"], "S": ["k"]})


def test_expand_begins_at_the_first_iteration() -> None:
    scop = program(
        "A[N] float32 input; T[1] float32 temp; B[N] float32 inout",
        ("S", "[i] : 3 <= i < N", "[i, 0]", "T[0] = A[i]*2.0"),
        ("R", "[i] : 3 <= i < N", "[i, 1]", "B[i] = T[0] + 1.0"),
    )
    private = expand(scop, "T", {"S": ["i"]})
    assert private.tensor("T").sizes({"N": 9}) == (1, 6)
    same_values(scop, private)


def test_expand_reads_the_write_of_an_earlier_iteration() -> None:
    scop = program(
        "A[N] float32 input; T[2] float32 temp; B[N] float32 inout",
        ("S", "[i] : 0 <= i < N", "[i, 0]", "T[i % 2] = A[i]*2.0"),
        ("R", "[i] : 1 <= i < N", "[i, 1]", "B[i] = T[(i + 1) % 2] - T[i % 2]"),
    )
    private = expand(scop, "T", {"S": ["i"]})
    same_values(scop, private)
    alone = contract(private, "T", 0)
    assert (alone.copies, contract(alone.scop, "T", 1).copies) == (1, 2)


def test_auto() -> None:
    for scop in (MATMUL, STENCIL, PIPELINE, TRIANGLE):
        for scheduler in ("isl", "feautrier", "original"):
            found = auto(scop, scheduler)
            holds(scop, found.tree, (0, 1, 3, 5))
            assert found.result.rung in ("full", "original")
    assert "parallel" in outline(auto(MATMUL).tree)
    with pytest.raises(PluginError, match="fastest"):
        auto(MATMUL, "fastest")


NUMBER: Any = 3


def test_statements_without_instances_do_not_count() -> None:
    scop = program(
        "A[N] float32 inout",
        ("S", "[i] : 0 <= i < N and i < -1", "[i]", "A[i] = 1.0"),
        ("R", "[i] : 0 <= i < 8", "[i]", "A[i] = A[i] + 1.0"),
        context="N >= 8",
    )
    tree = original_tree(scop)
    holds(scop, unroll(scop, tree, "i"), (8, 9))
    tiled = tile(scop, tree, "i", {"i": 4})
    holds(scop, separate(scop, tiled, "i_o"), (8, 9))
    holds(scop, peel(scop, tree, "i", first=1, last=1), (8, 9))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda any_: tile(STENCIL, any_, "t", {"t": 2}), "tree: None cannot be used"),
        (lambda any_: reorder(STENCIL, any_, (), [0]), "tree: None cannot be used"),
        (lambda any_: tile(STENCIL, any_ or original_tree(STENCIL), NUMBER, {"t": 2}), "path: 3 cannot be used"),
        (lambda any_: parallel(STENCIL, any_ or original_tree(STENCIL), NUMBER), "loops: 3 cannot be used"),
        (lambda any_: diamond(STENCIL, any_ or original_tree(STENCIL), "t", "t", 3), "both t"),
    ],
)
def test_arguments_of_a_wrong_kind(call: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        call(None)
