"""Input arrays follow `init`, fit their use, and depend on seed and name alone."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from polyopt.errors import InputError
from polyopt.reference import evaluate, inputs, interpret
from tests.unit.reference._build import build

SCOP = build(
    "N",
    [
        ("A", "N, N", "float32 inout"),
        ("B", "N, N", "bfloat16 input", "uniform(2, 3)"),
        ("D", "N, N", "float64 input", "diagonally_dominant"),
        ("p", "N", "int32 input"),
        ("q", "N", "int16 input", "integers(5, 7)"),
        ("u", "N", "uint8 input"),
        ("b", "N", "bool input"),
        ("n", "N", "int32 input"),
        ("m", "N", "int64 input", "index(A, 1)"),
        ("x", "2*N", "float32 input"),
    ],
    [
        (
            "[i] : 0 <= i < N",
            "[i]",
            "A[n[i], i] = B[i, i] + D[i, i] + x[n[i] + 3] + x[n[i] + i] + p[i] + q[i] + u[i] + b[i] + A[i, m[i]]",
        )
    ],
)
SIZES = {"N": 20}


def test_ranges_and_types() -> None:
    got = inputs(SCOP, SIZES)
    assert set(got) == {"A", "B", "D", "p", "q", "u", "b", "n", "m", "x"}
    assert got["A"].dtype == np.float32 and np.abs(got["A"]).max() <= 1 and got["A"].std() > 0.3
    assert (
        got["B"].dtype == ml_dtypes.bfloat16 and 2 <= got["B"].astype(float).min() <= got["B"].astype(float).max() <= 3
    )
    assert set(got["p"].tolist()) <= set(range(-8, 8)) and got["p"].min() < 0
    assert set(got["q"].tolist()) == {5, 6} and got["q"].dtype == np.int16
    assert set(got["u"].tolist()) <= set(range(8)) and got["u"].dtype == np.uint8
    assert set(got["b"].tolist()) == {True, False}
    assert got["n"].min() >= 0 and got["n"].max() <= 20 - 1 and got["m"].max() <= 19
    assert got["n"].max() > 10, "n + 3 and n + i stay below 2 N for every n below N"
    interpret(SCOP, got, SIZES)


def test_diagonally_dominant_is_symmetric_and_positive_definite() -> None:
    d = inputs(SCOP, SIZES)["D"]
    assert np.array_equal(d, d.T)
    assert (2 * np.diag(d) > np.abs(d).sum(1)).all()
    assert np.linalg.eigvalsh(d).min() > 0


def test_deterministic_per_name_and_seed() -> None:
    first, again, other = inputs(SCOP, SIZES, 3), inputs(SCOP, SIZES, 3), inputs(SCOP, SIZES, 4)
    for name, array in first.items():
        assert np.array_equal(array, again[name])
    assert not np.array_equal(first["A"], other["A"])
    assert not np.array_equal(first["A"].ravel()[:20], first["x"][:20])


def test_exact_mode_gives_small_nonzero_integers() -> None:
    got = inputs(SCOP, SIZES, mode="exact")
    for name in ("A", "B", "D", "x"):
        assert got[name].dtype == np.int64
        assert set(got[name].ravel().tolist()) == {-3, -2, -1, 1, 2, 3}
    assert got["p"].dtype == np.int32
    a, b = interpret(SCOP, got, SIZES, "exact"), evaluate(SCOP, got, SIZES, "exact")
    assert np.array_equal(a["A"], b["A"])


def test_overrides() -> None:
    mine = np.full((20, 20), 0.5, np.float32)
    got = inputs(SCOP, SIZES, overrides={"A": mine})
    assert np.array_equal(got["A"], mine)
    assert np.array_equal(got["x"], inputs(SCOP, SIZES)["x"])
    with pytest.raises(InputError, match=r"A has shape \(3,\), expected \(20, 20\)"):
        inputs(SCOP, SIZES, overrides={"A": np.zeros(3)})
    with pytest.raises(InputError, match="takes no input 'z'"):
        inputs(SCOP, SIZES, overrides={"z": np.zeros(3)})


def test_no_index_fits() -> None:
    scop = build(
        "N",
        [("n", "N", "int32 input"), ("x", "N", "float32 input"), ("y", "N", "float32 output")],
        [("[i] : 0 <= i < N", "[i]", "y[i] = x[n[i] + i] + x[n[i] - i]")],
    )
    assert inputs(scop, {"N": 1})["n"].tolist() == [0]
    with pytest.raises(InputError, match="no value of n keeps all accesses through it inside"):
        inputs(scop, {"N": 3})
