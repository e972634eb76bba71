"""Instances whose order values lie far apart: the cost follows the instances, not the range of the order."""

from __future__ import annotations

import numpy as np
import pytest

from polyopt.frontend import read_scop
from polyopt.ir import Scop
from polyopt.reference import evaluate, expected_seconds, inputs, interpret, most_instances
from polyopt.reference._plan import Repeat, make_plan
from polyopt.reference._repeat import PATIENCE, repeat
from polyopt.verify import error_bounds

ORDERS = [
    ("[64*i + j]", "[64*i + j]"),
    ("[1000000*i + j]", "[i + 1000000*j]"),
    ("[10000000*i + j]", "[-10000000*i, j]"),
    ("[i*1000000, j]", "[j*1000000 + 7, -i]"),
    ("[i, 1000000*j]", "[i, 999999*j + 3, 1]"),
    ("[i + j, i]", "[2*i + 100000*j, i]"),
]


def interleaved(n: int, first: str, second: str) -> Scop:
    return read_scop(f"""
scop: interleaved
params: []
tensors:
  A: {{shape: [{4 * n}], dtype: float32, role: inout}}
  B: {{shape: [{n}, {n}], dtype: float32, role: inout}}
statements:
- name: S
  domain: "[i, j] : 0 <= i < {n} and 0 <= j <= i"
  order: "{first}"
  body: "A[i + j] = A[i + j] * 0.5 + B[i, j]"
- name: T
  domain: "[i, j] : 0 <= i < {n} and 0 <= j < {n}"
  order: "{second}"
  body: "B[i, j] = A[i + 2*j] + 1"
""")


@pytest.mark.parametrize(("first", "second"), ORDERS)
def test_far_apart(first: str, second: str) -> None:
    scop = interleaved(23, first, second)
    arrays = inputs(scop, {})
    found = evaluate(scop, arrays, {})
    bounds = error_bounds(scop, arrays, {})
    for name, values in interpret(scop, arrays, {}).items():
        np.testing.assert_allclose(found[name], values, rtol=1e-6)
        assert np.isfinite(bounds[name]).all()


@pytest.mark.parametrize(("first", "second"), ORDERS)
def test_a_loop_runs_no_more_often_than_it_has_instances(first: str, second: str) -> None:
    plan = make_plan(interleaved(23, first, second), (), False)
    root = plan.root
    assert isinstance(root, Repeat)
    visited: list[int] = []
    repeat(root, lambda env: visited.append(env[root.name]))({})
    assert visited == sorted(set(visited))
    assert len(visited) <= max(PATIENCE, sum(p.instances.count() for p in root.parts))
    wanted = {e[0] for e in _places(first, second)}
    assert wanted <= set(visited)


def _places(first: str, second: str) -> set[tuple[int, ...]]:
    """The order vectors of all instances."""
    triangle = [(i, j) for i in range(23) for j in range(i + 1)]
    square = [(i, j) for i in range(23) for j in range(23)]
    found = set()
    for text, points in ((first, triangle), (second, square)):
        for i, j in points:
            vector = eval(text, {}, {"i": i, "j": j})  # the test's own text
            found.add(tuple(vector))
    return found


def test_expected_time_grows_with_the_work_not_with_the_range() -> None:
    near = expected_seconds(interleaved(23, "[64*i + j]", "[64*i + j]"), {})
    far = expected_seconds(interleaved(23, "[10000000*i + j]", "[-10000000*i, j]"), {})
    assert far < 50 * near
    assert most_instances(interleaved(23, "[i, j]", "[i, j]"), {}) == 2 * 23 * 23
