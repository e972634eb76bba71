"""Loops are accepted as they are generated, and every way to break them is refuted with the smallest example."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest

from polyopt.errors import InputError
from polyopt.ir import LoopProgram, Scop
from polyopt.schedule import generate_loops
from polyopt.sets import AnyOf, Block, Call, Constraint, For, If, LoopNode, Set, affine, maximum, minimum, negation, var
from polyopt.verify import PropertyVerdict, validate_loops
from tests.unit.verify._loop_faults import SKEWED, STRIPS, TRIANGLE, Instance, Subject, edited, faults
from tools.check_layers import read_imports
from tools.link_tree import ROOT

Break = Callable[[LoopProgram], LoopProgram]

PYRAMID = Subject(
    TRIANGLE.scop,
    "{ Z[i] -> [i, -1]; S[i, j] -> [i, j] }",
    lambda n: sorted(
        [((i, j), ("S" if j >= 0 else "Z", (i, j) if j >= 0 else (i,))) for i in range(n) for j in range(-1, i + 1)]
    ),
)
"""The triangle untiled; its loops here are written by hand, over the square with a guard."""


def loop(number: int, change: Callable[[For], LoopNode]) -> Break:
    return lambda loops: edited(loops, For, number, change)


def call(number: int, change: Callable[[Call], LoopNode]) -> Break:
    return lambda loops: edited(loops, Call, number, change)


def guard(number: int, change: Callable[[If], LoopNode]) -> Break:
    return lambda loops: edited(loops, If, number, change)


def block(number: int, change: Callable[[Block], LoopNode]) -> Break:
    return lambda loops: edited(loops, Block, number, change)


def interchanged(outer: For) -> LoopNode:
    assert isinstance(outer.body, For)
    return replace(outer.body, body=replace(outer, body=outer.body.body))


def guarded_square() -> LoopProgram:
    i, j = var("i"), var("j")
    inner = For("j", affine(0), var("N") - 1, If(Constraint(i - j), Call("S", (i, j))))
    both = Block((Call("Z", (i,)), inner))
    return LoopProgram("triangle", ("N",), For("i", affine(0), var("N") - 1, both))


def loops_of(subject: Subject) -> LoopProgram:
    return guarded_square() if subject is PYRAMID else generate_loops(subject.scop, subject.schedule)


N = var("N")
FAULTS: Mapping[str, tuple[Subject, Break, str, int]] = {
    # name -> (subject, how it is broken, what must be found, at the smallest size)
    "upper bound one too far": (TRIANGLE, loop(4, lambda f: replace(f, upper=f.upper + 1)), "outside", 1),
    "upper bound one short": (TRIANGLE, loop(1, lambda f: replace(f, upper=f.upper - 1)), "missing", 1),
    "lower bound one too high": (TRIANGLE, loop(4, lambda f: replace(f, lower=f.lower + 1)), "missing", 1),
    "lower bound one too low": (TRIANGLE, loop(3, lambda f: replace(f, lower=f.lower - 1)), "twice", 5),
    "outer bound one short": (TRIANGLE, loop(0, lambda f: replace(f, upper=f.upper - 1)), "missing", 1),
    "remainder missing": (TRIANGLE, loop(0, lambda f: replace(f, upper=N // 4 - 1)), "missing", 1),
    "last tile runs over": (TRIANGLE, loop(1, lambda f: replace(f, upper=var("c0") * 4 + 3)), "outside", 1),
    "tile origin left out": (TRIANGLE, loop(1, lambda f: replace(f, lower=affine(0))), "twice", 5),
    "another tile size inside": (TRIANGLE, loop(4, lambda f: replace(f, lower=var("c1") * 3)), "twice", 5),
    "iterators swapped in the call": (
        TRIANGLE,
        call(1, lambda c: replace(c, arguments=(c.arguments[1], c.arguments[0]))),
        "outside",
        2,
    ),
    "argument off by one": (
        TRIANGLE,
        call(1, lambda c: replace(c, arguments=(c.arguments[0], c.arguments[1] + 1))),
        "outside",
        1,
    ),
    "the other tile's iterator": (TRIANGLE, loop(4, lambda f: replace(f, lower=var("c0") * 4)), "missing", 5),
    "children swapped": (TRIANGLE, block(0, lambda b: Block(b.children[::-1])), "order", 1),
    "loops interchanged": (TRIANGLE, loop(2, interchanged), "order", 6),
    "call repeated": (TRIANGLE, call(0, lambda c: Block((c, c))), "twice", 1),
    "call left out": (TRIANGLE, call(1, lambda c: Block()), "missing", 1),
    "step left out": (STRIPS, loop(0, lambda f: replace(f, step=1)), "twice", 2),
    "step too large": (STRIPS, loop(0, lambda f: replace(f, step=5)), "missing", 5),
    "step with another phase": (STRIPS, loop(0, lambda f: replace(f, lower=f.lower + 1)), "missing", 1),
    "loop reversed": (STRIPS, call(0, lambda c: Call("S", (N - 1 - c.arguments[0],))), "order", 2),
    "ceiling instead of floor": (
        SKEWED,
        loop(1, lambda f: replace(f, upper=minimum(N - 1, (var("c0") + 1) // 2))),
        "outside",
        2,
    ),
    "floor instead of ceiling": (
        SKEWED,
        loop(1, lambda f: replace(f, lower=maximum(0, -((N - var("c0") - 1) // 2) - 1))),
        "outside",
        2,
    ),
    "guard dropped": (PYRAMID, guard(0, lambda g: g.then), "outside", 2),
    "guard negated": (PYRAMID, guard(0, lambda g: replace(g, condition=negation(g.condition))), "missing", 1),
    "guard too strict": (
        PYRAMID,
        guard(0, lambda g: replace(g, condition=Constraint(var("i") - var("j") - 1))),
        "missing",
        1,
    ),
    "guard never true": (PYRAMID, guard(0, lambda g: replace(g, condition=AnyOf(()))), "missing", 1),
    "branches swapped": (PYRAMID, guard(0, lambda g: If(g.condition, g.other, g.then)), "missing", 1),
    "guard too weak": (
        PYRAMID,
        guard(0, lambda g: replace(g, condition=AnyOf((g.condition, Constraint(var("j") - 6, True))))),
        "outside",
        7,
    ),
}


@pytest.mark.parametrize("subject", [TRIANGLE, STRIPS, SKEWED, PYRAMID], ids=lambda s: str(s.scop.name))
def test_right_loops_are_proved(subject: Subject) -> None:
    loops = loops_of(subject)
    assert validate_loops(subject.scop, subject.schedule, loops).level == "proved"
    for size in range(10):
        assert faults(subject, loops, size) == set()


@pytest.mark.parametrize("name", FAULTS)
def test_faults_are_refuted_with_the_smallest_example(name: str) -> None:
    subject, break_it, what, size = FAULTS[name]
    broken = break_it(loops_of(subject))
    verdict = validate_loops(subject.scop, subject.schedule, broken)
    assert verdict.level == "refuted"
    assert verdict.witness["what"] == what
    assert verdict.witness["params"] == {"N": size}
    for smaller in range(size):
        assert faults(subject, broken, smaller) == set()
    assert _told(verdict) in faults(subject, broken, size)


@pytest.mark.parametrize("name", FAULTS)
def test_without_operations_the_loops_are_run(name: str) -> None:
    subject, break_it, _, size = FAULTS[name]
    broken = break_it(loops_of(subject))
    verdict = validate_loops(subject.scop, subject.schedule, broken, max_operations=50)
    assert verdict.level == "refuted"
    found = verdict.witness["params"]
    assert isinstance(found, dict)
    assert found["N"] >= size
    assert _told(verdict) in faults(subject, broken, found["N"])


def _told(verdict: PropertyVerdict) -> tuple[object, ...]:
    def read(key: str) -> Instance:
        value = verdict.witness[key]
        assert isinstance(value, dict)
        return value["statement"], tuple(value["at"])

    second = (read("other"),) if "other" in verdict.witness else ()
    return (verdict.witness["what"], read("instance"), *second)


def test_tested_says_where_and_why() -> None:
    verdict = validate_loops(STRIPS.scop, STRIPS.schedule, loops_of(STRIPS), max_operations=50)
    assert verdict.level == "tested"
    assert verdict.reason == (
        "not proved (validating the loops took more than 50 operations); "
        "held when run at N = 0; N = 1; N = 2; N = 3; N = 5; N = 9; N = 33"
    )


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda c: replace(c, statement="Q"), "they call Q, which triangle does not have"),
        (lambda c: replace(c, arguments=(var("c9"),)), "they use c9 where it has no value"),
        (lambda c: replace(c, arguments=()), "they call Z with 0 arguments, it has 1 iterators"),
    ],
)
def test_loops_of_something_else(change: Callable[[Call], Call], why: str) -> None:
    broken = call(0, change)(loops_of(TRIANGLE))
    for budget in (None, 50):
        verdict = validate_loops(TRIANGLE.scop, TRIANGLE.schedule, broken, max_operations=budget)
        assert (verdict.level, verdict.reason) == ("refuted", f"the loops are not those of triangle: {why}")


def test_nothing_is_tested_where_every_size_has_too_many_instances() -> None:
    many = replace(STRIPS.scop, context=Set.parse("N >= 10000", params=["N"]))
    verdict = validate_loops(many, STRIPS.schedule, loops_of(STRIPS), max_operations=50)
    assert (verdict.level, verdict.reason) == (
        "unknown",
        "not proved (validating the loops took more than 50 operations), "
        "and the smallest sizes have too many instances to run",
    )


def test_sizes_outside_of_the_context_do_not_matter() -> None:
    loops = loop(0, lambda f: replace(f, upper=N // 4 - 1))(loops_of(TRIANGLE))
    assert validate_loops(TRIANGLE.scop, TRIANGLE.schedule, loops, at={"N": 8}).level == "proved"
    assert validate_loops(TRIANGLE.scop, TRIANGLE.schedule, loops, at={"N": 9}).witness["params"] == {"N": 9}


def test_a_parallel_loop_must_carry_no_dependence() -> None:
    def marked(number: int) -> PropertyVerdict:
        loops = loop(number, lambda f: replace(f, kind="parallel"))(loops_of(TRIANGLE))
        return validate_loops(TRIANGLE.scop, TRIANGLE.schedule, loops)

    assert marked(0).level == "proved"
    assert "no parallel loop carries a dependence" in marked(3).reason
    inner = marked(4)
    assert (inner.level, inner.witness["what"], inner.witness["params"]) == ("refuted", "parallel", {"N": 2})
    assert inner.reason == (
        "S[1, 0] and S[1, 1] depend on each other in different iterations of the parallel loop c3, with N = 2"
    )


def test_parallel_entries_leave_the_order_open() -> None:
    scop = SKEWED.scop
    loops = generate_loops(scop, "{ S[i, j] -> [i, j] }", parallel=(1,))
    assert [f.kind for f in _loops(loops)] == ["sequential", "parallel"]
    backwards = call(0, lambda c: Call("S", (c.arguments[0], N - 1 - c.arguments[1])))(loops)
    assert validate_loops(scop, "{ S[i, j] -> [i, j] }", backwards, parallel=(1,)).level == "proved"
    assert validate_loops(scop, "{ S[i, j] -> [i, j] }", backwards).witness["what"] == "order"


def _loops(loops: LoopProgram) -> list[For]:
    from polyopt.sets import loops as all_loops

    return list(all_loops(loops.root))


def test_a_schedule_that_cannot_be_read_is_an_error() -> None:
    with pytest.raises(InputError, match="gives no order vector to"):
        validate_loops(STRIPS.scop, "{ S[i] -> [i] : i > 2 }", loops_of(STRIPS))


def test_a_size_with_the_name_of_a_time() -> None:
    scop = _renamed(STRIPS.scop)
    loops = generate_loops(scop, STRIPS.schedule)
    assert validate_loops(scop, STRIPS.schedule, loops).level == "proved"


def _renamed(scop: Scop) -> Scop:
    from polyopt.frontend import read_scop, write_scop

    return read_scop(write_scop(scop).replace("N", "__time0"))


def test_the_validator_knows_no_generator() -> None:
    """It shares the nodes, the sets and the reader of schedules with what makes loops, nothing else."""
    for name in ("_loops", "_loop_reading", "_loop_scan"):
        text = (ROOT / "polyopt" / "verify" / f"{name}.py").read_text("utf-8")
        for found in read_imports(text, f"polyopt.verify.{name}", is_package=False):
            assert found.target.removeprefix("polyopt.") not in ("schedule._loops", "sets._ast", "backend")
        assert not re.search(r"generate_loops|loops_of_orders|loops_of_tree", text)
