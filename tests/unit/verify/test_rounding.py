"""Error bounds: never exceeded by what a machine may do, not far above it, and exact where nothing is rounded."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

from polyopt.reference import evaluate, inputs
from polyopt.verify import error_bounds, values_and_bounds
from tests.unit.reference._build import build

Array = npt.NDArray[Any]
F = np.float32


def gemm(dtype: str, out: str, reassociate: bool = True) -> Any:
    return build(
        "M, N, K",
        [("A", "M, K", f"{dtype} input"), ("B", "K, N", f"{dtype} input"), ("C", "M, N", f"{out} output")],
        [
            ("[i, j] : 0 <= i < M and 0 <= j < N", "[i, j, 0]", "C[i, j] = 0.0"),
            ("[i, j, k] : 0 <= i < M and 0 <= j < N and 0 <= k < K", "[i, j, 1, k]", "C[i, j] += A[i, k] * B[k, j]"),
        ],
        reassociate=reassociate,
    )


def in_order(terms: Array, kind: Any) -> Array:
    total = np.zeros(terms.shape[:2], kind)
    for k in range(terms.shape[2]):
        total = (total.astype(F) + terms[:, :, k].astype(F)).astype(kind)
    return total


def backwards(terms: Array, kind: Any) -> Array:
    return in_order(terms[:, :, ::-1], kind)


def pairwise(terms: Array, kind: Any) -> Array:
    while terms.shape[2] > 1:
        half = (terms.shape[2] + 1) // 2
        low, high = terms[:, :, :half].copy(), terms[:, :, half:]
        low[:, :, : high.shape[2]] = (low[:, :, : high.shape[2]] + high).astype(kind)
        terms = low
    return terms[:, :, 0]


def largest_first(terms: Array, kind: Any) -> Array:
    order = np.argsort(-np.abs(terms.astype(F)), axis=2)
    return in_order(np.take_along_axis(terms, order, 2), kind)


@pytest.mark.parametrize("order", [in_order, backwards, pairwise, largest_first])
@pytest.mark.parametrize("spread", [0, 6])
def test_sums_in_any_order(order: Callable[[Array, Any], Array], spread: int) -> None:
    sizes = {"M": 6, "N": 7, "K": 1024}
    scop = gemm("float32", "float32")
    given = inputs(scop, sizes)
    rng = np.random.default_rng(1)
    given["A"] = (given["A"] * 10.0 ** rng.uniform(-spread, spread, given["A"].shape)).astype(F)
    bound = error_bounds(scop, given, sizes)["C"]
    terms = given["A"][:, None, :] * given["B"].T[None, :, :]
    error = np.abs(order(terms, F).astype(float) - evaluate(scop, given, sizes)["C"].astype(float))
    assert (error <= bound).all()
    assert np.isfinite(bound).all()


def test_how_large_the_bound_is() -> None:
    """n u sum|terms| for the sum of n terms, u sum|terms| for the products, and the rounding of the reference."""
    sizes = {"M": 20, "N": 20, "K": 1024}
    scop = gemm("float32", "float32")
    given = inputs(scop, sizes)
    bound = error_bounds(scop, given, sizes)["C"]
    terms = np.abs(given["A"]).astype(float) @ np.abs(given["B"]).astype(float)
    own = 2.0**-24 * np.abs(evaluate(scop, given, sizes)["C"].astype(float))
    assert (bound <= 1.001 * (1025 * 2.0**-24 * terms + own)).all()
    assert (bound >= 1024 * 2.0**-24 * terms).all()


@pytest.mark.parametrize(("terms", "wanted"), [(128, 25), (512, 30)])
def test_accumulating_in_bfloat16_is_noticed(terms: int, wanted: int) -> None:
    sizes = {"M": 4, "N": 4, "K": terms}
    scop = gemm("bfloat16", "float32")
    noticed = 0
    for seed in range(30):
        given = inputs(scop, sizes, seed)
        a, b = given["A"].astype(F), given["B"].astype(F)
        products = a[:, None, :] * b.T[None, :, :]
        expected = evaluate(scop, given, sizes)["C"].astype(float)
        bound = error_bounds(scop, given, sizes)["C"]
        assert (np.abs(in_order(products, F) - expected) <= bound).all()
        noticed += bool((np.abs(in_order(products, ml_dtypes.bfloat16).astype(float) - expected) > bound).any())
    assert noticed >= wanted


def test_accumulation_follows_the_axiom() -> None:
    """Without `reassociate` a bfloat16 sum is rounded at every step; with it, once."""
    sizes = {"M": 5, "N": 5, "K": 64}
    loose, tight = gemm("bfloat16", "bfloat16", False), gemm("bfloat16", "bfloat16", True)
    given = inputs(loose, sizes)
    products = given["A"].astype(F)[:, None, :] * given["B"].astype(F).T[None, :, :]
    expected = evaluate(loose, given, sizes)["C"].astype(float)
    narrow = np.abs(in_order(products, ml_dtypes.bfloat16).astype(float) - expected)
    wide = np.abs(in_order(products, F).astype(ml_dtypes.bfloat16).astype(float) - expected)
    assert (narrow <= error_bounds(loose, given, sizes)["C"]).all()
    assert (wide <= error_bounds(tight, given, sizes)["C"]).all()
    assert (error_bounds(tight, given, sizes)["C"] < error_bounds(loose, given, sizes)["C"]).all()
    assert (narrow > error_bounds(tight, given, sizes)["C"]).any()


def bounds_of(
    body: str, given: Mapping[str, Any], *, out: str = "float32", dtype: str = "float32"
) -> tuple[Array, Array]:
    scop = build(
        "N",
        [("x", "N", f"{dtype} input"), ("y", "N", f"{dtype} input"), ("z", "N", f"{out} output")],
        [("[i] : 0 <= i < N", "[i]", body)],
    )
    n = len(given["x"])
    arrays = {"x": np.asarray(given["x"]), "y": np.asarray(given.get("y", np.ones(n)))}
    return tuple(d["z"] for d in values_and_bounds(scop, arrays, {"N": n}))  # type: ignore[return-value]


@pytest.mark.parametrize(
    "body", ["z[i] = x[i]", "z[i] = -x[i]", "z[i] = abs(x[i])", "z[i] = max(x[i], y[i])", "z[i] = relu(x[i])"]
)
def test_nothing_is_rounded(body: str) -> None:
    _, bound = bounds_of(body, {"x": [0.1, -0.7, 3e38]})
    assert (bound == 0).all()


def test_reference_and_run_round_the_same_number() -> None:
    """A float32 value stored to bfloat16 is rounded by both; after an inexact operation they may round differently."""
    given = {"x": [0.1, 1.001, 0.5]}
    assert (bounds_of("z[i] = x[i]", given, out="bfloat16")[1] == 0).all()
    _, computed = bounds_of("z[i] = x[i] * 1.1", given, out="bfloat16")
    assert (computed >= 2.0**-8 * np.array([0.11, 1.1, 0.55])).all()
    assert (computed <= 2.01 * 2.0**-8 * np.array([0.11, 1.1, 0.55])).all()
    scop = build(
        "",
        [("x", "", "float32 input"), ("t", "", "bfloat16 temp"), ("z", "", "float32 output")],
        [("[] : 1 = 1", "[0]", "t[()] = x[()]"), ("[] : 1 = 1", "[1]", "z[()] = t[()]")],
    )
    x = np.array(1.001, F)
    rounded = abs(float(x.astype(ml_dtypes.bfloat16)) - float(x))
    assert error_bounds(scop, {"x": x}, {})["z"] == pytest.approx(rounded, abs=2.0**-23)


def test_one_addition() -> None:
    value, bound = bounds_of("z[i] = x[i] + y[i]", {"x": [1.0, 1e-3], "y": [1e-9, 1e3]})
    assert (bound >= 2.0**-25 * np.abs(value)).all()
    assert (bound <= 2.0**-22 * np.abs(value)).all()


def test_cancellation_keeps_the_absolute_error() -> None:
    _, bound = bounds_of("z[i] = (x[i] + y[i]) - x[i]", {"x": [1e6], "y": [1e-3]})
    assert 1e6 * 2.0**-24 <= bound[0] <= 1e6 * 2.0**-22


def test_masks_of_infinities_stay_finite() -> None:
    scop = build(
        "N",
        [
            ("s", "N, N", "float32 input"),
            ("m", "N", "float32 temp"),
            ("d", "N", "float32 temp"),
            ("p", "N, N", "float32 output"),
        ],
        [
            ("[i] : 0 <= i < N", "[0, i]", "m[i] = -inf"),
            ("[i, j] : 0 <= i < N and 0 <= j < N", "[1, i, j]", "m[i] = max(m[i], s[i, j] if j <= i else -inf)"),
            ("[i] : 0 <= i < N", "[2, i]", "d[i] = 0.0"),
            ("[i, j] : 0 <= i < N and 0 <= j < N", "[3, i, j]", "d[i] += exp((s[i, j] if j <= i else -inf) - m[i])"),
            (
                "[i, j] : 0 <= i < N and 0 <= j < N",
                "[4, i, j]",
                "p[i, j] = exp((s[i, j] if j <= i else -inf) - m[i]) / d[i]",
            ),
        ],
        reassociate=True,
    )
    values, bounds = values_and_bounds(scop, inputs(scop, {"N": 20}), {"N": 20})
    assert np.allclose(values["p"].sum(1), 1)
    assert (bounds["p"] < 1e-5).all()
    assert (bounds["p"][~np.tri(20, dtype=bool)] < 1e-30).all()


def test_a_finite_mask_of_the_smallest_number_does_not_overflow() -> None:
    low = float(np.finfo(F).min)
    _, bound = bounds_of(f"z[i] = exp((x[i] + y[i]) * 1.5 + ({low}) - 0.25)", {"x": [0.1, 3.0], "y": [0.7, 0.1]})
    assert (bound < 1e-30).all()


@pytest.mark.parametrize(
    "body",
    [
        "z[i] = 1.0 / (x[i] - y[i])",
        "z[i] = sqrt(x[i] * 3.0 - y[i] * 3.0)",
        "z[i] = (x[i] * 3e38) * 10.0",
        "z[i] = log(x[i] - 5.0)",
    ],
)
def test_where_nothing_is_known_the_bound_is_infinite(body: str) -> None:
    _, bound = bounds_of(body, {"x": [1.1], "y": [1.1]})
    assert np.isposinf(bound).all()


def test_a_comparison_in_doubt_takes_both_branches() -> None:
    body = "z[i] = 1.0 if x[i] * y[i] < 0.33 else 5.0"
    value, bound = bounds_of(body, {"x": [0.33 / 1.1, 0.1, 0.9], "y": [1.1, 1.1, 1.1]})
    assert bound[0] >= 4.0
    assert value[1:].tolist() == [1.0, 5.0]
    assert (bound[1:] == 0).all()


def test_integers_from_floats_may_differ_by_one_step() -> None:
    value, bound = bounds_of("z[i] = x[i] * y[i]", {"x": [3.0, 0.5], "y": [1 / 3, 5.0]}, out="int32")
    assert bound.tolist() == [1.0, 0.0]
    assert value.tolist() in ([1, 2], [0, 2])


def test_a_subscript_in_doubt_says_nothing_about_what_it_reads() -> None:
    scop = build(
        "N",
        [
            ("x", "N", "float32 input"),
            ("n", "N", "int32 temp"),
            ("z", "N", "float32 output"),
            ("h", "N", "float32 inout"),
        ],
        [
            ("[i] : 0 <= i < N", "[0, i]", "n[i] = x[i] * 3.0"),
            ("[i] : 0 <= i < N", "[1, i]", "z[i] = x[n[i]]"),
            ("[i] : 0 <= i < N", "[2, i]", "h[n[i]] += 1.0"),
        ],
    )
    given = {"x": np.array([1 / 3, 0.5, 0.1], F), "h": np.zeros(3, F)}
    bounds = error_bounds(scop, given, {"N": 3})
    assert np.isposinf(bounds["z"]).tolist() == [True, False, False]
    assert np.isposinf(bounds["h"]).all()


def test_double_precision_programs_get_double_precision_bounds() -> None:
    _, single = bounds_of("z[i] = x[i] * y[i] + 1.0", {"x": [0.3], "y": [0.7]})
    _, double = bounds_of("z[i] = x[i] * y[i] + 1.0", {"x": [0.3], "y": [0.7]}, dtype="float64", out="float64")
    assert double[0] < 1e-14 < 1e-8 < single[0] < 1e-6


def test_bounds_grow_with_the_number_of_steps() -> None:
    body = "A[(t + 1) % 2, i] = 0.3*A[t % 2, i - 1] + 0.4*A[t % 2, i] + 0.3*A[t % 2, i + 1]"
    scop = build("T, N", [("A", "2, N", "float32 inout")], [("[t, i] : 0 <= t < T and 1 <= i < N - 1", "[t, i]", body)])
    tops = [error_bounds(scop, inputs(scop, {"T": t, "N": 50}), {"T": t, "N": 50})["A"].max() for t in (2, 20, 200)]
    assert tops[0] < tops[1] < tops[2] < 1e-4


@pytest.mark.parametrize("values", [0, 1])
def test_values_are_those_of_the_reference(values: int) -> None:
    sizes = {"M": 6, "N": 7, "K": 30}
    scop = gemm("float32", "bfloat16")
    given = inputs(scop, sizes, values)
    got, bounds = values_and_bounds(scop, given, sizes)
    assert np.array_equal(got["C"], evaluate(scop, given, sizes, round_outputs=False)["C"])
    assert np.array_equal(bounds["C"], error_bounds(scop, given, sizes)["C"])
