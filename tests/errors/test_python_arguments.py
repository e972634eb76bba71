"""The Python calls with arguments of a wrong kind: refused in the user's terms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import polyopt as po
from polyopt.errors import InputError
from polyopt.ir import Scop

COPY = po.read_scop("""
scop: t
params: [N]
tensors:
  A: {shape: [N], dtype: float32, role: input}
  B: {shape: [N], dtype: float32, role: output}
statements:
- {name: S, domain: "[i] : 0 <= i < N", order: "[i]", body: "B[i] = A[i] + 1"}
""")
SAME = "{ S[i] -> [i] }"
UNCHECKED: Any = po
"""As a caller without a type checker sees it."""


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: UNCHECKED.check(COPY, 3), "schedule: 3 cannot be used"),
        (lambda: UNCHECKED.check(COPY, None), "schedule: None cannot be used"),
        (lambda: UNCHECKED.check("t.scop.yaml", SAME), "program: 't.scop.yaml' cannot be used"),
        (lambda: UNCHECKED.check(COPY, SAME, parallel=0), "parallel: 0 cannot be used"),
        (lambda: UNCHECKED.check(COPY, SAME, parallel="0"), "parallel: '0' cannot be used"),
        (lambda: UNCHECKED.check(COPY, SAME, parallel=["i"]), "dimension 'i' cannot be parallel"),
        (lambda: UNCHECKED.check(COPY, SAME, parallel=[True]), "dimension True cannot be parallel"),
        (lambda: UNCHECKED.check(COPY, SAME, at=3), "at: 3 cannot be used"),
        (lambda: UNCHECKED.check(COPY, "{ S[i] -> [i*i] }"), "i*i in the union map is not affine"),
        (lambda: UNCHECKED.compile(COPY, at=[3]), "at: a list cannot be used"),
        (lambda: UNCHECKED.compile(COPY, target=3), "target: 3 cannot be used"),
        (lambda: UNCHECKED.compile(None), "source: None cannot be used"),
        (lambda: UNCHECKED.compile(COPY).emit(3), "emit: 3 cannot be used"),
        (lambda: UNCHECKED.compile(COPY).run(A=None), "A is None"),
        (lambda: UNCHECKED.compile(COPY).run(A="x"), "A is 'x'"),
        (lambda: UNCHECKED.compile(COPY).run(A=[[1], [2, 3]]), "A is no array"),
        (lambda: UNCHECKED.compile(COPY).run(A=np.ma.array([1, 2], mask=[False, True])), "A has masked cells"),
        (lambda: UNCHECKED.compile(COPY).run_report(inputs={"A": None}), "A is None"),
    ],
)
def test_a_wrong_kind_of_argument_is_named(call: Callable[[], object], message: str) -> None:
    with pytest.raises(InputError) as caught:
        call()
    assert caught.value.message.startswith(message)
    assert caught.value.diagnostic.help


def test_a_masked_array_without_masked_cells_is_an_array() -> None:
    assert po.compile(COPY).run(A=np.ma.array([1, 2]))["B"].tolist() == [2, 3]


@pytest.mark.parametrize("size", ["-3", "2147483648", "99999999999999999999"])
def test_a_size_that_no_tensor_has_is_refused(size: str) -> None:
    text = po.write_scop(COPY).replace("A: {shape: [N]", f"A: {{shape: [{size}]")
    with pytest.raises(InputError, match=r"size -3 is negative|is too large"):
        po.read_scop(text)


def read(body: str) -> Scop:
    return po.read_scop(f"""
scop: t
params: [N]
tensors:
  A: {{shape: [N], dtype: float32, role: input}}
  B: {{shape: [N], dtype: bool, role: input}}
  O: {{shape: [N], dtype: float32, role: output}}
statements:
- {{name: S, domain: "[i] : 0 <= i < N", order: "[i]", body: "O[i] = {body}"}}
""")


@pytest.mark.parametrize(
    ("body", "meant"),
    [
        ("A[i] and A[i]*2", "A[i]*2 if A[i] else A[i]"),
        ("A[i] or 3.0", "A[i] if A[i] else 3.0"),
        ("A[i] or B[i] and 5", "A[i] if A[i] else (5 if B[i] else B[i])"),
        ("B[i] and A[i] > 0", "B[i] and A[i] > 0"),
        ("1 if A[i] and not (A[i] or i) else 2", "1 if A[i] and not (A[i] or i) else 2"),
    ],
)
def test_and_and_or_mean_what_they_mean_in_python(body: str, meant: str) -> None:
    assert read(body) == read(meant)
