"""Replaying a witness: two values, or one value twice."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from polyopt.ir import Scop
from polyopt.schedule import Replay, check, replay
from polyopt.schedule import _replay as module
from tests.unit.schedule._scops import program, scan


def played(scop: Scop, schedule: str, parallel: Sequence[int] = ()) -> Replay | None:
    return replay(scop, check(scop, schedule, parallel=parallel), schedule, parallel=parallel)


def test_a_read_that_comes_too_early() -> None:
    scop = program(
        "A[N] float32 temp; B[N] float32 output",
        ("P", "[i] : 0 <= i < N", "[0, i]", "A[i] = 7.0"),
        ("C", "[j] : 0 <= j < N", "[1, j]", "B[j] = A[j]"),
    )
    found = played(scop, "{ P[i] -> [1, i]; C[j] -> [0, j] }")
    assert found is not None
    assert (found.differs, found.expected, found.tensor, found.cell) == (True, 7.0, "A", (0,))
    assert found.got != 7.0
    assert found.note == "found by the read"


def test_a_read_that_comes_too_late() -> None:
    scop = program(
        "A[N] int32 inout; B[N] int32 output",
        ("C", "[j] : 0 <= j < N", "[0, j]", "B[j] = A[j]"),
        ("P", "[i] : 0 <= i < N", "[1, i]", "A[i] = 9"),
    )
    found = played(scop, "{ P[i] -> [0, i]; C[j] -> [1, j] }")
    assert found is not None
    assert (found.differs, found.got) == (True, 9)


def test_two_writes() -> None:
    scop = program("A[1] float32 output", ("S", "[i] : 0 <= i < N", "[i]", "A[0] = i"))
    found = played(scop, "{ S[i] -> [-i] }")
    assert found is not None
    assert (found.differs, found.expected, found.got, found.note) == (True, 1.0, 0.0, "left by the two writes")


def test_equal_places_and_parallel_dimensions_are_replayed_in_reverse() -> None:
    scop = program("A[1] float32 output", ("S", "[i] : 0 <= i < N", "[i]", "A[0] = i"))
    for schedule, parallel in (("{ S[i] -> [0] }", ()), ("{ S[i] -> [i] }", (0,))):
        found = played(scop, schedule, parallel)
        assert found is not None
        assert (found.expected, found.got) == (1.0, 0.0)


def test_order_violated_value_equal() -> None:
    scop = program("A[1] float32 output", ("S", "[i] : 0 <= i < N", "[i]", "A[0] = 3.0"))
    found = played(scop, "{ S[i] -> [-i] }")
    assert found is not None
    assert (found.differs, found.expected, found.got) == (False, 3.0, 3.0)
    assert found.note == "order violated, value equal"


def test_values_that_are_not_finite_stay_json() -> None:
    scop = program("A[1] float32 output", ("S", "[i] : 0 <= i < N", "[i]", "A[0] = inf if i > 0 else 1.0"))
    found = played(scop, "{ S[i] -> [-i] }")
    assert found is not None
    assert json.loads(json.dumps(found.to_json(), allow_nan=False))["expected"] == "inf"


@pytest.mark.parametrize("body", ["s[0] = call(f, s[0])", "{may_read: [s], may_write: [s]}"])
def test_what_is_not_interpreted_is_not_replayed(body: str) -> None:
    scop = program("s[1] float32 inout", ("S", "[i] : 0 <= i < N", "[i]", body))
    assert check(scop, "{ S[i] -> [-i] }").verdict == "illegal"
    assert played(scop, "{ S[i] -> [-i] }") is None


def test_nothing_to_replay() -> None:
    assert played(scan(), "{ S[i] -> [i] }") is None


def test_too_many_instances(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_REPLAYED_INSTANCES", 1)
    assert played(scan(), "{ S[i] -> [-i] }") is None
