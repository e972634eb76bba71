"""The judge: direction of the order, reductions and axioms, trees, bad input, budgets."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from polyopt.errors import InputError
from polyopt.schedule import check
from polyopt.sets import Set
from tests.unit.schedule._scops import program, scan

STEP = program("A[N] float32 inout", ("S", "[i] : 1 <= i < N", "[i]", "A[i] = A[i - 1]"))
TWO = program(
    "A[N] float32 temp; B[N] float32 output; X[N] float32 input",
    ("P", "[i] : 0 <= i < N", "[0, i]", "A[i] = X[i]"),
    ("C", "[j] : 0 <= j < N", "[1, j]", "B[j] = A[j]"),
)


def test_a_known_illegal_direction() -> None:
    """Guards against reading the lexicographic order the wrong way round."""
    forward, backward = check(STEP, "{ S[i] -> [i] }"), check(STEP, "{ S[i] -> [-i] }")
    assert forward.verdict == "legal"
    assert backward.verdict == "illegal"
    witness = backward.witness
    assert witness is not None
    assert (dict(witness.params), witness.kind, witness.tensor, witness.cell) == ({"N": 3}, "flow", "A", (1,))
    assert (str(witness.source), str(witness.sink)) == ("S[1]", "S[2]")


def test_dependent_instances_at_the_same_place_are_not_ordered() -> None:
    verdict = check(TWO, "{ P[i] -> [i]; C[j] -> [j] }")
    assert verdict.verdict == "illegal"
    assert "both come at [0]" in verdict.reason


def test_shorter_vectors_are_padded_with_zero() -> None:
    assert check(TWO, "{ P[i] -> [i]; C[j] -> [j, 1] }").verdict == "legal"
    assert check(TWO, "{ P[i] -> [i]; C[j] -> [j, -1] }").verdict == "illegal"


def test_pieces_of_one_statement_may_have_vectors_of_different_length() -> None:
    assert check(STEP, "{ S[i] -> [i] : i < 3; S[i] -> [i, 5] : i >= 3 }").verdict == "legal"


def test_a_schedule_may_hold_for_some_sizes_only() -> None:
    text = "{ S[i] -> [floor(i/4), -i] }"
    assert check(STEP, text, at={"N": 2}).verdict == "legal"
    verdict = check(STEP, text)
    assert verdict.witness is not None
    assert dict(verdict.witness.params) == {"N": 3}


def test_vectors_as_values() -> None:
    assert check(STEP, {"S": ["i"]}).verdict == "legal"
    assert check(STEP, {"S": [0]}).verdict == "illegal"


def test_equal_places_in_the_original_order_follow_the_text() -> None:
    scop = program(
        "A[N] float32 inout",
        ("S", "[i] : 0 <= i < N", "[i]", "A[i] = 1.0"),
        ("T", "[i] : 0 <= i < N", "[i]", "A[i] = A[i] + 1.0"),
    )
    assert check(scop, "{ S[i] -> [i, 0]; T[i] -> [i, 1] }").verdict == "legal"
    assert check(scop, "{ S[i] -> [i, 1]; T[i] -> [i, 0] }").verdict == "illegal"


def test_a_size_without_a_bound_is_zero_or_more() -> None:
    scop = program("A[N + 5] float32 inout", ("S", "[i] : 0 <= i < N + 4", "[i]", "A[i + 1] = A[i]"))
    witness = check(scop, "{ S[i] -> [-i] }").witness
    assert witness is not None
    assert dict(witness.params) == {"N": 0}


def test_a_context_that_says_nothing_means_zero_or_more() -> None:
    scop = replace(STEP, context=Set.parse("", params=["N"]))
    statement = replace(scop.statements[0], domain=Set.parse("[i] : N <= i <= N + 3", name="S", params=["N"]))
    witness = check(replace(scop, statements=(statement,)), "{ S[i] -> [-i] }").witness
    assert witness is not None
    assert dict(witness.params) == {"N": 0}


def test_the_cell_belongs_to_the_kind_and_tensor_that_are_named() -> None:
    """S[0] writes A[5], which S[1] reads, and reads A[1], which S[1] writes."""
    scop = program("A[9] float32 inout", ("S", "[i] : 0 <= i < 2", "[i]", "A[5 - 4 * i] = A[1 + 4 * i]"), params="")
    witness = check(scop, "{ S[i] -> [-i] }").witness
    assert witness is not None
    assert (witness.kind, witness.cell) == ("flow", (5,))


# -- reductions -------------------------------------------------------------------------------------------------------
REVERSED = "{ S[i] -> [-i] }"


def test_float_sums_need_the_axiom_and_name_it() -> None:
    assert check(scan(), REVERSED).verdict == "illegal"
    verdict = check(scan(reassociate=True), REVERSED)
    assert verdict.verdict == "legal"
    assert verdict.axioms == ("reassociate(+, float32)",)
    assert "given reassociate(+, float32)" in verdict.reason


def test_an_axiom_that_was_not_needed_is_not_named() -> None:
    assert check(scan(reassociate=True), "{ S[i] -> [i] }").axioms == ()


@pytest.mark.parametrize(
    ("dtype", "body"),
    [
        ("int32", "s[0] += A[i]"),
        ("int8", "s[0] *= A[i]"),
        ("float32", "s[0] = max(s[0], A[i])"),
        ("float16", "s[0] = min(A[i], s[0])"),
    ],
)
def test_exact_combinations_need_no_axiom(dtype: str, body: str) -> None:
    verdict = check(scan(dtype=dtype, body=body), REVERSED)
    assert (verdict.verdict, verdict.axioms) == ("legal", ())
    assert check(scan(dtype=dtype, body=body), "{ S[i] -> [i] }", parallel=[0]).verdict == "legal"


def test_a_rounding_integer_sum_is_not_exact() -> None:
    scop = program(
        "A[N] float32 input; s[1] int32 inout", ("S", "[i] : 0 <= i < N", "[i]", "s[0] += A[i]"), reassociate=True
    )
    assert check(scop, REVERSED).verdict == "illegal"


def test_a_sum_that_reads_its_own_target_keeps_its_order() -> None:
    assert check(scan(reassociate=True, body="s[0] += A[i] * s[0]"), REVERSED).verdict == "illegal"


def test_different_operators_keep_their_order() -> None:
    def both(second: str) -> str:
        scop = program(
            "A[N] float32 input; s[1] float32 inout",
            ("S", "[i] : 0 <= i < N", "[0, i]", "s[0] += A[i]"),
            ("T", "[i] : 0 <= i < N", "[1, i]", second),
            reassociate=True,
        )
        return check(scop, "{ S[i] -> [1, i]; T[i] -> [0, i] }").verdict

    assert both("s[0] += A[i] * A[i]") == "legal"
    assert both("s[0] *= A[i]") == "illegal"
    assert both("s[0] = A[i]") == "illegal"


def test_initialisation_and_use_stay_in_place_under_the_axiom() -> None:
    scop = program(
        "A[N] float32 input; s[1] float32 temp; o[1] float32 output",
        ("Z", "[] : ", "[0]", "s[0] = 0.0"),
        ("S", "[i] : 0 <= i < N", "[1, i]", "s[0] += A[i]"),
        ("E", "[] : ", "[2]", "o[0] = s[0]"),
        reassociate=True,
    )
    assert check(scop, "{ Z[] -> [0]; S[i] -> [1, -i]; E[] -> [2] }").verdict == "legal"
    assert check(scop, "{ Z[] -> [1, -1]; S[i] -> [1, -i]; E[] -> [2] }").verdict == "illegal"
    assert check(scop, "{ Z[] -> [0]; S[i] -> [1, -i]; E[] -> [1, 0, 1] }").verdict == "legal"
    assert check(scop, "{ Z[] -> [0]; S[i] -> [1, -i]; E[] -> [1, -1] }").verdict == "illegal"


# -- access classes ---------------------------------------------------------------------------------------------------
def test_a_gather_blocks_only_what_it_may_touch() -> None:
    scop = program(
        "x[N] float32 inout; y[N] float32 output; idx[N] int32 input",
        ("S", "[n] : 0 <= n < N", "[0, n]", "y[n] = x[idx[n]]"),
        ("T", "[n] : 0 <= n < N", "[1, n]", "x[n] = 0.0"),
    )
    assert check(scop, "{ S[n] -> [0, -n]; T[n] -> [1, -n] }").verdict == "legal"
    verdict = check(scop, "{ S[n] -> [1, n]; T[n] -> [0, n] }")
    assert verdict.verdict == "unknown"
    assert "x[idx[n]] in S" in verdict.reason


def test_a_certain_violation_beats_a_possible_one() -> None:
    scop = program(
        "x[N] float32 inout; idx[N] int32 input", ("S", "[n] : 1 <= n < N", "[n]", "x[n] = x[idx[n]] + x[n - 1]")
    )
    assert check(scop, "{ S[n] -> [-n] }").verdict == "illegal"


def test_a_call_conflicts_with_a_gather_for_certain() -> None:
    scop = program(
        "x[N] float32 inout; y[N] float32 output; idx[N] int32 input",
        ("F", "[] : ", "[0]", "{may_read: [], may_write: [x]}"),
        ("S", "[n] : 0 <= n < N", "[1, n]", "y[n] = x[idx[n]]"),
    )
    witness = check(scop, "{ F[] -> [1]; S[n] -> [0, n] }").witness
    assert witness is not None
    assert (witness.kind, witness.cell, dict(witness.params)) == ("flow", (0,), {"N": 1})


# -- trees ------------------------------------------------------------------------------------------------------------
TREE = """
domain: "[N] -> { P[i] : 0 <= i < N; C[j] : 0 <= j < N }"
child:
  schedule: "[{ P[i] -> [i]; C[j] -> [j] }]"
  child:
    %s:
    - filter: "{ P[i] }"
    - filter: "{ C[j] }"
"""


def test_a_schedule_tree_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "tree.yaml"
    path.write_text(TREE % "sequence", encoding="utf-8")
    assert check(TWO, f"@{path}").verdict == "legal"


def test_children_of_a_set_node_have_no_order() -> None:
    verdict = check(TWO, TREE % "set")
    assert verdict.verdict == "illegal"
    assert "unordered dimension 1 of a set node" in verdict.reason


def test_instances_apart_by_an_outer_loop_are_ordered_across_a_set_node() -> None:
    scop = program(
        "A[N + 1] float32 inout; B[N + 1] float32 inout",
        ("P", "[i] : 1 <= i < N", "[i, 0]", "A[i] = B[i - 1]"),
        ("C", "[j] : 1 <= j < N", "[j, 1]", "B[j] = A[j - 1]"),
    )
    assert check(scop, (TREE % "set").replace("0 <=", "1 <=")).verdict == "legal"


# -- bad input --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("schedule", "message"),
    [
        ("{ S[i] -> [i", "cannot read the union map"),
        ("{ S[i] -> [i * i] }", "i * i in the union map is not affine"),
        ("{ T[i] -> [i] }", "the schedule names 'T', which is no statement"),
        ("{ }", "the schedule says nothing about S"),
        ("{ S[i, j] -> [i] }", "gives S 2 iterators, it has 1: S[i]"),
        ("{ S[i] -> [Q] }", "several order vectors"),
        ("{ S[i] -> [j] : 0 <= j <= i }", "several order vectors"),
        ("{ S[i] -> [i] : i != 2 }", "no order vector to S[2] (N = 3)"),
        ("{ S[i] -> [i/2] }", "no order vector to S[1] (N = 2)"),
        ("{ S[i] -> R[i] }", "has the name 'R'"),
        ("[Q] -> { S[i] -> [i + Q] }", "the schedule uses a size 'Q', which small does not have"),
        ("@missing.tree", "cannot read the schedule file 'missing.tree'"),
        ('domain: "{ S[i"', "cannot read the schedule tree"),
        ('domain: "{ S[i] : 0 <= i < 4 }"', "no order vector to S[4] (N = 5)"),
    ],
)
def test_unusable_schedules(schedule: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        check(STEP, schedule)
    assert message in caught.value.message
    assert caught.value.exit_status == 2


@pytest.mark.parametrize(
    ("at", "message"),
    [
        ({"M": 3}, "small has no size called 'M'"),
        ({"N": -1}, "N = -1 is outside the context"),
        ({"N": True}, "a whole number"),
        ({"N": 9}, "N = 9 is outside the context"),
    ],
)
def test_unusable_sizes(at: dict[str, int], message: str) -> None:
    scop = program("A[N] float32 inout", ("S", "[i] : 1 <= i < N", "[i]", "A[i] = A[i - 1]"), context="N <= 8")
    with pytest.raises(InputError) as caught:
        check(scop, "{ S[i] -> [i] }", at=at)
    assert message in caught.value.message


def test_parallel_dimensions_must_exist() -> None:
    with pytest.raises(InputError, match="dimension 1 cannot be parallel: the schedule has 1 dimensions"):
        check(STEP, "{ S[i] -> [i] }", parallel=[1])
    with pytest.raises(InputError, match="not to a schedule tree"):
        check(TWO, TREE % "sequence", parallel=[0])


def test_a_spent_budget_is_unknown() -> None:
    verdict = check(STEP, "{ S[i] -> [-i] }", max_operations=3)
    assert verdict.verdict == "unknown"
    assert "reading the schedule took more than 3 operations" in verdict.reason
    assert check(STEP, "{ S[i] -> [-i] }").verdict == "illegal"  # the next one starts afresh


@pytest.mark.parametrize("max_operations", [20, 600, 1250, 1400, 1800, 2200, 4000])
def test_a_budget_ends_in_the_answer_or_in_unknown(max_operations: int) -> None:
    """Wherever the budget ends, it is told as such and never taken for another error."""
    scop = program("A[N] float32 inout", ("S", "[i] : 2 <= i < N", "[i]", "A[i] = A[i - 1] + A[i - 2]"))
    verdict = check(scop, "{ S[i] -> [floor(i/2), -i] }", max_operations=max_operations)
    assert verdict.verdict == "illegal" or f"took more than {max_operations} operations" in verdict.reason


# -- combinations that may not change places --------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("tensors", "body"),
    [
        ("m[1] int8 inout; A[N] int32 input", "m[0] = max(m[0], A[i])"),  # what is combined may wrap
        ("m[1] int8 inout; A[N] int8 input", "m[0] = min(m[0], A[i] + A[i])"),
        ("m[1] bool inout; A[N] bool input", "m[0] += A[i]"),
        ("m[1] int32 inout; A[N] float32 input", "m[0] += A[i]"),
        ("m[1] float32 inout; A[N] float32 input", "m[0] += A[i]"),
    ],
)
def test_combinations_that_wrap_or_round_keep_their_order(tensors: str, body: str) -> None:
    scop = program(tensors, ("S", "[i] : 0 <= i < N", "[i]", body))
    assert check(scop, "{ S[i] -> [-i] }").verdict == "illegal"


def test_both_sides_of_a_combination_count() -> None:
    scop = program(
        "m[1] int32 inout; A[N] int32 input; B[N] float32 input",
        ("S", "[i] : 0 <= i < N", "[0, i]", "m[0] += A[i]"),
        ("R", "[i] : 0 <= i < N", "[1, i]", "m[0] += B[i]"),
    )
    assert check(scop, "{ S[i] -> [0, -i]; R[i] -> [1, i] }")
    assert check(scop, "{ S[i] -> [1, i]; R[i] -> [0, i] }").verdict == "illegal"
    assert check(scop, "{ S[i] -> [i, 1]; R[i] -> [i, 0] }").verdict == "illegal"


def test_a_spent_budget_is_told_apart() -> None:
    verdict = check(STEP, "{ S[i] -> [i] }", max_operations=1)
    assert (verdict.verdict, verdict.spent) == ("unknown", True)


def test_marks_of_coincidence_in_a_tree_are_not_believed_and_not_blamed() -> None:
    tree = """
domain: "[N] -> { S[i] : 0 <= i < N }"
child:
  schedule: "[N] -> [{ S[i] -> [i] }]"
  coincident: [1]
"""
    recurrence = program("A[N + 1] float32 inout", ("S", "[i] : 0 <= i < N", "[i]", "A[i + 1] = A[i]"))
    assert check(recurrence, tree)
