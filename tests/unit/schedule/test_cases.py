"""Every check of the programs with known answers, at its sizes and for all sizes."""

from __future__ import annotations

import json

import pytest

from polyopt.schedule import check, replay
from tests.case_files import CASES, Case, Check, read_case

NAMED = [
    (f"{path.name.removesuffix('.case.yaml')}-{one.what}", case, one)
    for path in CASES
    for case in [read_case(path)]
    for one in case.checks
]
CHECKS = [pytest.param(case, one, id=name) for name, case, one in NAMED]
ILLEGAL = [pytest.param(case, one, id=name) for name, case, one in NAMED if one.expect == "illegal"]


@pytest.mark.parametrize(("case", "one"), CHECKS)
def test_at_fixed_sizes(case: Case, one: Check) -> None:
    verdict = check(case.scop, one.schedule, parallel=one.parallel, at=one.at)
    assert verdict.verdict == one.expect, verdict.reason
    if verdict.witness is not None:
        assert dict(verdict.witness.params) == dict(one.at)


@pytest.mark.parametrize(("case", "one"), CHECKS)
def test_for_all_sizes(case: Case, one: Check) -> None:
    """None of these depends on the sizes: an illegal one is so at some size, and its witness at the smallest."""
    verdict = check(case.scop, one.schedule, parallel=one.parallel)
    assert verdict.verdict == one.expect, verdict.reason
    assert bool(verdict) == (one.expect == "legal")
    assert (verdict.witness is not None) == (one.expect == "illegal")
    if verdict.witness is not None:
        sizes = dict(verdict.witness.params)
        again = check(case.scop, one.schedule, parallel=one.parallel, at=sizes)
        assert again.witness == verdict.witness
        for name, size in sizes.items():
            smaller = {**sizes, name: size - 1}
            if size and not case.scop.context.fix(smaller).is_empty():
                assert check(case.scop, one.schedule, parallel=one.parallel, at=smaller).verdict != "illegal"


@pytest.mark.parametrize(("case", "one"), CHECKS)
def test_json_has_the_promised_keys(case: Case, one: Check) -> None:
    answer = check(case.scop, one.schedule, parallel=one.parallel, at=one.at).to_json()
    assert json.loads(json.dumps(answer)) == answer
    assert {"verdict", "level", "axioms", "reason"} <= set(answer)
    assert ("witness" in answer) == (one.expect == "illegal")


@pytest.mark.parametrize(("case", "one"), ILLEGAL)
def test_witness_can_be_replayed(case: Case, one: Check) -> None:
    verdict = check(case.scop, one.schedule, parallel=one.parallel)
    played = replay(case.scop, verdict, one.schedule, parallel=one.parallel)
    if any(s.is_opaque for s in case.scop.statements):
        assert played is None
        return
    assert played is not None
    assert played.differs == (played.expected != played.got)
    assert played.differs or played.note == "order violated, value equal"
