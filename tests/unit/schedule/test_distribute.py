"""Distribution of programs whose loops everybody knows."""

from __future__ import annotations

from dataclasses import replace

import pytest

from polyopt.bench import SUITES
from polyopt.ir import Scop
from polyopt.schedule import Leaf, LoopTree, SequentialLoop, compute_dependences, distribute, leaves, normalise
from polyopt.sets import affine, var
from tests.unit.schedule._scops import program, scan

WORKLOADS = {w.name: w for w in SUITES["main"]}


def distributed(scop: Scop) -> tuple[Scop, tuple[LoopTree, ...]]:
    normal = normalise(scop)
    return distribute(normal, compute_dependences(normal))


def text(nodes: tuple[LoopTree, ...]) -> str:
    """`S0(i j) t{S1(i) S2(i)}`: leaves with their parallel dimensions, loops with their iterators."""
    parts = []
    for node in nodes:
        if isinstance(node, Leaf):
            parts.append(f"{node.statement}({' '.join(node.parallel)})")
        else:
            names = dict.fromkeys(i for _, i in node.iterators)
            parts.append(f"{'='.join(names)}{{{text(node.body)}}}")
    return " ".join(parts)


def tree_of(scop: Scop) -> str:
    return text(distributed(scop)[1])


@pytest.mark.parametrize(
    ("name", "reassociate", "expected"),
    [
        ("matmul", True, "S0(i j) S1(i j k)"),
        ("matmul", False, "S0(i j) k{S1(i j)}"),
        ("jacobi-2d", True, "S0(i j) t{S1(i j) S2(i j)}"),
        ("lu", False, "k{S0(i) S1(i j)}"),
        ("triangular-solve", True, "S0(i r) i{S1(r j) S2(r)}"),
        ("triangular-solve", False, "S0(i r) i{j{S1(r)} S2(r)}"),
        ("prefix-sum", False, "S0(i j) j{S1(i)}"),
        ("softmax", True, "S0(i) S1(i j) S2(i) S3(i j) S4(i j) S5(i j)"),
        ("softmax", False, "S0(i) S1(i j) S2(i) S3(i j) j{S4(i)} S5(i j)"),
        ("max-pool", False, "S0(c h w) S1(c h w r s)"),
        ("embedding-bag", True, "S0(b d) S1(b d n)"),
        ("embedding-bag", False, "S0(b d) n{S1(b d)}"),
    ],
)
def test_workloads(name: str, reassociate: bool, expected: str) -> None:
    assert tree_of(replace(WORKLOADS[name].scop(), reassociate=reassociate)) == expected


@pytest.mark.parametrize(
    ("body", "dtype", "expected"),
    [
        ("s[0] += A[i]", "float32", "i{S()}"),
        ("s[0] += A[i]", "int32", "S(i)"),
        ("s[0] *= A[i]", "float32", "i{S()}"),
        ("s[0] = max(s[0], A[i])", "float32", "S(i)"),
        ("s[0] = A[i] - s[0]", "int32", "i{S()}"),
    ],
)
def test_recognised_reductions_are_parallel(body: str, dtype: str, expected: str) -> None:
    assert tree_of(scan(dtype=dtype, body=body)) == expected


def test_overwriting_one_cell_is_sequential() -> None:
    assert tree_of(scan(body="s[0] = A[i]")) == "i{S()}"


def test_a_loop_is_only_kept_around_what_needs_it() -> None:
    """Two statements in one loop: the one without a recurrence leaves it."""
    scop = program(
        "A[N] float32 inout; B[N] float32 output; X[N] float32 input",
        ("S", "[i] : 1 <= i < N", "[i, 0]", "A[i] = A[i - 1] + X[i]"),
        ("T", "[i] : 1 <= i < N", "[i, 1]", "B[i] = A[i] * 2"),
    )
    assert tree_of(scop) == "i{S()} T(i)"


def test_the_outer_loop_carries_and_the_inner_is_free() -> None:
    scop = program(
        "A[N, N] float32 inout", ("S", "[i, j] : 1 <= i < N and 0 <= j < N", "[i, j]", "A[i, j] = A[i - 1, N - 1 - j]")
    )
    assert tree_of(scop) == "i{S(j)}"


def test_the_inner_loop_carries_and_the_outer_is_free() -> None:
    scop = program(
        "A[N, N] float32 inout", ("S", "[i, j] : 0 <= i < N and 1 <= j < N", "[i, j]", "A[i, j] = A[i, j - 1] + 1")
    )
    assert tree_of(scop) == "j{S(i)}"


def test_mutual_recurrences_share_their_loop() -> None:
    scop = program(
        "A[N] float32 inout; B[N] float32 inout",
        ("S", "[i] : 1 <= i < N", "[0, i, 0]", "A[i] = B[i - 1]"),
        ("T", "[i] : 1 <= i < N", "[0, i, 1]", "B[i] = A[i]"),
        ("U", "[i] : 0 <= i < N", "[1, i]", "A[i] += 1"),
    )
    assert tree_of(scop) == "i{S() T()} U(i)"


def test_components_are_ordered_by_their_dependences_not_by_their_text() -> None:
    scop = program(
        "A[N] float32 temp; B[N] float32 output; C[N] float32 output",
        ("S", "[i] : 0 <= i < N", "[1, i]", "B[i] = A[i]"),
        ("T", "[i] : 0 <= i < N", "[0, i]", "A[i] = 3"),
        ("U", "[i] : 0 <= i < N", "[2, i]", "C[i] = 4"),
    )
    names = [leaf.statement for leaf in leaves(distributed(scop)[1])]
    assert names.index("T") < names.index("S")


def test_a_statement_in_one_iteration_of_a_shared_loop_gets_its_iterator() -> None:
    """T runs once, between two iterations of S, and touches the same cell."""
    scop = program(
        "s[1] float32 inout",
        ("S", "[t] : 0 <= t < N", "[t]", "s[0] = s[0] * 3 - 1"),
        ("T", "[]", "[2]", "s[0] = s[0] + 5"),
        context="N >= 3",
    )
    changed, tree = distributed(scop)
    (loop,) = tree
    assert isinstance(loop, SequentialLoop)
    assert dict(loop.iterators) == {"S": "t", "T": "only0"}
    added = changed.statement("T")
    assert added.iterators == ("only0",) and added.order[0] == var("only0")
    assert added.domain.bounds("only0") == (affine(2), affine(2))
    assert changed.statement("S") == normalise(scop).statement("S")


def test_independent_statements_keep_the_order_of_their_text() -> None:
    scop = program(
        "A[N] float32 output; B[N] float32 output",
        ("S", "[i] : 0 <= i < N", "[0, i]", "A[i] = 1"),
        ("T", "[i] : 0 <= i < N", "[0, i]", "B[i] = 2"),
    )
    assert tree_of(scop) == "S(i) T(i)"


def test_statements_without_instances_do_no_harm() -> None:
    scop = program(
        "A[N] float32 inout",
        ("S", "[i] : 0 <= i < N and i < 0", "[i]", "A[i] = A[i] + 1"),
        ("T", "[i] : 0 <= i < N", "[i]", "A[i] = A[i] * 2"),
    )
    assert tree_of(scop) == "S(i) T(i)"


def test_gathers_keep_their_order() -> None:
    """Which cell is written is not known: the loop stays as it is."""
    scop = program(
        "A[N] float32 inout; k[N] int32 input", ("S", "[i] : 0 <= i < N", "[i]", "A[i] = A[k[i]] + 1"), context="N >= 1"
    )
    assert tree_of(scop) == "i{S()}"
