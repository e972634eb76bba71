"""Dependences: relations, kinds, certainty, axioms; the reduced form implies the full one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from polyopt.errors import BudgetError, InputError
from polyopt.schedule import compute_dependences, reduced_dependences
from polyopt.sets import Map, affine
from tests.unit.schedule._scops import program, scan


def test_kinds_and_relations() -> None:
    scop = program("A[N] float32 inout", ("S", "[i] : 0 <= i < N - 1", "[i]", "A[i] = A[i + 1]"))
    (only,) = compute_dependences(scop)
    assert (only.kinds, only.tensor, only.certain, only.axiom) == (("anti",), "A", True, None)
    assert only.relation == Map.parse("[N] -> { S[i] -> S[i + 1] : 0 <= i < N - 2 }")


def test_a_pair_that_conflicts_in_several_ways_is_one_dependence() -> None:
    (only,) = compute_dependences(scan())
    assert only.kinds == ("flow", "anti", "output")
    assert only.kind == "flow"
    assert only.relation == Map.parse("[N] -> { S[i] -> S[j] : 0 <= i < j < N }")


def test_the_reduced_form_keeps_the_last_writer_only() -> None:
    reduced = {d.kind: d.relation for d in reduced_dependences(scan())}
    step = Map.parse("[N] -> { S[i] -> S[i + 1] : 0 <= i < N - 1 }")
    assert reduced == {"flow": step, "anti": step, "output": step}


def test_combinations_that_may_change_places_carry_their_axiom() -> None:
    (only,) = compute_dependences(scan(reassociate=True))
    assert (only.axiom, only.is_ordered) == ("reassociate(+, float32)", False)
    assert len(reduced_dependences(scan(reassociate=True))) == 0


def test_initialisation_reaches_every_combination_when_these_may_change_places() -> None:
    scop = program(
        "A[N] float32 input; s[1] float32 inout",
        ("Z", "[] : ", "[0]", "s[0] = 0.0"),
        ("S", "[i] : 0 <= i < N", "[1, i]", "s[0] += A[i]"),
        reassociate=True,
    )
    (only,) = reduced_dependences(scop)
    assert only.relation.is_equal(Map.parse("[N] -> { Z[] -> S[i] : 0 <= i < N }"))


def test_a_tensor_that_nothing_writes_gives_no_dependence() -> None:
    scop = program("A[N] float32 input; B[N] float32 output", ("S", "[i] : 0 <= i < N", "[i]", "B[i] = A[0] * A[i]"))
    assert len(compute_dependences(scop)) == 0
    assert compute_dependences(scop).text() == ""


def test_subscripts_of_targets_are_reads() -> None:
    scop = program(
        "x[N] float32 output; idx[N] int32 temp",
        ("P", "[i] : 0 <= i < N", "[0, i]", "idx[i] = i"),
        ("S", "[i] : 0 <= i < N", "[1, i]", "x[idx[i]] = 1.0"),
    )
    flows = [d for d in compute_dependences(scop) if d.tensor == "idx"]
    assert [(d.source, d.sink, d.kind, d.certain) for d in flows] == [("P", "S", "flow", True)]
    scatter = [d for d in compute_dependences(scop) if d.tensor == "x"]
    assert [(d.kind, d.certain) for d in scatter] == [("output", False)]
    assert "(perhaps)" in scatter[0].text()


def test_a_call_touches_whole_tensors() -> None:
    scop = program(
        "x[N] float32 inout",
        ("S", "[i] : 0 <= i < N", "[0, i]", "x[i] = 1.0"),
        ("F", "[] : ", "[1]", "{may_read: [x], may_write: [x]}"),
    )
    (only,) = compute_dependences(scop)
    assert (only.kinds, only.certain) == (("flow", "output"), True)
    assert only.relation.is_equal(Map.parse("[N] -> { S[i] -> F[] : 0 <= i < N }"))


def test_an_empty_domain_gives_no_dependence() -> None:
    scop = program("A[N] float32 inout", ("S", "[i] : 1 <= i < N and N < 1", "[i]", "A[i] = A[i - 1]"))
    assert len(compute_dependences(scop)) == 0


def test_an_ambiguous_original_order_is_refused() -> None:
    scop = scan()
    statement = replace(scop.statements[0], order=(affine("i") // 2,))
    with pytest.raises(InputError) as caught:
        compute_dependences(replace(scop, statements=(statement,)))
    assert "two instances of S have the same place in the original order, for example S[0] and [1]" in str(caught.value)


def test_a_spent_budget_is_an_error() -> None:
    with pytest.raises(BudgetError, match="dependence analysis took more than 3 operations"):
        compute_dependences(scan(), max_operations=3)


def test_found_again_by_statements() -> None:
    scop = program(
        "A[N] float32 temp; B[N] float32 output",
        ("P", "[i] : 0 <= i < N", "[0, i]", "A[i] = 1.0"),
        ("C", "[j] : 0 <= j < N", "[1, j]", "B[j] = A[j]"),
    )
    dependences = compute_dependences(scop)
    assert [d.kind for d in dependences.between("P", "C")] == ["flow"]
    assert dependences.between("C", "P") == ()
    assert dependences.order("C") == Map.parse("[N] -> { C[j] -> [1, j, 1] : 0 <= j < N }")
    assert dependences.text().startswith("flow P -> C on A: [N] -> {")
