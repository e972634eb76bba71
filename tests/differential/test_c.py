"""Emitted C, compiled and run, against the interpreter: in the order of schedules, at odd sizes, in every dtype."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings

from polyopt.backend import emit_c
from polyopt.bench import SUITES
from polyopt.errors import UnsupportedError
from polyopt.frontend import read_scop
from polyopt.ir import Scop
from polyopt.reference import evaluate, inputs, interpret
from polyopt.schedule import ScheduleLike, check, compute_schedule, generate_loops, original_tree, read_tree
from polyopt.verify import validate_loops
from tests.c_runs import run_c
from tests.case_files import CASES, read_case
from tests.property._runnable import SIZES, Style, runnable_programs

POLYBENCH: Any = import_module("examples.polybench.suite")

HEAD = "scop: small\nparams: [N]\ntensors:\n"

GEMM = read_scop("""
scop: gemm
params: [M, N, K]
tensors:
  A: {shape: [M, K], dtype: float64, role: input}
  B: {shape: [K, N], dtype: float64, role: input}
  C: {shape: [M, N], dtype: float64, role: output}
statements:
  - {name: Z, domain: "[i, j] : 0 <= i < M and 0 <= j < N", order: "[i, j, 0, 0]", body: "C[i, j] = 0.0"}
  - name: S
    domain: "[i, j, k] : 0 <= i < M and 0 <= j < N and 0 <= k < K"
    order: "[i, j, 1, k]"
    body: "C[i, j] += A[i, k] * B[k, j]"
""")
CHOLESKY = read_scop("""
scop: cholesky
params: [N]
tensors:
  A: {shape: [N, N], dtype: float64, role: inout, init: diagonally_dominant}
statements:
  - {name: R, domain: "[k] : 0 <= k < N", order: "[k, 0, 0, 0]", body: "A[k, k] = sqrt(A[k, k])"}
  - {name: D, domain: "[k, i] : 0 <= k < i < N", order: "[k, 1, i, 0]", body: "A[i, k] = A[i, k] / A[k, k]"}
  - name: U
    domain: "[k, i, j] : 0 <= k < j <= i < N"
    order: "[k, 2, i, j]"
    body: "A[i, j] = A[i, j] - A[i, k] * A[j, k]"
""")
SEIDEL = read_scop("""
scop: seidel
params: [T, N]
context: N >= 3
tensors:
  A: {shape: [N, N], dtype: float64, role: inout}
statements:
  - name: S
    domain: "[t, i, j] : 0 <= t < T and 1 <= i < N - 1 and 1 <= j < N - 1"
    order: "[t, i, j]"
    body: "A[i, j] = (A[i - 1, j] + A[i, j - 1] + A[i, j] + A[i, j + 1] + A[i + 1, j]) / 5"
""")
SCHEDULED: Mapping[str, tuple[Scop, str, tuple[dict[str, int], ...]]] = {
    "gemm tiled": (
        GEMM,
        "{ Z[i, j] -> [floor(i/4), floor(j/3), -1, i, j, 0];"
        " S[i, j, k] -> [floor(i/4), floor(j/3), floor(k/5), i, j, k] }",
        ({"M": 7, "N": 5, "K": 11}, {"M": 1, "N": 1, "K": 1}, {"M": 4, "N": 3, "K": 0}, {"M": 0, "N": 2, "K": 2}),
    ),
    "cholesky tiled": (
        CHOLESKY,
        "{ R[k] -> [floor(k/4), floor(k/4), floor(k/4), k, k, k, 0];"
        " D[k, i] -> [floor(k/4), floor(i/4), floor(k/4), k, i, k, 1];"
        " U[k, i, j] -> [floor(k/4), floor(i/4), floor(j/4), k, i, j, 2] }",
        ({"N": 13}, {"N": 4}, {"N": 1}, {"N": 0}),
    ),
    "seidel skewed and tiled": (
        SEIDEL,
        "{ S[t, i, j] -> [floor(t/2), floor((t + i)/3), floor((2t + i + j)/4), t, t + i, 2t + i + j] }",
        ({"T": 5, "N": 9}, {"T": 1, "N": 3}, {"T": 0, "N": 5}),
    ),
    "seidel as a wavefront": (SEIDEL, "{ S[t, i, j] -> [4t + 2i + j, t, i] }", ({"T": 3, "N": 8},)),
}


def assert_same(
    scop: Scop,
    schedule: ScheduleLike,
    sizes: Mapping[str, int],
    folder: Path,
    *,
    exact: bool,
    function: str = "",
) -> None:
    loops = generate_loops(scop, schedule)
    assert not validate_loops(scop, schedule, loops).is_refuted
    arrays = inputs(scop, sizes, 3)
    expected = interpret(scop, arrays, sizes) if exact else evaluate(scop, arrays, sizes)
    got = run_c(emit_c(scop, loops), scop, sizes, arrays, folder, function=function)
    assert set(got) == set(expected)
    for name, values in expected.items():
        if exact:
            assert np.array_equal(got[name], values, equal_nan=True), name
        else:
            np.testing.assert_allclose(got[name], values, rtol=1e-4, atol=2e-5, err_msg=name)


@pytest.mark.parametrize("name", SCHEDULED)
def test_scheduled_programs(name: str, tmp_path: Path) -> None:
    scop, schedule, several = SCHEDULED[name]
    assert check(scop, schedule).verdict == "legal" or name == "gemm tiled"
    for sizes in several:
        assert_same(scop, schedule, sizes, tmp_path, exact=True)


@pytest.mark.parametrize("path", CASES, ids=lambda p: p.name.split(".")[0])
def test_case_files(path: Path, tmp_path: Path) -> None:
    """Every legal schedule of every case; what C cannot say is refused."""
    case = read_case(path)
    schedules: list[ScheduleLike] = [original_tree(case.scop)]
    schedules += [c.schedule for c in case.checks if c.expect == "legal"]
    for schedule in schedules:
        sizes = dict.fromkeys(case.scop.params, 7)
        try:
            assert_same(case.scop, schedule, sizes, tmp_path, exact=False)
        except UnsupportedError as error:
            assert error.diagnostic.help
            assert path.name.split(".")[0] in ("gather_inplace", "opaque_call")


@pytest.mark.parametrize("workload", SUITES["main"], ids=lambda w: w.name)
def test_the_suite(workload: Any, tmp_path: Path) -> None:
    scop = workload.scop()
    small = {name: min(size, 5 + k) for k, (name, size) in enumerate(workload.sizes.items())}
    try:
        assert_same(scop, original_tree(scop), small, tmp_path, exact=False)
    except UnsupportedError:
        assert workload.name == "embedding-bag"


@pytest.mark.slow
@pytest.mark.parametrize("kernel", POLYBENCH.KERNELS, ids=lambda k: str(k.name))
def test_polybench_as_isl_schedules_it_and_in_tiles(kernel: Any, tmp_path: Path) -> None:
    scop = kernel.scop()
    tree = read_tree(scop, compute_schedule(scop).tree)
    for t in (tree, POLYBENCH.tiled(scop, tree)[0]):
        assert validate_loops(scop, t, generate_loops(scop, t)).level == "proved"
        assert_same(scop, t, kernel.sizes, tmp_path, exact=False)


def small(tensors: str, body: str) -> Scop:
    lines = "".join(f"  {line.strip()}\n" for line in tensors.split(";"))
    statement = f'statements:\n  - {{name: S, domain: "[i] : 0 <= i < N", order: "[i]", body: "{body}"}}\n'
    return read_scop(HEAD + lines + statement)


INTEGERS = np.array([-(2**31), 2**31 - 1, -7, -1, 0, 1, 7, 100], np.int32)
FLOATS = np.array([-3e9, 3e9, -1.5, -0.0, 0.5, np.inf, -np.inf, np.nan])
X = "x: {shape: [N], dtype: int32, role: input}"
F = "x: {shape: [N], dtype: float64, role: input}"


INTEGER_VALUES = (
    "x[i] * x[i] + 3 - i",
    "-x[i] + abs(x[i])",
    "min(x[i], 5) * max(x[i], -5)",
    "relu(x[i])",
    "x[i]**3",
    "x[i] / 2",
    "x[i] > 3 and not x[i] == 7 or i % 3 == 1",
    "x[i] if x[i] > i // 2 else (N + i) % 4",
    "cast('int8', x[i]) + 1",
)
FLOAT_VALUES = (
    "x[i] * 2 - 1",
    "min(x[i], 0.25)",
    "max(x[i], 0)",
    "relu(x[i])",
    "abs(-x[i])",
    "1 / x[i]",
    "x[i] ** 2",
    "x[i] < 1",
    "exp(x[i]) + tanh(x[i])",
    "sigmoid(x[i])",
    "silu(x[i])",
    "gelu(x[i])",
    "gelu_tanh(x[i])",
    "erf(x[i])",
    "sqrt(x[i])",
    "rsqrt(x[i])",
    "log(x[i])",
    "sin(x[i]) + cos(x[i])",
    "cast('int16', x[i]) + cast('float32', x[i])",
    "inf if x[i] > 0 else -inf",
    "0.1 if x[i] else x[i]",
)


@pytest.mark.parametrize("dtype", ["int64", "int32", "int16", "int8", "uint8", "bool", "float32", "float64"])
def test_integers_wrap_as_in_the_reference(dtype: str, tmp_path: Path) -> None:
    assert_values(X, INTEGER_VALUES, dtype, INTEGERS, tmp_path)


@pytest.mark.parametrize("dtype", ["int64", "int8", "bool", "float32", "float64"])
def test_floats_are_those_of_the_reference(dtype: str, tmp_path: Path) -> None:
    assert_values(F, FLOAT_VALUES, dtype, FLOATS, tmp_path)


def assert_values(tensor: str, exprs: Sequence[str], dtype: str, values: npt.NDArray[Any], folder: Path) -> None:
    """Every expression of x, stored as `dtype`: equal, but functions of the library may differ in the last places."""
    tensors = [f"  {tensor}\n", *(f"  y{k}: {{shape: [N], dtype: {dtype}, role: output}}\n" for k in range(len(exprs)))]
    rows = [
        f'  - {{name: S{k}, domain: "[i] : 0 <= i < N", order: "[{k}, i]", body: "y{k}[i] = {e}"}}\n'
        for k, e in enumerate(exprs)
    ]
    scop = read_scop(HEAD + "".join(tensors) + "statements:\n" + "".join(rows))
    sizes = {"N": len(values)}
    expected = interpret(scop, {"x": values}, sizes)
    got = run_c(emit_c(scop, generate_loops(scop, original_tree(scop))), scop, sizes, {"x": values}, folder)
    for k, e in enumerate(exprs):
        if dtype.startswith("float"):
            rtol = 1e-13 if dtype == "float64" else 1e-6
            np.testing.assert_allclose(got[f"y{k}"], expected[f"y{k}"], rtol=rtol, err_msg=e)
        else:
            assert np.array_equal(got[f"y{k}"], expected[f"y{k}"]), e


@settings(max_examples=15)
@given(runnable_programs(Style(gathers=False)))
def test_random_programs(scop: Scop) -> None:
    with TemporaryDirectory() as folder:
        assert_same(scop, original_tree(scop), SIZES, Path(folder), exact=False, function="random_")


def test_names_that_c_has_already(tmp_path: Path) -> None:
    scop = read_scop("""
scop: exp
params: [int, N]
context: N >= 1
tensors:
  double: {shape: [int], dtype: float64, role: input}
  po_floor_div: {shape: [int], dtype: float64, role: temp}
  y0: {shape: [int], dtype: float64, role: output}
  c0: {shape: [N], dtype: float64, role: input}
statements:
  - {name: main, domain: "[for_] : 0 <= for_ < int", order: "[0, for_]", body: "po_floor_div[for_] = double[for_ // 2]"}
  - {name: log, domain: "[i] : 0 <= i < int", order: "[1, i]", body: "y0[i] = exp(po_floor_div[i] + c0[N - 1])"}
""")
    sizes = {"int": 5, "N": 2}
    arrays = inputs(scop, sizes)
    text = emit_c(scop, generate_loops(scop, original_tree(scop)))
    got = run_c(text, scop, sizes, arrays, tmp_path, function="exp_")["y0"]
    np.testing.assert_allclose(got, interpret(scop, arrays, sizes)["y0"], rtol=1e-14)


def test_uninterpreted_functions_are_left_to_the_user(tmp_path: Path) -> None:
    scop = small(f"{F}; y: {{shape: [N], dtype: float64, role: output}}", "y[i] = call(cbrt, x[i])")
    text = emit_c(scop, generate_loops(scop, original_tree(scop)))
    assert "extern double cbrt_(double);" in text
    values = np.arange(8.0)
    got = run_c(text + "double cbrt_(double x) { return cbrt(x); }\n", scop, {"N": 8}, {"x": values}, tmp_path)
    np.testing.assert_allclose(got["y"], np.cbrt(values))


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float8_e4m3", "float8_e5m2"])
def test_element_types_that_c_lacks(dtype: str) -> None:
    scop = small(f"{F}; y: {{shape: [N], dtype: {dtype}, role: output}}", "y[i] = x[i]")
    with pytest.raises(UnsupportedError) as caught:
        emit_c(scop, generate_loops(scop, original_tree(scop)))
    assert str(caught.value) == (
        f"error[c-dtype]: y has the element type {dtype}, which C does not have\n"
        "help: use another element type (--dtype float32); "
        "C has float64, float32, int64, int32, int16, int8, uint8, bool"
    )


def test_casts_to_element_types_that_c_lacks() -> None:
    scop = small(f"{F}; y: {{shape: [N], dtype: float64, role: output}}", "y[i] = cast('bfloat16', x[i])")
    with pytest.raises(UnsupportedError, match="a value is cast to bfloat16, which C does not have"):
        emit_c(scop, generate_loops(scop, original_tree(scop)))


def test_gathers_and_calls_are_refused() -> None:
    gather = small(f"{X}; {F.replace('x:', 'z:')}; y: {{shape: [N], dtype: float64, role: output}}", "y[i] = z[x[i]]")
    with pytest.raises(UnsupportedError, match=r"z\[x\[i\]\] has a data-dependent subscript"):
        emit_c(gather, generate_loops(gather, original_tree(gather)))
    opaque = replace(read_case(next(p for p in CASES if "opaque" in p.name)).scop, reassociate=False)
    with pytest.raises(UnsupportedError, match="is an opaque call"):
        emit_c(opaque, generate_loops(opaque, original_tree(opaque)))
