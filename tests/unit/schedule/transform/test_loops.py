"""Transformations of loops: what they make, what they refuse with which witness."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from polyopt.errors import InputError, LegalityError, TileSizeError
from polyopt.schedule import ScheduleTree, Verdict, bands, original_tree, outline, replay, transform
from polyopt.schedule.transform import (
    diamond,
    interchange,
    parallel,
    reverse,
    scale,
    shift,
    skew,
    strip_mine,
    tile,
    unroll,
    unroll_and_jam,
    vectorise,
)
from tests.unit.schedule._scops import program
from tests.unit.schedule.transform._programs import MATMUL, PIPELINE, STENCIL, TRIANGLE, holds

R = (1,)
"""The band of the second nest of MATMUL."""


def loops(tree: ScheduleTree) -> list[tuple[str, ...]]:
    return [b.names() for _, b in bands(tree)]


def refused(call: Callable[[], object]) -> Verdict:
    with pytest.raises(LegalityError) as caught:
        call()
    assert isinstance(caught.value.verdict, Verdict)
    assert caught.value.verdict.witness is not None
    assert str(caught.value.verdict.witness) in caught.value.message
    return caught.value.verdict


@pytest.mark.parametrize("sizes", [{"i": 1, "j": 1, "k": 1}, {"i": 2, "j": 3, "k": 4}, {"k": 7}, {"i": 100, "k": 3}])
def test_tile_a_product(sizes: dict[str, int]) -> None:
    tree = holds(MATMUL, tile(MATMUL, original_tree(MATMUL), R, sizes), (0, 1, 3, 5))
    assert loops(tree)[1:] == [tuple(f"{n}_o" for n in sizes), ("i", "j", "k")]


def test_tile_nothing() -> None:
    tree = original_tree(MATMUL)
    assert tile(MATMUL, tree, R, {}) == tree


def test_tile_a_stencil_only_when_it_is_skewed() -> None:
    tree = original_tree(STENCIL)
    verdict = refused(lambda: tile(STENCIL, tree, "t", {"t": 2, "i": 2}))
    assert str(verdict.witness) == "flow dependence S[0, 2] -> S[1, 1] on A[1, 2] with N = 4"
    skewed = holds(STENCIL, skew(STENCIL, tree, "i", by="t"))
    tiled = holds(STENCIL, tile(STENCIL, skewed, "t", {"t": 2, "i": 3}))
    assert "loop i_o: S: floor((i + t)/3)" in outline(tiled)
    holds(STENCIL, tile(STENCIL, tiled, "t_o", {"t_o": 2, "i_o": 2}))


def test_tile_a_triangle() -> None:
    for size in (1, 2, 3):
        tree = original_tree(TRIANGLE)
        holds(TRIANGLE, tile(TRIANGLE, tree, "i", {"i": size}))


@pytest.mark.parametrize("size", [0, -1, True, 2.0, "2", None])
def test_sizes_below_one_are_refused(size: object) -> None:
    tree = original_tree(MATMUL)
    calls: tuple[Callable[[], object], ...] = (
        lambda: tile(MATMUL, tree, R, {"i": size}),  # type: ignore[dict-item]
        lambda: strip_mine(MATMUL, tree, (R, "i"), size),  # type: ignore[arg-type]
        lambda: unroll_and_jam(MATMUL, tree, (R, "i"), size),  # type: ignore[arg-type]
        lambda: scale(MATMUL, tree, (R, "i"), size),  # type: ignore[arg-type]
        lambda: vectorise(MATMUL, tree, (R, "k"), size),  # type: ignore[arg-type]
    )
    for call in calls:
        with pytest.raises(TileSizeError, match="expected a whole number of at least 1"):
            call()


@pytest.mark.parametrize(("first", "second"), [("i", "j"), ("i", "k"), ("j", "k")])
def test_interchange_a_product(first: str, second: str) -> None:
    tree = interchange(MATMUL, original_tree(MATMUL), (R, first), (R, second))
    order = {"i": "i", "j": "j", "k": "k", first: second, second: first}
    assert loops(holds(MATMUL, tree))[1] == tuple(order[n] for n in "ijk")


def test_interchange_across_bands() -> None:
    tree = tile(MATMUL, original_tree(MATMUL), R, {"i": 2, "k": 2})
    moved = holds(MATMUL, interchange(MATMUL, tree, "k_o", ((1, 0), "i")), (0, 1, 3, 5))
    assert loops(moved)[1:] == [("i_o", "i"), ("k_o", "j", "k")]


def test_interchange_a_stencil_is_illegal() -> None:
    verdict = refused(lambda: interchange(STENCIL, original_tree(STENCIL), "t", "i"))
    replayed = replay(STENCIL, verdict, "{ S[t, i] -> [i, t] }")
    assert replayed is not None
    assert replayed.differs


def test_interchange_wants_two_loops_of_one_nest() -> None:
    tree = original_tree(MATMUL)
    with pytest.raises(InputError, match="not nested directly in each other"):
        interchange(MATMUL, tree, ((0,), "i"), (R, "i"))
    with pytest.raises(InputError, match="it is the same loop"):
        interchange(MATMUL, tree, (R, "i"), (R, "i"))


@pytest.mark.parametrize("factor", [-2, 0, 1, 3])
def test_skew_by_an_outer_loop_keeps_the_order(factor: int) -> None:
    holds(STENCIL, skew(STENCIL, original_tree(STENCIL), "i", by="t", factor=factor))


def test_skew_by_an_inner_loop_may_be_illegal() -> None:
    refused(lambda: skew(STENCIL, original_tree(STENCIL), "t", by="i", factor=2))


def test_shift() -> None:
    fused = transform.fuse(PIPELINE, original_tree(PIPELINE), "i", "j", shifts={"i": 1})
    holds(PIPELINE, shift(PIPELINE, fused, "i", {"T": 3}))
    holds(PIPELINE, shift(PIPELINE, fused, "i", {"T": "N"}), (0, 1, 2, 5))
    verdict = refused(lambda: shift(PIPELINE, fused, "i", {"T": -1}))
    assert verdict.witness is not None
    assert verdict.witness.kind == "flow"
    with pytest.raises(InputError, match="runs no statement 'U'"):
        shift(PIPELINE, fused, "i", {"U": 1})
    with pytest.raises(InputError, match="'i' is no size"):
        shift(PIPELINE, fused, "i", {"T": "i"})


def test_scale() -> None:
    fused = transform.fuse(PIPELINE, original_tree(PIPELINE), "i", "j", shifts={"i": 1})
    holds(PIPELINE, scale(PIPELINE, fused, "i", 3))
    holds(PIPELINE, scale(PIPELINE, fused, "i", {"T": 2}))
    refused(lambda: scale(PIPELINE, fused, "i", {"S": 2}))


def test_reverse() -> None:
    holds(PIPELINE, reverse(PIPELINE, original_tree(PIPELINE), "i"))
    holds(STENCIL, reverse(STENCIL, original_tree(STENCIL), "i"))
    verdict = refused(lambda: reverse(STENCIL, original_tree(STENCIL), "t"))
    assert str(verdict.witness) == "flow dependence S[0, 1] -> S[1, 1] on A[1, 1] with N = 3"


@pytest.mark.parametrize("size", [1, 2, 3, 50])
def test_strip_mine_keeps_the_order(size: int) -> None:
    tree = holds(STENCIL, strip_mine(STENCIL, original_tree(STENCIL), "i", size))
    assert loops(tree) == [("t", "i_o", "i")]
    holds(STENCIL, strip_mine(STENCIL, original_tree(STENCIL), "t", size))


@pytest.mark.parametrize("factor", [1, 2, 3, 4])
def test_unroll_keeps_the_order(factor: int) -> None:
    holds(STENCIL, unroll(STENCIL, original_tree(STENCIL), "i", factor))
    outer = holds(STENCIL, unroll(STENCIL, original_tree(STENCIL), "t", factor))
    assert [n for names in loops(outer) for n in names] == ["t_o", *["i"] * factor]
    holds(TRIANGLE, unroll(TRIANGLE, original_tree(TRIANGLE), "j", factor))


def test_unroll_all_of_a_loop() -> None:
    taps = program(
        "X[N + 2] float32 input; Y[N] float32 inout",
        ("S", "[i, k] : 0 <= i < N and 0 <= k < 3", "[i, k]", "Y[i] += X[i + k]"),
    )
    tree = holds(taps, unroll(taps, original_tree(taps), "k"))
    assert loops(tree) == [("i",)]
    assert outline(tree).count("- S") == 3
    with pytest.raises(InputError, match="depends on sizes"):
        unroll(taps, original_tree(taps), "i")


@pytest.mark.parametrize("factor", [1, 2, 3])
def test_unroll_and_jam(factor: int) -> None:
    tree = holds(MATMUL, unroll_and_jam(MATMUL, original_tree(MATMUL), (R, "i"), factor), (0, 1, 3, 5))
    assert loops(tree)[1] == ("i_o", "j", "k")
    if factor > 1:
        refused(lambda: unroll_and_jam(STENCIL, original_tree(STENCIL), "t", factor))


def test_parallel() -> None:
    tree = parallel(MATMUL, original_tree(MATMUL), [(R, "i"), (R, "j")])
    assert outline(holds(MATMUL, tree)).count("parallel loop") == 2
    verdict = refused(lambda: parallel(MATMUL, original_tree(MATMUL), (R, "k")))
    assert str(verdict.witness) == "flow dependence R[0, 0, 0] -> R[0, 0, 1] on C[0, 0] with N = 2"
    holds(STENCIL, parallel(STENCIL, original_tree(STENCIL), "i"))
    refused(lambda: parallel(STENCIL, original_tree(STENCIL), "t"))


def test_vectorise_runs_each_statement_for_all_lanes() -> None:
    """A dependence from the first to the second statement of later iterations is kept in lock step."""
    scop = program(
        "A[N + 2] float32 inout; B[N + 2] float32 inout",
        ("S", "[i] : 0 <= i < N", "[i, 0]", "A[i] = B[i]*2.0"),
        ("T", "[i] : 0 <= i < N", "[i, 1]", "B[i + 1] = A[i] + 1.0"),
    )
    refused(lambda: vectorise(scop, original_tree(scop), "i", 4))  # T[i] -> S[i + 1] on B
    forward = program(
        "A[N + 2] float32 inout; B[N + 2] float32 inout",
        ("S", "[i] : 0 <= i < N", "[i, 0]", "A[i + 1] = B[i]*2.0"),
        ("T", "[i] : 0 <= i < N", "[i, 1]", "B[i + 1] = A[i] + A[i + 2]"),
    )
    refused(lambda: vectorise(forward, original_tree(forward), "i", 4))  # T reads what later S overwrite
    kept = program(
        "A[N + 2] float32 inout; B[N + 2] float32 inout",
        ("S", "[i] : 0 <= i < N", "[i, 0]", "A[i + 1] = 3.0*i"),
        ("T", "[i] : 0 <= i < N", "[i, 1]", "B[i] = A[i] + A[i + 1]"),
    )
    tree = vectorise(kept, original_tree(kept), "i", 4)
    assert outline(holds(kept, tree)).count("vector loop i") == 2
    assert "loop i_o: S: floor((i)/4); T: floor((i)/4)" in outline(tree)
    refused(lambda: parallel(kept, original_tree(kept), "i"))


def test_vectorise_wants_the_innermost_loop() -> None:
    with pytest.raises(InputError, match="not the innermost loop: i stand inside"):
        vectorise(STENCIL, original_tree(STENCIL), "t", 4)


@pytest.mark.parametrize("size", [1, 2, 4, 5])
def test_diamond(size: int) -> None:
    tree = holds(STENCIL, diamond(STENCIL, original_tree(STENCIL), "t", "i", size))
    assert loops(tree) == [("t_w", "i_o"), ("t", "i")]
    assert "parallel loop i_o" in outline(tree)
    wave = dict(next(b for _, b in bands(tree)).members[0].exprs)["S"]
    assert wave.evaluate({"t": 5, "i": 3, "N": 9}) == (5 + 3) // size + (5 - 3) // size


def test_diamond_finds_the_slope() -> None:
    far = program(
        "A[2, N] float32 inout",
        (
            "S",
            "[t, i] : 0 <= t < N and 2 <= i < N - 2",
            "[t, i]",
            "A[(t + 1) % 2, i] = A[t % 2, i - 2] + A[t % 2, i + 2]",
        ),
    )
    tree = holds(far, diamond(far, original_tree(far), "t", "i", 3))
    assert "2*t" in outline(tree)
    too_far = program(
        "A[2, N] float32 inout",
        (
            "S",
            "[t, i] : 0 <= t < N and 9 <= i < N - 9",
            "[t, i]",
            "A[(t + 1) % 2, i] = A[t % 2, i - 9] + A[t % 2, i + 9]",
        ),
    )
    refused(lambda: diamond(too_far, original_tree(too_far), "t", "i", 64))


def test_unknown_loops_are_named() -> None:
    tree = original_tree(MATMUL)
    with pytest.raises(InputError, match="2 bands called 'i'"):
        reverse(MATMUL, tree, "i")
    with pytest.raises(InputError, match="no loop 'q'"):
        reverse(MATMUL, tree, (R, "q"))
    with pytest.raises(InputError, match="no loop 'q'"):
        tile(MATMUL, tree, R, {"q": 4})


def test_a_data_dependent_subscript_is_not_guessed() -> None:
    scop = program(
        "x[N] float32 inout; p[N] int32 input",
        ("S", "[i] : 0 <= i < N", "[i]", "x[p[i]] = x[i]"),
    )
    with pytest.raises(LegalityError, match="reversing i may be illegal: x"):
        reverse(scop, original_tree(scop), "i")
