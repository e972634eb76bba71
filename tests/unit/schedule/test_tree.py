"""Schedule trees: made from orders, read and written, judged, applied."""

from __future__ import annotations

import pytest

from polyopt.bench import SUITES
from polyopt.errors import InputError
from polyopt.ir import Scop
from polyopt.schedule import (
    Band,
    Filter,
    Member,
    ScheduleTree,
    Sequence,
    TreeLeaf,
    apply_tree,
    check,
    compute_schedule,
    find_band,
    original_tree,
    outline,
    read_tree,
    tree_yaml,
)
from polyopt.sets import Constraint, affine, var
from tests.unit.schedule._scops import program

SCOPS = {w.name: w.scop() for w in SUITES["main"] if w.name in ("softmax", "jacobi-2d", "lu", "max-pool")}


def _stencil() -> Scop:
    return program(
        "A[N] float32 inout",
        ("S", "[t, i] : 0 <= t < N and 1 <= i < N - 1", "[t, i]", "A[i] = A[i - 1] + A[i + 1]"),
    )


@pytest.mark.parametrize("name", SCOPS)
def test_the_original_order_as_a_tree_is_legal_and_reads_back(name: str) -> None:
    scop = SCOPS[name]
    tree = original_tree(scop)
    assert check(scop, tree)
    again = read_tree(scop, tree_yaml(tree))
    assert outline(again) == outline(tree)
    assert check(scop, tree_yaml(tree))


@pytest.mark.parametrize("name", SCOPS)
def test_a_scheduler_s_tree_means_the_same_as_its_vectors(name: str) -> None:
    scop = SCOPS[name]
    found = compute_schedule(scop)
    tree = read_tree(scop, found.tree)
    assert check(scop, tree).verdict == found.verdict.verdict
    applied = apply_tree(scop, tree)
    assert sum(s.domain.count(dict.fromkeys(scop.params, 5)) for s in applied.statements) == sum(
        s.domain.count(dict.fromkeys(scop.params, 5)) for s in scop.statements
    )


def test_an_order_of_the_tree_is_judged_piece_by_piece() -> None:
    scop = _stencil()
    domain = original_tree(scop).domain
    band = Band((Member("t", (("S", var("t")),)), Member("i", (("S", var("i")),))))
    early = domain[0].constrain([Constraint(affine(2) - var("t"))])
    late = domain[0].subtract(early)
    right = ScheduleTree(domain, Sequence((Filter((early,), band), Filter((late,), band))))
    assert check(scop, right)
    wrong = ScheduleTree(domain, Sequence((Filter((late,), band), Filter((early,), band))))
    verdict = check(scop, wrong)
    assert verdict.verdict == "illegal"
    assert verdict.witness is not None
    assert dict(verdict.witness.params) == {"N": 4}
    assert dict(verdict.witness.source.at)["t"] <= 2 < dict(verdict.witness.sink.at)["t"]
    assert [s.name for s in apply_tree(scop, right).statements] == ["S", "S_1"]


def test_a_parallel_loop_must_not_carry_a_dependence() -> None:
    scop = _stencil()
    domain = original_tree(scop).domain
    members = (Member("t", (("S", var("t")),)), Member("i", (("S", var("i")),), "parallel"))
    verdict = check(scop, ScheduleTree(domain, Band(members)))
    assert verdict.verdict == "illegal"
    assert verdict.witness is not None
    assert dict(verdict.witness.source.at)["t"] == dict(verdict.witness.sink.at)["t"]


def test_trees_that_lose_instances_are_refused() -> None:
    scop = _stencil()
    domain = original_tree(scop).domain
    half = domain[0].constrain([Constraint(affine(2) - var("t"))])
    with pytest.raises(InputError, match="no child of a sequence runs"):
        check(scop, ScheduleTree(domain, Sequence((Filter((half,), TreeLeaf()),))))
    with pytest.raises(InputError, match="says nothing about S"):
        check(scop, ScheduleTree(domain, Band((Member("t", ()),))))


def test_a_band_is_found_by_the_name_of_its_loop() -> None:
    tree = original_tree(SCOPS["lu"])
    assert find_band(tree, "k")[0] == ()
    assert find_band(tree, "j")[1].names() == ("i", "j")
    with pytest.raises(InputError, match="2 bands called 'i'"):
        find_band(tree, "i")
    with pytest.raises(InputError, match="no band called 'q'"):
        find_band(tree, "q")
    with pytest.raises(InputError, match="is a sequence, not a band"):
        find_band(tree, (0,))


def test_instances_that_a_tree_leaves_open_run_in_some_order() -> None:
    scop = program("A[N, N] float32 inout", ("S", "[i, j] : 0 <= i < N and 0 <= j < N", "[i, j]", "A[i, j] = 1.0"))
    tree = ScheduleTree(original_tree(scop).domain, Band((Member("j", (("S", var("j")),)),)))
    assert check(scop, tree)
    (applied,) = apply_tree(scop, tree).statements
    assert applied.order == (affine("j"), affine("i"), affine("j"))
