"""Loops of random programs and schedules run every instance once, in order, and the validator says so."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

from hypothesis import given, settings
from hypothesis import strategies as st

from polyopt.errors import InputError, LegalityError
from polyopt.frontend import read_scop
from polyopt.ir import LoopProgram, Scop
from polyopt.schedule import bands, generate_loops, original_tree, tree_of_vectors, tree_yaml
from polyopt.sets import Affine, For, loops
from polyopt.verify import validate_loops
from tests.property._programs import LARGEST, RandomProgram, programs, schedules
from tests.property.test_transformations import STEPS
from tests.unit.schedule.transform._programs import MATMUL, PIPELINE, STENCIL, TRIANGLE
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


@settings(max_examples=60)
@given(st.sampled_from([MATMUL, STENCIL, PIPELINE, TRIANGLE]), st.data())
def test_loops_of_transformed_trees_are_proved(scop: Scop, data: st.DataObject) -> None:
    """Tiled, fused, skewed, unrolled, parallel, diamonds, ...: no kind of tree is beyond the validator."""
    tree = original_tree(scop)
    for step in data.draw(st.lists(st.sampled_from(STEPS), min_size=1, max_size=4)):
        with contextlib.suppress(LegalityError, InputError):
            tree = step(scop, tree, data) if any(True for _ in bands(tree)) else tree
    made = generate_loops(scop, tree)
    assert validate_loops(scop, tree, made).level == "proved"
    text = generate_loops(scop, tree_yaml(tree))
    assert validate_loops(scop, tree, text).level == "proved"


MAPS = (
    "{ S[i, j] -> [i + j, i] }",
    "{ S[i, j] -> [-j, i mod 3, i] }",
    "{ S[i, j] -> [i, j] : i < 3; S[i, j] -> [i, -j] : i >= 3 }",
    "{ S[i, j] -> [floor((i + 2j)/3), (i + j) mod 2, j, i] }",
    "{ S[i, j] -> [N - i, 2j - (j mod 2)] }",
    "{ S[i, j] -> [0, j] : (i + j) mod 2 = 0; S[i, j] -> [1, i] : (i + j) mod 2 = 1 }",
    "{ S[i, j] -> [max(i, j), i - j] }",
)


@settings(max_examples=40)
@given(
    st.sampled_from(MAPS), st.sampled_from(["0 <= i < N and 0 <= j <= i", "0 <= i < N and 0 <= j < N and i mod 2 = 0"])
)
def test_union_maps_in_pieces(schedule: str, domain: str) -> None:
    scop = read_scop(f"""
scop: pieces
params: [N]
tensors:
  A: {{shape: [N, N], dtype: float32, role: inout}}
statements:
  - {{name: S, domain: "[i, j] : {domain}", order: "[i, j]", body: "A[i, j] = 0.0"}}
""")
    made = generate_loops(scop, schedule)
    assert validate_loops(scop, schedule, made).level == "proved"
    for size in range(6):
        assert sorted(ran(made, scop, size)) == [("S", p) for p in scop.statement("S").domain.points({"N": size})]
