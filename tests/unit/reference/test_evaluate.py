"""The fast evaluator against the interpreter and numpy, on programs that each take another way through it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from polyopt.errors import InputError, UnsupportedError
from polyopt.ir import Scop
from polyopt.reference import _leaf, _plan, _region, evaluate, inputs, interpret
from polyopt.reference._plan import Block, Leaf, PlanNode, Repeat, make_plan
from tests.case_files import CASES, read_case
from tests.unit.reference._build import build

Array = npt.NDArray[Any]


def shape_of(node: PlanNode) -> object:
    """A plan as nested lists: `S0/2` for a leaf with two vector dimensions, [...] for a sequential loop."""
    if isinstance(node, Leaf):
        return f"{node.part.name}/{len(node.dims)}"
    if isinstance(node, Repeat):
        inner = shape_of(node.body)
        return [inner] if not isinstance(inner, tuple) else list(inner)
    return tuple(shape_of(child) for child in node.children)


def plan_shape(scop: Scop, sizes: Mapping[str, int]) -> object:
    return shape_of(make_plan(scop, tuple(sorted(sizes.items())), False).root)


def agree(scop: Scop, sizes: Mapping[str, int], seed: int = 0) -> None:
    """Evaluator and interpreter give the same, exactly in exact mode."""
    for mode in ("exact", "float64"):
        given = inputs(scop, sizes, seed, mode=mode)
        fast = evaluate(scop, given, sizes, mode, round_outputs=False, keep_temps=True)
        slow = interpret(scop, given, sizes, mode, round_outputs=False, keep_temps=True)
        short = evaluate(scop, given, sizes, mode, round_outputs=False)
        for name, expected in slow.items():
            for got in [fast[name]] + ([short[name]] if name in short else []):
                assert got.shape == expected.shape
                if mode == "exact":
                    assert np.array_equal(got, expected), name
                else:
                    assert np.allclose(got.astype(float), expected.astype(float), rtol=1e-11, atol=1e-12), name


BOX2 = "[i, j] : 0 <= i < M and 0 <= j < N"
BOX3 = "[i, j, k] : 0 <= i < M and 0 <= j < N and 0 <= k < K"
AB = [("A", "M, K", "float32 input"), ("B", "K, N", "float32 input"), ("C", "M, N", "float32 output")]
GEMM = build(
    "M, N, K", AB, [(BOX2, "[i, j, 0]", "C[i, j] = 0.0"), (BOX3, "[i, j, 1, k]", "C[i, j] += A[i, k] * B[k, j]")]
)
SCALAR_GEMM = build(
    "M, N, K",
    [*AB, ("acc", "", "float32 temp")],
    [
        (BOX2, "[i, j, 0]", "acc[()] = 0.0"),
        (BOX3, "[i, j, 1, k]", "acc[()] += A[i, k] * B[k, j]"),
        (BOX2, "[i, j, 2]", "C[i, j] = acc[()]"),
    ],
)
JACOBI = build(
    "T, N",
    [("A", "2, N", "float32 inout")],
    [("[t, i] : 0 <= t < T and 1 <= i < N - 1", "[t, i]", "A[(t + 1) % 2, i] = 0.5*A[t % 2, i - 1] + A[t % 2, i + 1]")],
)
SEIDEL = build(
    "N",
    [("A", "N, N", "float32 inout")],
    [("[i, j] : 1 <= i < N - 1 and 1 <= j < N - 1", "[i, j]", "A[i, j] = 0.5*A[i - 1, j] + A[i, j - 1] - A[i, j + 1]")],
)
LU = build(
    "N",
    [("A", "N, N", "float32 inout", "diagonally_dominant")],
    [
        ("[k, i] : 0 <= k < N and k < i < N", "[k, 0, i]", "A[i, k] = A[i, k] / A[k, k]"),
        ("[k, i, j] : 0 <= k < N and k < i < N and k < j < N", "[k, 1, i, j]", "A[i, j] = A[i, j] - A[i, k] * A[k, j]"),
    ],
)
CHOLESKY = build(
    "N",
    [("A", "N, N", "float32 inout", "diagonally_dominant")],
    [
        ("[i, j, k] : 0 <= i < N and 0 <= j < i and 0 <= k < j", "[i, 0, j, 0, k]", "A[i, j] += -(A[i, k] * A[j, k])"),
        ("[i, j] : 0 <= i < N and 0 <= j < i", "[i, 0, j, 1]", "A[i, j] = A[i, j] / A[j, j]"),
        ("[i, k] : 0 <= i < N and 0 <= k < i", "[i, 1, 0, 0, k]", "A[i, i] += -(A[i, k] * A[i, k])"),
        ("[i] : 0 <= i < N", "[i, 2]", "A[i, i] = sqrt(A[i, i])"),
    ],
)
CONV = build(
    "C, H",
    [
        ("X", "C, H, H", "float32 input"),
        ("W", "2, C, 3, 3", "float32 input"),
        ("Y", "2, (H + 1)//2, (H + 1)//2", "float32 output"),
    ],
    [
        ("[f, y, x] : 0 <= f < 2 and 0 <= 2y < H and 0 <= 2x < H", "[0, f, y, x]", "Y[f, y, x] = 0.0"),
        (
            "[f, y, x, c, r, s] : 0 <= f < 2 and 0 <= 2y < H and 0 <= 2x < H and 0 <= c < C and 0 <= r < 3 "
            "and 0 <= s < 3 and 0 <= 2y + r - 1 < H and 0 <= 2x + s - 1 < H",
            "[1, f, y, x, c, r, s]",
            "Y[f, y, x] += X[c, 2*y + r - 1, 2*x + s - 1] * W[f, c, r, s]",
        ),
    ],
)
PADDED = build(
    "C, H",
    [("X", "C, H", "float32 input"), ("W", "2, C, 3", "float32 input"), ("Y", "2, H", "float32 inout")],
    [
        (
            "[f, y, c, r] : 0 <= f < 2 and 0 <= y < H and 0 <= c < C and 0 <= r < 3",
            "[f, y, c, r]",
            "Y[f, y] += (X[c, y + r - 1] if 0 <= y + r - 1 and y + r - 1 < H else 0.0) * W[f, c, r]",
        )
    ],
)
TRANSPOSED = build(
    "C, H",
    [("X", "C, H", "float32 input"), ("W", "2, C, 3", "float32 input"), ("Y", "2, 2*H + 1", "float32 inout")],
    [
        (
            "[f, y, c, r] : 0 <= f < 2 and 0 <= y < H and 0 <= c < C and 0 <= r < 3",
            "[f, y, c, r]",
            "Y[f, 2*y + r] += X[c, y] * W[f, c, r]",
        )
    ],
)
PRODUCT_OF_POLYNOMIALS = build(
    "N",
    [("a", "N", "float32 input"), ("b", "N", "float32 input"), ("c", "2*N", "float32 inout")],
    [("[i, j] : 0 <= i < N and 0 <= j < N", "[i, j]", "c[i + j] += a[i] * b[j]")],
)
CAUSAL = build(
    "N",
    [
        ("Q", "N, 3", "float32 input"),
        ("K", "N, 3", "float32 input"),
        ("S", "N, N", "float32 temp"),
        ("O", "N, 3", "float32 output"),
    ],
    [
        ("[i, j] : 0 <= j <= i < N", "[0, i, j]", "S[i, j] = 0.0"),
        ("[i, j, d] : 0 <= j <= i < N and 0 <= d < 3", "[1, i, j, d]", "S[i, j] += Q[i, d] * K[j, d]"),
        ("[i, d] : 0 <= i < N and 0 <= d < 3", "[2, i, d]", "O[i, d] = 0.0"),
        ("[i, j, d] : 0 <= j <= i < N and 0 <= d < 3", "[3, i, j, d]", "O[i, d] += S[i, j] * K[j, d]"),
    ],
)
MIN_PLUS = build(
    "N",
    [("A", "N, N", "float32 input"), ("B", "N, N", "float32 input"), ("C", "N, N", "float32 output")],
    [
        ("[i, j] : 0 <= i < N and 0 <= j < N", "[i, j, 0]", "C[i, j] = inf"),
        (
            "[i, j, k] : 0 <= i < N and 0 <= j < N and 0 <= k < N",
            "[i, j, 1, k]",
            "C[i, j] = min(C[i, j], A[i, k] + B[k, j])",
        ),
    ],
)
HISTOGRAM = build(
    "N",
    [
        ("n", "N", "int32 input", "integers(0, 4)"),
        ("x", "N", "float32 input"),
        ("h", "4", "float32 inout"),
        ("c", "4", "int8 inout"),
    ],
    [("[i] : 0 <= i < N", "[0, i]", "h[n[i]] += x[i]"), ("[i] : 0 <= i < N", "[1, i]", "c[n[i]] += 100")],
)
EMBEDDING = build(
    "N",
    [
        ("E", "5, 3", "float32 input"),
        ("n", "N", "int64 input"),
        ("W", "3, 2", "float32 input"),
        ("Y", "N, 2", "float32 inout"),
    ],
    [("[i, j, k] : 0 <= i < N and 0 <= j < 2 and 0 <= k < 3", "[i, j, k]", "Y[i, j] += E[n[i], k] * W[k, j]")],
)
REVERSED_AND_SKEWED = build(
    "N",
    [("A", "N, N", "float32 inout")],
    [("[i, j] : 1 <= i < N and 1 <= j < N", "[i + j, -j]", "A[i, j] = A[i - 1, j] + 0.5*A[i, j - 1]")],
)
STRIPS = build(
    "N",
    [("A", "N", "float32 inout"), ("B", "N", "float32 output")],
    [
        ("[i] : 0 <= i < N and i % 3 != 1", "[i//4, 1, i]", "B[i] = A[i] * 2.0"),
        ("[i] : 0 <= i < N", "[i//4, 0, i]", "A[i] = A[i] + i"),
    ],
)
SUMS_OF_CONSTANTS = build(
    "N, M",
    [("a", "N", "float32 inout"), ("b", "N", "float32 inout"), ("m", "N", "float32 inout")],
    [
        ("[i, j] : 0 <= i < N and 0 <= j < M", "[0, i, j]", "a[i] += 0.5"),
        ("[i, j] : 0 <= i < N and 0 <= j <= i", "[1, i, j]", "b[i] *= 2.0"),
        ("[i, j] : 0 <= i < N and 0 <= j < M", "[2, i, j]", "m[i] = max(m[i], j - 2)"),
    ],
)
INTEGERS = build(
    "N, M",
    [("x", "N, M", "int16 input"), ("s", "N", "int8 inout"), ("p", "N", "int32 inout"), ("q", "N", "int8 inout")],
    [
        ("[i, j] : 0 <= i < N and 0 <= j < M", "[0, i, j]", "s[i] += x[i, j] * 50"),
        ("[i, j] : 0 <= i < N and 0 <= j < M", "[1, i, j]", "p[i] *= x[i, j]"),
        ("[i, j] : 0 <= i < N and 0 <= j < M", "[2, i, j]", "s[i] += 0.75"),
        ("[i, j] : 0 <= i < N and 0 <= j < M", "[3, i, j]", "q[i] = max(q[i], x[i, j] * 40)"),
    ],
)
TWO_SUMS_IN_ONE_LOOP = build(
    "M, N",
    [("A", "M, N", "float32 input"), ("a", "M", "float32 inout"), ("b", "N", "float32 inout")],
    [(BOX2, "[i, j, 0]", "a[i] += A[i, j]"), (BOX2, "[i, j, 1]", "b[j] += A[i, j] * A[i, j]")],
)

PROGRAMS: dict[str, tuple[Scop, dict[str, int], object]] = {
    "gemm": (GEMM, {"M": 4, "N": 5, "K": 6}, ("S0/2", "S1/3")),
    "scalar_gemm": (SCALAR_GEMM, {"M": 4, "N": 5, "K": 6}, ("S0/2", "S1/3", "S2/2")),
    "jacobi": (JACOBI, {"T": 4, "N": 30}, ["S0/1"]),
    "seidel": (SEIDEL, {"N": 8}, [["S0/0"]]),
    "lu": (LU, {"N": 9}, ["S0/1", "S1/2"]),
    "cholesky": (CHOLESKY, {"N": 9}, [["S0/1", "S1/0"], "S2/1", "S3/0"]),
    "conv": (CONV, {"C": 3, "H": 7}, ("S0/3", "S1/6")),
    "padded": (PADDED, {"C": 3, "H": 7}, "S0/4"),
    "transposed": (TRANSPOSED, {"C": 3, "H": 7}, "S0/4"),
    "polynomials": (PRODUCT_OF_POLYNOMIALS, {"N": 9}, "S0/2"),
    "causal": (CAUSAL, {"N": 9}, ("S0/2", "S1/3", "S2/2", "S3/3")),
    "min_plus": (MIN_PLUS, {"N": 7}, ("S0/2", "S1/3")),
    "histogram": (HISTOGRAM, {"N": 30}, ("S0/1", "S1/1")),
    "embedding": (EMBEDDING, {"N": 7}, "S0/3"),
    "skewed": (REVERSED_AND_SKEWED, {"N": 7}, ["S0/1"]),
    "strips": (STRIPS, {"N": 22}, ("S1/2", "S0/2")),
    "constants": (SUMS_OF_CONSTANTS, {"N": 7, "M": 5}, ("S0/2", "S1/2", "S2/2")),
    "integers": (INTEGERS, {"N": 5, "M": 6}, ("S0/2", "S1/2", ["S2/1"], ["S3/1"])),
    "two_sums": (TWO_SUMS_IN_ONE_LOOP, {"M": 6, "N": 7}, ("S0/2", "S1/2")),
}


@pytest.fixture(params=["usual", "arrays only", "small chunks", "no loops"])
def limits(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Other limits lead through other ways."""
    if request.param != "usual":
        monkeypatch.setattr(_leaf, "POINTS", 0)
    if request.param == "small chunks":
        monkeypatch.setattr(_leaf, "CHUNK", 8)
        monkeypatch.setattr(_leaf, "OPERAND", 16)
        monkeypatch.setattr(_region, "LIST_LIMIT", 4)
    if request.param == "no loops":
        monkeypatch.setattr(_leaf, "SPLITS", 0)
        monkeypatch.setattr(_region, "LOOP_LIMIT", 0)
    yield


@pytest.mark.parametrize("name", PROGRAMS)
def test_evaluator_and_interpreter_agree(name: str, limits: None) -> None:
    scop, sizes, _ = PROGRAMS[name]
    agree(scop, sizes)


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_runs_over_whole_arrays(name: str) -> None:
    scop, sizes, expected = PROGRAMS[name]
    assert plan_shape(scop, sizes) == expected


@pytest.mark.parametrize("path", CASES, ids=lambda p: p.name.removesuffix(".case.yaml"))
def test_named_cases(path: Any, limits: None) -> None:
    case = read_case(path)
    sizes = dict(case.checks[0].at)
    if any(s.is_opaque for s in case.scop.statements):
        for run in (interpret, evaluate):
            with pytest.raises(UnsupportedError, match="opaque call"):
                run(case.scop, inputs(case.scop, sizes), sizes)
        return
    agree(case.scop, sizes)


@pytest.mark.parametrize("sizes", [{"M": 0, "N": 3, "K": 2}, {"M": 3, "N": 3, "K": 0}, {"M": 1, "N": 1, "K": 1}])
def test_empty_and_single_instances(sizes: dict[str, int]) -> None:
    agree(GEMM, sizes)
    agree(SCALAR_GEMM, sizes)


def test_a_temp_that_is_read_before_it_is_written_in_an_iteration_is_not_private() -> None:
    scop = build(
        "N",
        [("x", "N", "float32 input"), ("t", "", "float32 temp"), ("y", "N", "float32 output")],
        [
            ("[] : 1 = 1", "[0]", "t[()] = 1.0"),
            ("[i] : 0 <= i < N", "[1, i, 0]", "y[i] = t[()]"),
            ("[i] : 0 <= i < N", "[1, i, 1]", "t[()] = x[i]"),
        ],
    )
    agree(scop, {"N": 6})


def test_a_temp_written_for_some_iterations_only_is_not_private() -> None:
    scop = build(
        "N",
        [("x", "N", "float32 input"), ("t", "", "float32 temp"), ("y", "N", "float32 output")],
        [
            ("[i] : 0 <= i < N and i % 2 = 0", "[i, 0]", "t[()] = x[i]"),
            ("[i] : 0 <= i < N", "[i, 1]", "y[i] = t[()]"),
        ],
    )
    agree(scop, {"N": 6})


def test_a_private_temp_too_large_stays_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_plan, "PRIVATE_LIMIT", 3)
    make_plan.cache_clear()
    assert plan_shape(SCALAR_GEMM, {"M": 4, "N": 5, "K": 6}) == [["S0/0", "S1/1", "S2/0"]]
    agree(SCALAR_GEMM, {"M": 4, "N": 5, "K": 6})
    make_plan.cache_clear()


def test_masked_garbage_does_not_leak() -> None:
    """The masked half of L holds infinities, which 0 * inf would turn into nan."""
    scop = build(
        "N",
        [("L", "N, N", "float32 input"), ("B", "N, N", "float32 input"), ("C", "N, N", "float32 inout")],
        [("[i, j, k] : 0 <= k <= i < N and 0 <= j < N", "[i, j, k]", "C[i, j] += L[i, k] * B[k, j]")],
    )
    n = 20
    lower = np.tril(np.random.default_rng(0).uniform(-1, 1, (n, n)))
    given = inputs(scop, {"N": n})
    given["L"] = np.where(np.tri(n, dtype=bool), lower, np.inf)
    got = evaluate(scop, given, {"N": n}, round_outputs=False)["C"]
    expected = given["C"].astype(float) + lower.astype(np.float32).astype(float) @ given["B"].astype(float)
    assert np.allclose(got, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("extra", ["", " and 2j + 3k <= 40"])
def test_a_mask_that_no_factor_has(extra: str) -> None:
    scop = build(
        "N",
        [("A", "N, N", "float32 input"), ("B", "N, N", "float32 input"), ("C", "N, N", "float32 inout")],
        [
            (
                "[i, j, k] : 0 <= i < N and 0 <= j < N and 0 <= k < N and j <= i" + extra,
                "[i, k, j]",
                "C[i, j] += A[i, k] * B[k, j]",
            )
        ],
    )
    agree(scop, {"N": 14})


def test_large_values_stay_in_the_field() -> None:
    scop = build(
        "N",
        [("A", "N, N", "float32 inout"), ("y", "N", "float32 inout")],
        [
            (
                "[t, i, j] : 0 <= t < 8 and 0 <= i < N and 0 <= j < N",
                "[0, t, i, j]",
                "A[i, j] = A[i, j] * A[i, j] * 3.0",
            ),
            ("[i, k] : 0 <= i < N and 0 <= k < N", "[1, i, k]", "y[i] += A[i, k] * A[k, i]"),
            ("[i] : 1 <= i < N", "[2, i]", "y[i] = y[i] * y[i - 1]"),
        ],
    )
    given = inputs(scop, {"N": 5}, mode="exact")
    got = evaluate(scop, given, {"N": 5}, "exact")
    assert got["A"].dtype == np.int64 and np.abs(got["A"]).max() > 1000
    expected = interpret(scop, given, {"N": 5}, "exact")
    assert all(np.array_equal(got[n], expected[n]) for n in expected)


def test_uninterpreted_functions() -> None:
    scop = build(
        "N",
        [("x", "N", "float32 input"), ("y", "N", "float32 output")],
        [("[i] : 0 <= i < N", "[i]", "y[i] = call(f, x[i], i)")],
    )
    agree_with = {"f": lambda x, i: x + 10 * i}
    given = inputs(scop, {"N": 40})
    a = evaluate(scop, given, {"N": 40}, functions=agree_with)
    assert np.array_equal(a["y"], interpret(scop, given, {"N": 40}, functions=agree_with)["y"])
    with pytest.raises(UnsupportedError, match="uninterpreted function 'f'"):
        evaluate(scop, given, {"N": 40})


# -- refusals name the instance ---------------------------------------------------------------------------------------
@pytest.mark.parametrize("n", [4, 40])
def test_a_cell_that_nothing_has_written(n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("polyopt.ir._verify.unwritten_reads", lambda _scop: ())  # the verifier would refuse it
    scop = build(
        "N",
        [("y", "N", "float32 output")],
        [("[i] : 0 <= i < N and i != 2", "[i]", "y[i] = 1.0"), ("[i] : 1 <= i < N", "[N + i]", "y[i] += 2.0")],
    )
    with pytest.raises(
        InputError, match=r"S1\[i=2\] reads y\[2\], which nothing has written before \(y has role output\)"
    ):
        evaluate(scop, {}, {"N": n})


@pytest.mark.parametrize("n", [4, 40])
@pytest.mark.parametrize(
    "body",
    ["y[i] = x[n[i] + i//3]", "y[i] += x[n[i] + i//3] * x[i]", "y[n[i] + i//3] += x[i]", "y[n[i] + i//3] = x[i]"],
)
def test_a_subscript_outside(n: int, body: str) -> None:
    scop = build(
        "N",
        [("n", "N", "int32 input"), ("x", "N", "float32 input"), ("y", "N", "float32 inout")],
        [("[i] : 0 <= i < N", "[i]", body)],
    )
    given = {"n": np.zeros(n, np.int32), "x": np.ones(n, np.float32), "y": np.ones(n, np.float32)}
    given["n"][3] = n - 1
    with pytest.raises(InputError, match=rf"S0\[i=3\] accesses [xy]\[{n}\], but [xy] has shape \({n},\)"):
        evaluate(scop, given, {"N": n})


@pytest.mark.parametrize("run", [evaluate, interpret])
def test_an_ambiguous_order(run: Any) -> None:
    one = GEMM.statements[1]
    broken = type(one)(one.name, one.domain, one.order[:3], one.body)
    scop = type(GEMM)("p", GEMM.params, GEMM.context, GEMM.tensors, (GEMM.statements[0], broken))
    sizes = {"M": 2, "N": 3, "K": 4}
    with pytest.raises(
        InputError, match=r"the order of S1 does not say which comes first: S1\[0, 0, 0\] or S1\[0, 0, 1\]"
    ):
        run(scop, inputs(scop, sizes), sizes)


# -- speed ------------------------------------------------------------------------------------------------------------
def seconds(scop: Scop, sizes: Mapping[str, int]) -> float:
    given = inputs(scop, sizes)
    start = time.perf_counter()
    evaluate(scop, given, sizes)
    return time.perf_counter() - start


@pytest.mark.parametrize("scop", [GEMM, SCALAR_GEMM], ids=["gemm", "scalar_gemm"])
def test_large_products_are_fast(scop: Scop) -> None:
    """0.4 G multiply-adds: tenths of a second; the limit leaves room for a busy machine."""
    assert seconds(scop, {"M": 1000, "N": 777, "K": 513}) < 10


def test_results_of_large_products() -> None:
    sizes = {"M": 300, "N": 200, "K": 100}
    given = inputs(GEMM, sizes)
    got = evaluate(GEMM, given, sizes, round_outputs=False)["C"]
    assert np.allclose(got, given["A"].astype(float) @ given["B"].astype(float), rtol=0, atol=1e-12)


def test_every_plan_has_leaves_only_once() -> None:
    for scop, sizes, _ in PROGRAMS.values():
        names = [x.part.name for x in _plan.leaves(make_plan(scop, tuple(sorted(sizes.items())), False).root)]
        assert sorted(names) == sorted(s.name for s in scop.statements)
        assert isinstance(make_plan(scop, tuple(sorted(sizes.items())), False).root, (Block, Leaf, Repeat))
