"""What an explanation claims of random programs, against enumeration at small sizes: nothing of isl is shared."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace

from hypothesis import given, reject, settings
from hypothesis import strategies as st

import polyopt as po
from polyopt.errors import PolyoptError
from polyopt.explain import chosen_scop, explain, explanation_text, space_picture, written_scop
from polyopt.explain._edges import Edges
from polyopt.explain._finding import Finding
from polyopt.explain._fusible import Fusions
from polyopt.explain._fusion import explain_fusion
from polyopt.explain._judge import Court
from polyopt.explain._nest import loop_nests, loops_of, plain_scop
from polyopt.explain._parallel import explain_parallel
from polyopt.explain._tiling import explain_tiling
from polyopt.ir import Scop
from polyopt.sets import Affine, affine, var
from tests.property._programs import LARGEST, Event, RandomProgram, conflicting_pairs, enumerate_verdict, programs
from tests.property._runnable import runnable_programs

Pairs = list[tuple[Event, Event]]


@dataclass(frozen=True)
class Case:
    """A random program whose order vectors hold constants and iterators, at one size."""

    program: RandomProgram
    court: Court
    sizes: dict[str, int]
    sure: Pairs
    perhaps: Pairs

    def values(self, e: Event, loops: tuple[str, ...]) -> tuple[int, ...]:
        at = dict(zip(self.program.scop.statement(e.statement).iterators, e.point, strict=True))
        return tuple(at[i] for i in loops)

    def loops(self, e: Event) -> tuple[int, ...]:
        return self.values(e, self.court.loops(e.statement))

    def has_witness(self, f: Finding, pairs: Pairs) -> bool:
        """Whether the witness is one of `pairs`; a finding has one exactly when there are some."""
        if f.witness is None:
            return not pairs
        w, scop = f.witness, self.program.scop
        return any(
            (a.statement, b.statement) == (w.source.statement, w.sink.statement)
            and all(
                dict(zip(scop.statement(e.statement).iterators, e.point, strict=True)).items() >= dict(i.at).items()
                for e, i in ((a, w.source), (b, w.sink))
            )
            for a, b in pairs
        )


@st.composite
def cases(draw: st.DrawFn) -> Case:
    program = draw(programs())
    plain = [tuple(e if e.is_constant else var(*e.variables()) for e in s.order) for s in program.scop.statements]
    statements = tuple(replace(s, order=o) for s, o in zip(program.scop.statements, plain, strict=True))
    program = replace(program, scop=replace(program.scop, statements=statements))
    sizes = {"N": draw(st.integers(2, LARGEST))}
    sure, perhaps = conflicting_pairs(program.scop, program.instances(sizes), sizes)
    return Case(program, Court.of(plain_scop(program.scop.at(sizes))), sizes, sure, perhaps)


@settings(max_examples=150)
@given(cases())
def test_parallel_loops(case: Case) -> None:
    found = list(explain_parallel(case.court, None))
    named = [(n, i) for f in found for n, loops in f.loops for i in loops]
    assert len(set(named)) == len(named)
    for s in case.program.scop.statements:
        for k, i in enumerate(s.iterators):
            if len({point[k] for point in case.program.instances(case.sizes)[s.name]}) > 1:
                assert (s.name, i) in named
    for f in found:
        members = dict(f.loops)

        def crosses(a: Event, b: Event, f: Finding = f, members: dict[str, tuple[str, ...]] = members) -> bool:
            if a.statement not in members or b.statement not in members:
                return False
            outer = case.loops(a)[: f.outer] == case.loops(b)[: f.outer]
            return outer and case.values(a, members[a.statement]) != case.values(b, members[b.statement])

        sure = [p for p in case.sure if crosses(*p)]
        perhaps = [p for p in case.perhaps if crosses(*p)]
        assert f.allowed is (False if sure else None if perhaps else True)
        assert case.has_witness(f, sure)


@settings(max_examples=150)
@given(cases())
def test_bands(case: Case) -> None:
    for f in explain_tiling(case.court, None):
        names = set(f.statements)

        def backwards(a: Event, b: Event, f: Finding = f, names: set[str] = names) -> bool:
            if not {a.statement, b.statement} <= names:
                return False
            first, second = (case.values(e, dict(f.loops)[e.statement]) for e in (a, b))
            return any(x > y for x, y in zip(first, second, strict=False))

        sure = [p for p in case.sure if backwards(*p)]
        if f.allowed is None:
            assert not sure or any(backwards(*p) for p in case.perhaps)
            continue
        assert f.allowed is (not sure)
        assert case.has_witness(f, sure)


@settings(max_examples=150)
@given(cases())
def test_shared_loops(case: Case) -> None:
    scop = case.program.scop
    fusions = Fusions(case.court, Edges.of(case.court), loop_nests(case.court.scop))
    for f in explain_fusion(case.court, None):
        (a, first), (b, _) = f.loops
        found = fusions.of(a, b)
        group = (a, *found.between, b)
        assert found.depth == len(first)
        if found.depth > found.shared:
            assert verdict(case, group, fused(case.court, scop, group, found.depth)) != "illegal"
        if found.verdict is not None:
            order = fused(case.court, scop, group, found.depth + 1)
            if f.witness is not None:
                assert verdict(case, group, order) == "illegal"
                assert case.has_witness(f, [p for p in case.sure if after(case, order, *p)])
            shifted = fused(case.court, scop, group, found.depth + 1, dict(found.shift))
            assert not found.shift or verdict(case, group, shifted) != "illegal"


@settings(max_examples=25)
@given(runnable_programs())
def test_whatever_compiles_is_explained(scop: Scop) -> None:
    """Text in 80 columns, JSON, and the picture of every witness."""
    try:
        compiled = po.compile(scop)
    except PolyoptError:
        reject()
    found = explain(compiled)
    assert max(map(len, explanation_text(found).splitlines())) <= 80
    assert json.loads(json.dumps(found.to_json()))["findings"]
    for f in found.findings:
        if f.witness is not None:
            shown = written_scop(compiled) if f.order == "written" else chosen_scop(compiled)
            picture = space_picture(shown, f.witness, f.subject, {s.name: loops_of(s) for s in shown.statements})
            places = {p for s in picture.statements for p in s.points}
            (violated,) = (a for a in picture.arrows if a.violated)
            assert {violated.source, violated.sink} <= places


def fused(
    court: Court, scop: Scop, group: tuple[str, ...], depth: int, shift: dict[str, tuple[int, ...]] | None = None
) -> dict[str, tuple[Affine, ...]]:
    """The first `depth` loops of all as one, then the original order."""
    vectors: dict[str, tuple[Affine, ...]] = {}
    for position, s in enumerate(scop.statements):
        if s.name in group:
            delays = (shift or {}).get(s.name, (0,) * depth)
            outer = [var(i) + d for i, d in zip(court.loops(s.name)[:depth], delays, strict=True)]
            rest = [*s.order, *[affine(0)] * (scop.order_length() - len(s.order)), affine(position)]
            vectors[s.name] = (*outer, *rest)
    return vectors


def verdict(case: Case, group: tuple[str, ...], vectors: dict[str, tuple[Affine, ...]]) -> str:
    scop = case.program.scop
    part = replace(scop, statements=tuple(s for s in scop.statements if s.name in group))
    return enumerate_verdict(part, case.program.instances(case.sizes), vectors, case.sizes).verdict


def after(case: Case, vectors: dict[str, tuple[Affine, ...]], a: Event, b: Event) -> bool:
    """Whether the source comes after the sink in the new order."""
    if a.statement not in vectors or b.statement not in vectors:
        return False
    places = []
    for e in (a, b):
        s = case.program.scop.statement(e.statement)
        env = {**case.sizes, **dict(zip(s.iterators, e.point, strict=True))}
        places.append([x.evaluate(env) for x in vectors[e.statement]])
    return places[0] >= places[1]
