"""Certificates of random programs: whatever the judge finds legal is certified, and nothing else is."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from polyopt.schedule import check
from polyopt.verify import certificate as checker
from polyopt.verify import certify
from polyopt.verify._certify import unjudged
from tests.property._programs import LARGEST, programs, schedules


@settings(max_examples=80)
@given(st.data())
def test_what_is_legal_is_certified(data: st.DataObject) -> None:
    program = data.draw(programs())
    vectors = data.draw(schedules(program.scop))
    at = data.draw(st.sampled_from([None, {"N": LARGEST}]))
    length = max(map(len, vectors.values()))
    parallel = data.draw(st.lists(st.integers(0, length - 1), max_size=1))
    verdict = check(program.scop, vectors, parallel=parallel, at=at)
    found = certify(program.scop, vectors, parallel=parallel, at=at)
    assert found.verdict.verdict == verdict.verdict
    assert bool(found) == bool(verdict), found.why_not
    if found:
        assert found.verdict.axioms == verdict.axioms
        assert checker.check(found.text.encode())["accepted"]


@settings(max_examples=80)
@given(st.data())
def test_what_is_not_legal_has_no_certificate(data: st.DataObject) -> None:
    """Even a prover that does not ask the judge finds no proof that the checker accepts."""
    program = data.draw(programs())
    vectors = data.draw(schedules(program.scop))
    length = max(map(len, vectors.values()))
    parallel = data.draw(st.lists(st.integers(0, length - 1), max_size=1))
    if check(program.scop, vectors, parallel=parallel):
        return
    text = unjudged(program.scop, vectors, parallel=parallel)
    report = checker.check(text.encode())
    assert not report["accepted"]
    assert report["certified_pairs"] < report["pairs"]
