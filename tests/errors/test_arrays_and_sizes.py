"""Arrays and sizes that a program cannot take: refused, with the place and what to do."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import polyopt as po
from polyopt.errors import InputError
from polyopt.ir import Scop


@pytest.fixture(scope="module")
def gather() -> Scop:
    return po.read_scop("""
scop: gather
params: [N]
tensors:
  x: {shape: [N], dtype: int8, role: input}
  f: {shape: [N], dtype: float16, role: input}
  b: {shape: [N], dtype: bool, role: input}
  p: {shape: [N], dtype: int32, role: input}
  y: {shape: [N], dtype: float32, role: output}
statements:
- name: S
  domain: "[i] : 0 <= i < N"
  order: "[i]"
  body: "y[i] = x[p[i]] + f[i] + (1 if b[i] else 0)"
""")


GOOD: dict[str, Any] = {"x": [1, 2, 3], "f": [0.5, 1.5, 2.5], "b": [True, False, 1], "p": [2, 1, 0]}


@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        ("x", [1, 300, 2], "x[1] is 300, which int8 does not hold"),
        ("x", [1, 2.5, 2], "x[1] is 2.5, which int8 does not hold"),
        ("x", [1, np.nan, 2], "x[1] is nan, which int8 does not hold"),
        ("x", [1j, 1, 2], "x holds values of type complex128, expected numbers for int8"),
        ("x", ["a", "b", "c"], "x holds values of type <U1, expected numbers for int8"),
        ("f", [1.0, 2.0, 1e6], "f[2] is 1000000.0, which float16 does not hold"),
        ("b", [0, 1, 2], "b[2] is 2, which bool does not hold"),
        ("p", [0, 1, 7], "p[2] is 7, but it subscripts tensors where only 0 to 2 are inside"),
        ("p", [0, -1, 2], "p[1] is -1, but it subscripts tensors where only 0 to 2 are inside"),
    ],
)
def test_arrays(gather: Scop, name: str, values: list[Any], message: str) -> None:
    compiled = po.compile(gather)
    given = {**GOOD, name: values}
    for run in (lambda: compiled.run(**given), lambda: compiled.run_report({}, inputs=given)):
        with pytest.raises(InputError, match=re.escape(message)) as caught:
            run()
        assert caught.value.diagnostic.help


def test_infinities_and_numbers_that_fit_pass(gather: Scop) -> None:
    out = po.compile(gather).run(**{**GOOD, "f": [np.inf, -np.inf, 1], "x": [1.0, 2.0, -128.0]})
    assert out["y"].tolist() == [np.inf, -np.inf, 3.0]


@pytest.mark.parametrize("size", [-3, 2**70, 2.5, True, "4", None])
def test_sizes(gather: Scop, size: Any) -> None:
    for use in (
        lambda: po.compile(gather, at={"N": size}),
        lambda: po.check(gather, "{ S[i] -> [i] }", at={"N": size}),
    ):
        with pytest.raises(InputError, match="N") as caught:
            use()
        assert caught.value.diagnostic.help or "context" in caught.value.message


def test_numpy_sizes_pass(gather: Scop) -> None:
    assert po.compile(gather, at={"N": np.int64(4)}).at == {"N": 4}
    assert po.check(gather, "{ S[i] -> [i] }", at={"N": np.int32(4)})


def test_a_schedule_names_only_sizes_of_the_program(gather: Scop) -> None:
    with pytest.raises(InputError, match="uses a size 'Q', which gather does not have"):
        po.check(gather, "[Q] -> { S[i] -> [i + Q] }")


READ_FIRST = """
scop: early
params: [N]
context: N >= 2
tensors:
  x: {{shape: [N], dtype: float32, role: input}}
  y: {{shape: [N], dtype: float32, role: output}}
  k: {{shape: [N], dtype: int32, role: input}}
statements:
- {{name: S, domain: "[i] : {first}", order: "[{order}]", body: "y[{cell}] = x[i]"}}
- {{name: T, domain: "[i] : 0 <= i < N", order: "[1, i]", body: "{use}"}}
"""


def early(first: str = "0 <= i < N", order: str = "0, i", cell: str = "i", use: str = "y[i] += x[i]") -> Scop:
    return po.read_scop(READ_FIRST.format(first=first, order=order, cell=cell, use=use))


@pytest.mark.parametrize(
    ("changes", "example"),
    [
        ({"first": "0 <= i < N - 1"}, "at N=2, T[i=1] it needs y[1]"),
        ({"first": "0 <= i < N and i != 3"}, "at N=4, T[i=3] it needs y[3]"),
        ({"order": "2, i"}, "at N=2, T[i=0] it needs y[0]"),
        ({"order": "1, i + 1"}, "at N=2, T[i=0] it needs y[0]"),
        ({"first": "0 <= i < N and i mod 2 = 0"}, "at N=2, T[i=1] it needs y[1]"),
        ({"first": "0 <= i < N - 1", "use": "y[i] = y[i] + x[i]"}, "at N=2, T[i=1] it needs y[1]"),
    ],
)
def test_cells_read_before_they_are_written(changes: dict[str, str], example: str) -> None:
    with pytest.raises(InputError, match=re.escape(example)) as caught:
        early(**changes)
    assert "inout" in caught.value.diagnostic.help


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"order": "1, i"},
        {"first": "0 <= i < 2*N and i < N"},
        {"cell": "N - 1 - i"},
        {"cell": "k[i]"},
        {"first": "0 <= i < N - 1", "use": "y[i] = y[i] if i < N - 1 else x[i]"},
        {"first": "0 <= i < N - 1", "use": "y[i] = y[k[i]]"},
    ],
)
def test_cells_that_are_or_may_be_written_before_pass(changes: dict[str, str]) -> None:
    assert early(**changes).name == "early"


@pytest.mark.parametrize("body", ["y[99999999999999999999*i] = x[i]", "y[i % 99999999999999999999] = x[i]"])
def test_numbers_beyond_64_bits(body: str) -> None:
    text = READ_FIRST.replace("y[{cell}] = x[i]", body).format(first="0 <= i < N", order="0, i", use="y[i] = x[i]")
    with pytest.raises(InputError, match="99999999999999999999 is too large"):
        po.read_scop(text)
