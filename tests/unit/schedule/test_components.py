"""Components, fusion groups and the partitions between them."""

from __future__ import annotations

from polyopt.ir import Scop
from polyopt.schedule import FusionGroups, compute_dependences, fusion_groups
from tests.case_files import CASES, read_case
from tests.unit.schedule._scops import program


def groups(scop: Scop) -> FusionGroups:
    return fusion_groups(scop, compute_dependences(scop))


def case(name: str) -> Scop:
    return read_case(next(p for p in CASES if name in p.name)).scop


def test_init_accumulate_epilogue_is_one_group() -> None:
    found = groups(case("init_acc"))
    assert found.components == (("Z", "M", "E"),)
    assert found.finest == (("Z",), ("M",), ("E",))
    assert found.coarsest == (("Z", "M", "E"),)
    assert len(found.partitions) == 3


def test_a_shifted_consumer_shares_no_loop() -> None:
    assert groups(case("overlapped")).coarsest == (("f",), ("g",))


def test_independent_statements_are_components_of_their_own() -> None:
    scop = program(
        "A[N] float32 output; B[N] float32 output",
        ("S", "[i] : 0 <= i < N", "[0, i]", "A[i] = 1.0"),
        ("T", "[i] : 0 <= i < N", "[1, i]", "B[i] = 1.0"),
    )
    assert groups(scop).components == (("S",), ("T",))
    assert groups(scop).coarsest == (("S",), ("T",))


def test_statements_of_one_cycle_stay_together() -> None:
    scop = program(
        "A[N] float32 inout; B[N] float32 inout",
        ("S", "[i] : 1 <= i < N", "[i, 0]", "A[i] = B[i - 1]"),
        ("T", "[i] : 1 <= i < N", "[i, 1]", "B[i] = A[i]"),
    )
    assert groups(scop).finest == (("S", "T"),)


def test_a_group_never_encloses_a_statement_that_must_run_between() -> None:
    """P feeds C directly and through R, which reads P transposed and therefore cannot be fused."""
    scop = program(
        "X[N, N] float32 input; A[N, N] float32 temp; R[N, N] float32 temp; O[N, N] float32 output",
        ("P", "[i, j] : 0 <= i, j < N", "[0, i, j]", "A[i, j] = X[i, j]"),
        ("R", "[i, j] : 0 <= i, j < N", "[1, i, j]", "R[i, j] = A[j, i]"),
        ("C", "[i, j] : 0 <= i, j < N", "[2, i, j]", "O[i, j] = A[i, j] + R[i, j]"),
    )
    assert groups(scop).coarsest == (("P",), ("R", "C"))


def test_every_partition_keeps_all_dependences_between_its_groups() -> None:
    for path in CASES:
        scop = read_case(path).scop
        dependences = compute_dependences(scop)
        for partition in fusion_groups(scop, dependences).partitions:
            place = {name: k for k, group in enumerate(partition) for name in group}
            assert sorted(place) == sorted(s.name for s in scop.statements)
            assert all(place[d.source] <= place[d.sink] for d in dependences)
