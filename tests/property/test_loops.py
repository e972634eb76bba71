"""Loops of random programs and schedules run every instance once, in order, and the validator says so."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import given, settings
from hypothesis import strategies as st

from polyopt.ir import LoopProgram, Scop
from polyopt.schedule import generate_loops, tree_of_vectors
from polyopt.sets import Affine, For, loops
from polyopt.verify import validate_loops
from tests.property._programs import LARGEST, RandomProgram, programs, schedules
from tests.unit.verify._loop_faults import edited

Instance = tuple[str, tuple[int, ...]]


def ran(made: LoopProgram, scop: Scop, size: int) -> list[Instance]:
    """What Python runs."""
    found: list[Instance] = []

    def record(name: str) -> Callable[..., None]:
        return lambda *values: found.append((name, values))

    exec(made.text(), {"N": size, **{s.name: record(s.name) for s in scop.statements}})
    return found


def wrong_at(made: LoopProgram, program: RandomProgram, vectors: dict[str, tuple[Affine, ...]], size: int) -> set[str]:
    """What is wrong with the loops at one size, by running them; shares nothing with isl."""
    order = ran(made, program.scop, size)
    wanted = [(name, point) for name, points in program.instances({"N": size}).items() for point in points]
    found = {"outside"} if set(order) - set(wanted) else set()
    found |= {"missing"} if set(wanted) - set(order) else set()
    found |= {"twice"} if len(order) > len(set(order)) else set()
    if not found:
        places = [_vector(program.scop, vectors, i, size) for i in order]
        found |= {"order"} if places != sorted(places) else set()
    return found


def _vector(scop: Scop, vectors: dict[str, tuple[Affine, ...]], instance: Instance, size: int) -> list[int]:
    name, point = instance
    env = {"N": size, **dict(zip(scop.statement(name).iterators, point, strict=True))}
    length = max(len(v) for v in vectors.values())
    values = [e.evaluate(env) for e in vectors[name]]
    return values + [0] * (length - len(values))


@settings(max_examples=60)
@given(st.data())
def test_generated_loops_are_right_and_proved(data: st.DataObject) -> None:
    program = data.draw(programs())
    vectors = data.draw(schedules(program.scop))
    made = generate_loops(program.scop, vectors)
    for size in _sizes(program.scop):
        assert wrong_at(made, program, vectors, size) == set()
    assert validate_loops(program.scop, vectors, made).level == "proved"


def _sizes(scop: Scop) -> list[int]:
    return [n for n in range(LARGEST + 1) if not scop.context.fix({"N": n}).is_empty()]


@settings(max_examples=40)
@given(st.data())
def test_loops_of_a_tree_are_those_of_its_vectors(data: st.DataObject) -> None:
    program = data.draw(programs())
    vectors = data.draw(schedules(program.scop))
    tree = tree_of_vectors(program.scop, vectors)
    made = generate_loops(program.scop, tree)
    for size in _sizes(program.scop):
        assert wrong_at(made, program, vectors, size) == set()
    assert validate_loops(program.scop, tree, made).level == "proved"
    assert validate_loops(program.scop, vectors, made).level == "proved"


@settings(max_examples=60)
@given(st.data())
def test_changed_bounds_are_judged_as_running_them_says(data: st.DataObject) -> None:
    program = data.draw(programs())
    vectors = data.draw(schedules(program.scop))
    made = generate_loops(program.scop, vectors)
    count = len(list(loops(made.root)))
    if not count:
        return
    lower, upper = data.draw(st.integers(-1, 1)), data.draw(st.sampled_from([-1, 1]))
    number = data.draw(st.integers(0, count - 1))
    changed = edited(made, For, number, lambda f: For(f.iterator, f.lower + lower, f.upper + upper, f.body, f.step))
    verdict = validate_loops(program.scop, vectors, changed)
    wrong = {size: found for size in _sizes(program.scop) if (found := wrong_at(changed, program, vectors, size))}
    if wrong:
        assert verdict.level == "refuted"
        smallest = min(wrong)
        assert verdict.witness["params"] == {"N": smallest}
        assert verdict.witness["what"] in wrong[smallest]
    elif verdict.is_refuted:
        told = verdict.witness["params"]
        assert isinstance(told, dict)
        assert told["N"] > LARGEST
    else:
        assert verdict.level == "proved"
