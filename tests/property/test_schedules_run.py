"""What the judge calls legal computes the same values; what the schedulers and the change of basis make does too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from polyopt.errors import UnsupportedError
from polyopt.ir import Scop
from polyopt.reference import inputs, interpret
from polyopt.schedule import (
    apply_schedule,
    check,
    compute_dependences,
    compute_schedule,
    normalise,
    reduced_dependences,
)
from polyopt.schedule._orders import read_order
from polyopt.sets import Affine, affine, not_before
from tests.property._programs import LARGEST, RandomProgram, programs, schedules


def runnable(program: RandomProgram) -> Scop:
    """Every tensor starts with values, so that every order of the instances can run."""
    scop = program.scop
    return replace(scop, tensors=tuple(replace(t, role="inout") for t in scop.tensors))


def reordered(scop: Scop, vectors: Mapping[str, Sequence[Affine]]) -> Scop:
    """The instances in the order of `vectors`, ties in the original order."""
    length = max(map(len, vectors.values()))
    statements = [
        replace(s, order=(*vectors[s.name], *[affine(0)] * (length - len(vectors[s.name])), *s.order))
        for s in scop.statements
    ]
    return replace(scop, statements=tuple(statements))


def assert_same(a: Scop, b: Scop, size: int) -> None:
    sizes = {"N": size}
    given_arrays = inputs(a, sizes, mode="exact")
    x, y = (interpret(s, given_arrays, sizes, "exact") for s in (a, b))
    for name in x:
        assert np.array_equal(x[name], y[name]), name


@settings(max_examples=80)
@given(st.data())
def test_legal_orders_compute_the_same(data: st.DataObject) -> None:
    program = data.draw(programs(data_dependent=False))
    vectors = data.draw(schedules(program.scop))
    size = data.draw(st.integers(2, LARGEST))
    if check(program.scop, vectors, at={"N": size}):
        scop = runnable(program)
        assert_same(scop, reordered(scop, vectors), size)


@settings(max_examples=80)
@given(st.data())
def test_a_change_of_basis_computes_the_same(data: st.DataObject) -> None:
    program = data.draw(programs(data_dependent=False))
    vectors = data.draw(schedules(program.scop))
    scop = runnable(program)
    assert_same(scop, normalise(scop), LARGEST)
    if check(program.scop, vectors):
        try:
            changed = apply_schedule(scop, vectors)
        except UnsupportedError:
            return
        assert_same(scop, changed, LARGEST)


@settings(max_examples=50)
@given(st.data())
def test_schedulers_compute_the_same(data: st.DataObject) -> None:
    program = data.draw(programs())
    name = data.draw(st.sampled_from(["isl", "feautrier", "original"]))
    result = compute_schedule(program.scop, name)
    assert result.verdict.verdict == "legal"
    scop = runnable(program)
    if not any(s.is_opaque for s in scop.statements):
        assert_same(scop, reordered(scop, result.mapping()), LARGEST)


@settings(max_examples=100)
@given(st.data())
def test_reduced_dependences_accept_the_same_schedules(data: st.DataObject) -> None:
    program = data.draw(programs())
    scop = program.scop
    order = read_order(scop, data.draw(schedules(scop)))

    def kept(reduced: bool) -> bool:
        found = reduced_dependences(scop) if reduced else compute_dependences(scop).ordered()
        return all(d.relation.intersect(not_before(order.of(d.source), order.of(d.sink))).is_empty() for d in found)

    assert kept(True) == kept(False)
