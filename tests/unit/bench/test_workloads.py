"""Every workload of the suite `main` against numpy, through the reference, at small and odd sizes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from polyopt.bench import SUITES, Workload
from polyopt.reference import evaluate, inputs, interpret

Array = npt.NDArray[Any]
Arrays = Mapping[str, Array]


def softmax_rows(S: Array) -> Array:
    e = np.exp(S - S.max(-1, keepdims=True))
    weights: Array = e / e.sum(-1, keepdims=True)
    return weights


def causal(S: Array) -> Array:
    return softmax_rows(np.where(np.tril(np.ones(S.shape[-2:], bool)), S, -np.inf))


def silu(x: Array) -> Array:
    y: Array = x / (1 + np.exp(-x))
    return y


def mlp(x: Array, a: Arrays) -> Array:
    y: Array = (silu(x @ a["gate"]) * (x @ a["up"])) @ a["down"]
    return y


def conv(X: Array, F: Array) -> Array:
    padded = np.pad(X, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))[:, :, ::2, ::2]
    y: Array = np.einsum("bchwrs,dcrs->bdhw", windows, F)
    return y


def depthwise(X: Array, F: Array) -> Array:
    y: Array = np.einsum("chwrs,crs->chw", np.lib.stride_tricks.sliding_window_view(X, (3, 3), (1, 2)), F)
    return y


def layer_norm(a: Arrays) -> Array:
    centred = a["X"] - a["X"].mean(1, keepdims=True)
    y: Array = centred / np.sqrt((centred**2).mean(1, keepdims=True) + 1e-5) * a["gain"] + a["bias"]
    return y


def attention(a: Arrays) -> Array:
    y: Array = causal(a["Q"] @ a["K"].swapaxes(1, 2) * 0.125) @ a["V"]
    return y


def rms_norm(x: Array, gain: Array) -> Array:
    y: Array = x / np.sqrt((x**2).mean(1, keepdims=True) + 1e-5) * gain
    return y


def rotate(x: Array, a: Arrays) -> Array:
    low, high = x[..., :32], x[..., 32:]
    c, s = a["cosine"][:, None], a["sine"][:, None]
    return np.concatenate([low * c - high * s, high * c + low * s], -1)


def llama_block(a: Arrays) -> Array:
    n = rms_norm(a["X"], a["norm1"])
    q, k, v = (np.einsum("te,ehd->thd", n, a[w]) for w in ("wq", "wk", "wv"))
    k, v = np.repeat(rotate(k, a), 2, axis=1), np.repeat(v, 2, axis=1)
    scores = causal(np.einsum("ihd,jhd->hij", rotate(q, a), k) * 0.125)
    r = a["X"] + np.einsum("hij,jhd,hde->ie", scores, v, a["wo"])
    y: Array = r + mlp(rms_norm(r, a["norm2"]), a)
    return y


def jacobi(a: Arrays, steps: int) -> dict[str, Array]:
    A, B = a["A"].copy(), a["A"].copy()
    for _ in range(steps):
        for source, sink in ((A, B), (B, A)):
            inner = source[1:-1, 1:-1] + source[1:-1, :-2] + source[1:-1, 2:] + source[2:, 1:-1] + source[:-2, 1:-1]
            sink[1:-1, 1:-1] = 0.2 * inner
    return {"A": A}


def lu(A: Array) -> Array:
    A = A.copy()
    for k in range(len(A)):
        A[k + 1 :, k] /= A[k, k]
        A[k + 1 :, k + 1 :] -= np.outer(A[k + 1 :, k], A[k, k + 1 :])
    return A


def max_pool(X: Array) -> Array:
    y: Array = np.lib.stride_tricks.sliding_window_view(X, (3, 3), (1, 2))[:, ::2, ::2].max((3, 4))
    return y


Sizes = dict[str, int]
ORACLES: dict[str, tuple[Sizes, Callable[[Arrays, Sizes], Arrays]]] = {
    "matmul": ({"M": 5, "N": 7, "K": 3}, lambda a, _: {"C": a["A"] @ a["B"]}),
    "batched-matmul": ({"B": 3, "M": 5, "N": 2, "K": 4}, lambda a, _: {"C": a["A"] @ a["X"]}),
    "conv2d": ({"B": 2, "C": 3, "D": 4, "H": 3, "W": 2}, lambda a, _: {"Y": conv(a["X"], a["F"])}),
    "depthwise-conv": ({"C": 3, "H": 4, "W": 5}, lambda a, _: {"Y": depthwise(a["X"], a["F"])}),
    "softmax": ({"M": 5, "N": 9}, lambda a, _: {"Y": softmax_rows(a["X"])}),
    "layer-norm": ({"M": 5, "N": 9}, lambda a, _: {"Y": layer_norm(a)}),
    "attention": ({"H": 2, "T": 7}, lambda a, _: {"Y": attention(a)}),
    "swiglu": ({"M": 5, "D": 3, "F": 7}, lambda a, _: {"Y": mlp(a["X"], a)}),
    "llama-block": ({"T": 5, "F": 9}, lambda a, _: {"Y": llama_block(a)}),
    "jacobi-2d": ({"N": 7, "T": 3}, lambda a, s: jacobi(a, s["T"])),
    "triangular-solve": ({"N": 6, "R": 4}, lambda a, _: {"X": np.linalg.solve(np.tril(a["L"]), a["B"])}),
    "lu": ({"N": 6}, lambda a, _: {"A": lu(a["A"])}),
    "embedding-bag": ({"V": 9, "D": 3, "B": 4, "L": 5}, lambda a, _: {"Y": a["table"][a["words"]].sum(1)}),
    "max-pool": ({"C": 3, "H": 4, "W": 2}, lambda a, _: {"Y": max_pool(a["X"])}),
    "prefix-sum": ({"M": 3, "N": 8}, lambda a, _: {"Y": np.cumsum(a["X"], 1)}),
}


def test_every_workload_has_an_oracle() -> None:
    assert list(ORACLES) == [w.name for w in SUITES["main"]]


@pytest.mark.parametrize("workload", SUITES["main"], ids=lambda w: w.name)
def test_against_numpy(workload: Workload) -> None:
    sizes, oracle = ORACLES[workload.name]
    scop = workload.scop()
    assert set(sizes) == set(scop.params) == set(workload.sizes)
    arrays = inputs(scop, sizes, seed=3)
    wide = {n: a.astype(np.float64) if a.dtype.kind == "f" else a for n, a in arrays.items()}
    expected = oracle(wide, sizes)
    found = evaluate(scop, arrays, sizes, round_outputs=False)
    assert set(found) == set(expected)
    for name in expected:
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("workload", SUITES["main"], ids=lambda w: w.name)
def test_both_references_agree(workload: Workload) -> None:
    scop = workload.scop()
    sizes = dict.fromkeys(scop.params, 1 if workload.name == "llama-block" else 3)
    arrays = inputs(scop, sizes, seed=1, mode="exact")
    slow, fast = interpret(scop, arrays, sizes, "exact"), evaluate(scop, arrays, sizes, "exact")
    for name in slow:
        np.testing.assert_array_equal(slow[name], fast[name])
