"""Data-dependent subscripts, side by side and nested, reads and writes: values as the interpreter's."""

from __future__ import annotations

import numpy as np
import pytest

import polyopt as po
from polyopt.ir import Scop
from polyopt.reference import inputs, interpret

BODIES = {
    "two in one access": "y[i] = x[p[i], q[i]]",
    "two and an offset": "y[i] = x[p[i], q[i] + 0] + x[i, q[i]]",
    "nested": "y[i] = x[p[p[i]], q[q[i]]]",
    "a scatter by two": "z[p[i], q[i]] += x[i, i]",
    "a scatter and a gather": "z[p[i], i] = x[i, q[p[i]]]",
}


def program(body: str) -> Scop:
    return po.read_scop(f"""
scop: gathers
params: [N]
tensors:
  x: {{shape: [N, N], dtype: float32, role: input, init: "integers(-8, 8)"}}
  p: {{shape: [N], dtype: int32, role: input}}
  q: {{shape: [N], dtype: int32, role: input}}
  y: {{shape: [N], dtype: float32, role: inout}}
  z: {{shape: [N, N], dtype: float32, role: inout, init: "integers(-8, 8)"}}
statements:
- {{name: S, domain: "[i] : 0 <= i < N", order: "[i]", body: "{body}"}}
""")


@pytest.mark.parametrize("size", [0, 1, 2, 13])
@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_gathers(body: str, size: int) -> None:
    scop = program(body)
    arrays = inputs(scop, {"N": size}, seed=size)
    expected = interpret(scop, arrays, {"N": size})
    for compiled in (po.compile(scop), po.compile(scop, at={"N": size})):
        found = compiled.run(**arrays)
        for name, values in expected.items():
            np.testing.assert_array_equal(found[name], values)


def test_a_remark_says_where_they_run() -> None:
    (remark,) = po.compile(program(BODIES["two in one access"])).remarks
    assert remark.id == "general-engine"
    assert "x[p[i], q[i]] has data-dependent subscripts side by side or nested" in remark.message
