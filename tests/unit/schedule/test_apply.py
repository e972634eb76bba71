"""Change of basis: order entries become iterators, accesses and index values follow."""

from __future__ import annotations

import numpy as np
import pytest

from polyopt.errors import UnsupportedError
from polyopt.ir import Scop
from polyopt.reference import inputs, interpret
from polyopt.schedule import apply_schedule, normalise
from polyopt.sets import var
from tests.case_files import CASES, read_case
from tests.unit.schedule._scops import program

STEP = program("A[N + 1] float32 inout", ("S", "[i] : 1 <= i < N", "[-i]", "A[i] = A[i - 1] + i"))


def is_normal(scop: Scop) -> bool:
    """Whether every order entry is a constant or an iterator of its own."""
    for s in scop.statements:
        names = [next(iter(e.variables())) for e in s.order if not e.is_constant]
        plain = all(e.is_constant or any(e == var(d) for d in s.iterators) for e in s.order)
        if not plain or sorted(names) != sorted(s.iterators):
            return False
    return True


def same_results(a: Scop, b: Scop, sizes: dict[str, int]) -> bool:
    given = inputs(a, sizes)
    x, y = interpret(a, given, sizes), interpret(b, given, sizes)
    return set(x) == set(y) and all(np.array_equal(x[n], y[n]) for n in x)


def test_a_reversed_loop_gets_an_iterator_of_its_own() -> None:
    scop = normalise(STEP)
    (s,) = scop.statements
    assert s.iterators == ("c0",)
    assert s.order == (var("c0"),)
    assert str(s.assign.target) == "A[-c0]"
    assert scop.statements[0].domain.points({"N": 4}) == [(-3,), (-2,), (-1,)]
    assert same_results(STEP, scop, {"N": 6})


def test_a_normal_program_stays_as_it_is() -> None:
    scop = read_case(next(p for p in CASES if "jacobi" in p.name)).scop
    assert normalise(scop) == scop


@pytest.mark.parametrize("path", CASES, ids=lambda p: p.name.split(".")[0])
def test_all_cases_can_be_normalised(path: object) -> None:
    scop = read_case(path).scop  # type: ignore[arg-type]
    normal = normalise(scop)
    assert is_normal(normal)
    assert [s.name for s in normal.statements] == [s.name for s in scop.statements]


def test_skewed_tiles() -> None:
    scop = read_case(next(p for p in CASES if "jacobi" in p.name)).scop
    skew = var("t") + "i"
    tiled = apply_schedule(scop, {"S": [var("t") // 2, skew // 2, "t", skew]})
    (s,) = tiled.statements
    assert s.iterators == ("c0", "c1", "t", "c3")
    assert is_normal(tiled)
    assert str(s.assign.target) == str(scop.statements[0].assign.target).replace("i]", "c3 - t]")
    assert same_results(scop, tiled, {"T": 5, "N": 9})


def test_iterators_that_stay_are_not_written_as_something_else() -> None:
    scop = read_case(next(p for p in CASES if "jacobi" in p.name)).scop
    up, down = var("t") + "i", var("t") - "i"
    tiled = apply_schedule(scop, {"S": [up // 2 + down // 2, up // 2, "t", "i"]})
    assert tiled.statements[0].iterators == ("c0", "c1", "t", "i")
    assert tiled.statements[0].body == scop.statements[0].body
    assert same_results(scop, tiled, {"T": 4, "N": 7})


def test_entries_that_repeat_or_hold_sizes_become_pinned_iterators() -> None:
    scop = program("A[N] float32 inout", ("S", "[i] : 0 <= i < N", "[i]", "A[i] = 1.0"))
    changed = apply_schedule(scop, {"S": ["N", "i", "i", 7]})
    (s,) = changed.statements
    assert s.iterators == ("c0", "i", "c2")
    assert is_normal(changed)
    assert s.domain.points({"N": 2}) == [(2, 0, 0), (2, 1, 1)]


def test_strides_are_inverted() -> None:
    scop = program("A[2 * N] float32 inout", ("S", "[i] : 0 <= i < N", "[i]", "A[2 * i + 1] = 1.0"))
    changed = apply_schedule(scop, {"S": [var("i") * 3 + 1]})
    assert same_results(scop, changed, {"N": 4})


def test_new_names_avoid_old_ones() -> None:
    scop = program("A[N, N] float32 inout", ("S", "[c0, c1] : 0 <= c0, c1 < N", "[c0, c1]", "A[c0, c1] = c0 + 2.0"))
    changed = apply_schedule(scop, {"S": [var("c0") + "c1", -var("c1")]})
    assert len(set(changed.statements[0].iterators)) == 2
    assert same_results(scop, changed, {"N": 3})


def test_a_vector_that_joins_instances_is_refused() -> None:
    with pytest.raises(UnsupportedError) as caught:
        apply_schedule(STEP, {"S": [var("i") // 2]})
    assert "does not tell the instances of S apart" in str(caught.value)


def test_calls_and_empty_statements_are_carried_along() -> None:
    scop = program(
        "x[N] float32 inout",
        ("F", "[k] : 0 <= k < 2", "[0, -k]", "{may_read: [x], may_write: [x]}"),
        ("S", "[i] : 0 <= i < N and N < 0", "[1, -i]", "x[i] = 1.0"),
    )
    normal = normalise(scop)
    assert is_normal(normal)
    assert normal.statements[0].body == scop.statements[0].body
    assert normal.statements[1].domain.is_empty()
