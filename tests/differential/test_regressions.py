"""Programs that once went wrong, with what is right."""

from __future__ import annotations

import numpy as np
import pytest

import polyopt as po
from polyopt.errors import BudgetError, InputError
from polyopt.frontend import read_scop
from polyopt.ir import Scop
from polyopt.pipeline import compile


def scop(tensors: str, body: str, domain: str = "[i] : 0 <= i < N", order: str = "[i]", more: str = "") -> Scop:
    lines = "\n".join(f"  {line}" for line in tensors.split("\n"))
    statement = f'  - {{name: S, domain: "{domain}", order: "{order}", body: "{body}"}}'
    return read_scop(f"scop: m\nparams: [N]\n{more}tensors:\n{lines}\nstatements:\n{statement}\n")


@pytest.mark.parametrize(
    ("cell", "values", "body", "start", "terms", "expected"),
    [
        ("uint8", "int32", "s[()] = max(s[()], C[i])", 0, [300, 50], 50),
        ("int8", "int8", "s[()] = min(s[()], 3*C[i])", 0, [50, -40], -120),
        ("bool", "int32", "s[()] += C[i]", 0, [-1, 1], True),
    ],
)
def test_wrapping_stores_keep_the_order(
    cell: str, values: str, body: str, start: int, terms: list[int], expected: int
) -> None:
    """A step that stores into a narrower type may not change places with another one."""
    source = scop(
        f"s: {{shape: [], dtype: {cell}, role: inout}}\nC: {{shape: [N], dtype: {values}, role: input}}", body
    )
    assert po.check(source, "{ S[i] -> [-i] }").verdict == "illegal"
    found = compile(source).run(s=np.array(start, cell), C=np.array(terms, values))
    assert found["s"] == expected


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_sums_point_by_point_are_rounded_at_every_step(dtype: str) -> None:
    source = scop(
        f"A: {{shape: [N], dtype: {dtype}, role: inout}}\n"
        f'C: {{shape: [N], dtype: {dtype}, role: input, init: "uniform(0.1, 1)"}}',
        "A[(i + 2*j) // 3] += C[i]",
        domain="[i, j] : 0 <= i < N and 0 <= j < N",
        order="[i, j]",
        more="reassociate: true\ncontext: N <= 1000\n",
    )
    report = compile(source, at={"N": 30}).run_report()
    assert report.ok, report.reasons


def test_three_gathers_in_one() -> None:
    source = scop(
        'p: {shape: [N], dtype: int32, role: input, init: "index(p, 0)"}\nq: {shape: [N], dtype: int32, role: output}',
        "q[i] = p[p[p[i]]]",
    )
    p = np.array([2, 0, 1, 4, 3], np.int32)
    np.testing.assert_array_equal(compile(source).run(p=p)["q"], p[p[p]])


def test_the_report_is_about_the_latest_run() -> None:
    source = scop(
        "x: {shape: [N], dtype: float32, role: input}\ny: {shape: [N], dtype: float32, role: output}",
        "y[i] = x[i] * 2.0",
    )
    compiled = compile(source)
    for n in (3, 130):
        compiled.run(x=np.ones(n, np.float32))
        assert compiled.report["params"] == {"N": n}
        assert compiled.report["ok"]


def test_expected_infinities_are_tested() -> None:
    source = scop("y: {shape: [N], dtype: float32, role: output}", "y[i] = -inf")
    verdicts = compile(source, at={"N": 5}).verdicts
    assert verdicts["equivalent"].level == verdicts["rounding"].level == "tested"


def test_general_kernels_have_an_estimate() -> None:
    source = scop("B: {shape: [N, 3], dtype: float32, role: output}", "B[i // 3, i % 3] = 1.0")
    assert compile(source, at={"N": 40}).estimated_time_ns


def test_endless_runs_are_refused() -> None:
    source = scop("s: {shape: [], dtype: float32, role: inout}", "s[()] = s[()] * 0.5")
    with pytest.raises(BudgetError, match="choose smaller sizes"):
        compile(source, at={"N": 2_000_000_000}).run_report(timing_only=True)


def test_literals_fit_64_bits() -> None:
    with pytest.raises(InputError, match="does not fit in 64 bits"):
        scop("y: {shape: [N], dtype: float32, role: output}", f"y[i] = {10**400}")
