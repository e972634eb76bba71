"""The judge against enumeration: verdict in both directions and the exact smallest witness."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from polyopt.ir import Scop
from polyopt.schedule import Verdict, check
from polyopt.sets import Affine
from tests.property._programs import LARGEST, Answer, enumerate_verdict, programs, schedules


def union_map_text(scop: Scop, vectors: Mapping[str, Sequence[Affine]]) -> str:
    parts = [
        f"{s.name}[{', '.join(s.iterators)}] -> [{', '.join(e.text() for e in vectors[s.name])}]"
        for s in scop.statements
    ]
    return "{ " + "; ".join(parts) + " }"


def answer_of(verdict: Verdict) -> Answer:
    w = verdict.witness
    if w is None:
        return Answer(verdict.verdict)
    source, sink = w.source, w.sink
    pair = (w.kind, w.tensor, w.cell, source.statement, source.values, sink.statement, sink.values)
    return Answer(verdict.verdict, pair)


@settings(max_examples=150)
@given(st.data())
def test_verdict_and_witness_at_fixed_sizes(data: st.DataObject) -> None:
    program = data.draw(programs())
    vectors = data.draw(schedules(program.scop))
    size = data.draw(st.integers(2, LARGEST))
    length = max(map(len, vectors.values()))
    parallel = data.draw(st.lists(st.integers(0, length - 1), max_size=1))
    verdict = check(program.scop, union_map_text(program.scop, vectors), at={"N": size}, parallel=parallel)
    instances = program.instances({"N": size})
    assert answer_of(verdict) == enumerate_verdict(program.scop, instances, vectors, {"N": size}, parallel)


@settings(max_examples=100)
@given(st.data())
def test_verdict_and_smallest_sizes_for_all_sizes(data: st.DataObject) -> None:
    program = data.draw(programs())
    vectors = data.draw(schedules(program.scop))
    verdict = check(program.scop, vectors)
    found: Answer | None = None
    uncertain = False
    for size in range(LARGEST + 1):
        if program.scop.context.fix({"N": size}).is_empty():
            continue
        answer = enumerate_verdict(program.scop, program.instances({"N": size}), vectors, {"N": size})
        uncertain = uncertain or answer.verdict == "unknown"
        if answer.verdict == "illegal":
            found = answer
            assert verdict.witness is not None
            assert dict(verdict.witness.params) == {"N": size}
            break
    if found is not None:
        assert answer_of(verdict) == found
    elif verdict.witness is not None:
        assert dict(verdict.witness.params)["N"] > LARGEST
    else:
        assert verdict.verdict == "unknown" or not uncertain
