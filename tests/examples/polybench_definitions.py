"""What the thirty programs compute, written with matrices and vectors: independent of their loops."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Arrays = dict[str, Array]
Definition = Callable[[Arrays, Mapping[str, int]], Arrays]


def correlation(a: Arrays, _: Mapping[str, int]) -> Arrays:
    data = a["data"]
    mean = data.mean(axis=0)
    stddev = data.std(axis=0)
    stddev = np.where(stddev <= 0.1, 1.0, stddev)
    scaled = (data - mean) / (math.sqrt(len(data)) * stddev)
    corr = scaled.T @ scaled
    np.fill_diagonal(corr, 1.0)
    return {"mean": mean, "stddev": stddev, "data": scaled, "corr": corr}


def covariance(a: Arrays, _: Mapping[str, int]) -> Arrays:
    data = a["data"]
    centred = data - data.mean(axis=0)
    return {"mean": data.mean(axis=0), "data": centred, "cov": np.cov(data, rowvar=False)}


def gemm(a: Arrays, _: Mapping[str, int]) -> Arrays:
    return {"C": a["alpha"] * a["A"] @ a["B"] + a["beta"] * a["C"]}


def gemver(a: Arrays, _: Mapping[str, int]) -> Arrays:
    matrix = a["A"] + np.outer(a["u1"], a["v1"]) + np.outer(a["u2"], a["v2"])
    x = a["x"] + a["beta"] * matrix.T @ a["y"] + a["z"]
    return {"A": matrix, "x": x, "w": a["w"] + a["alpha"] * matrix @ x}


def gesummv(a: Arrays, _: Mapping[str, int]) -> Arrays:
    return {"y": (a["alpha"] * a["A"] + a["beta"] * a["B"]) @ a["x"]}


def symm(a: Arrays, _: Mapping[str, int]) -> Arrays:
    full = np.tril(a["A"]) + np.tril(a["A"], -1).T
    return {"C": a["alpha"] * full @ a["B"] + a["beta"] * a["C"]}


def _lower(c: Array, new: Array) -> Array:
    return np.where(np.tri(len(c), dtype=bool), new, c)


def syr2k(a: Arrays, _: Mapping[str, int]) -> Arrays:
    cross = a["A"] @ a["B"].T
    return {"C": _lower(a["C"], a["alpha"] * (cross + cross.T) + a["beta"] * a["C"])}


def syrk(a: Arrays, _: Mapping[str, int]) -> Arrays:
    return {"C": _lower(a["C"], a["alpha"] * a["A"] @ a["A"].T + a["beta"] * a["C"])}


def trmm(a: Arrays, _: Mapping[str, int]) -> Arrays:
    unit = np.tril(a["A"], -1) + np.eye(len(a["A"]))
    return {"B": a["alpha"] * unit.T @ a["B"]}


def two_mm(a: Arrays, _: Mapping[str, int]) -> Arrays:
    first = a["alpha"] * a["A"] @ a["B"]
    return {"E": first, "D": first @ a["C"] + a["beta"] * a["D"]}


def three_mm(a: Arrays, _: Mapping[str, int]) -> Arrays:
    return {"E": a["A"] @ a["B"], "F": a["C"] @ a["D"], "G": np.linalg.multi_dot([a["A"], a["B"], a["C"], a["D"]])}


def atax(a: Arrays, _: Mapping[str, int]) -> Arrays:
    return {"Ax": a["A"] @ a["x"], "y": a["A"].T @ (a["A"] @ a["x"])}


def bicg(a: Arrays, _: Mapping[str, int]) -> Arrays:
    return {"s": a["A"].T @ a["r"], "q": a["A"] @ a["p"]}


def doitgen(a: Arrays, _: Mapping[str, int]) -> Arrays:
    return {"A": np.einsum("rqs,sp->rqp", a["A"], a["C"])}


def mvt(a: Arrays, _: Mapping[str, int]) -> Arrays:
    return {"x1": a["x1"] + a["A"] @ a["y1"], "x2": a["x2"] + a["A"].T @ a["y2"]}


def cholesky(a: Arrays, _: Mapping[str, int]) -> Arrays:
    symmetric = np.tril(a["A"]) + np.tril(a["A"], -1).T
    return {"A": _lower(a["A"], np.linalg.cholesky(symmetric))}


def durbin(a: Arrays, at: Mapping[str, int]) -> Arrays:
    r, n = a["r"], at["N"]
    first = np.concatenate([[1.0], r[: n - 1]])
    toeplitz = first[np.abs(np.subtract.outer(np.arange(n), np.arange(n)))]
    return {"y": np.linalg.solve(toeplitz, -r)}


def gramschmidt(a: Arrays, _: Mapping[str, int]) -> Arrays:
    q, r = np.linalg.qr(a["A"])
    signs = np.sign(np.diag(r))
    return {"Q": q * signs, "R": np.triu(signs[:, None] * r), "A": q * np.diag(r)}


def _lu(matrix: Array) -> Array:
    done: Array = matrix.copy()
    for k in range(len(done)):
        done[k + 1 :, k] /= done[k, k]
        done[k + 1 :, k + 1 :] -= np.outer(done[k + 1 :, k], done[k, k + 1 :])
    return done


def lu(a: Arrays, _: Mapping[str, int]) -> Arrays:
    return {"A": _lu(a["A"])}


def ludcmp(a: Arrays, _: Mapping[str, int]) -> Arrays:
    factors = _lu(a["A"])
    y = np.linalg.solve(np.tril(factors, -1) + np.eye(len(factors)), a["b"])
    return {"A": factors, "y": y, "x": np.linalg.solve(a["A"], a["b"])}


def trisolv(a: Arrays, _: Mapping[str, int]) -> Arrays:
    return {"x": np.linalg.solve(np.tril(a["L"]), a["b"])}


def _recursion(x: Array, now: float, before: float, b1: float, b2: float) -> Array:
    """y[j] = now*x[j] + before*x[j - 1] + b1*y[j - 1] + b2*y[j - 2] along the last axis, by its impulse response."""
    n = x.shape[-1]
    response = np.zeros(n)
    for j in range(n):
        response[j] = now * (j == 0) + before * (j == 1)
        response[j] += (b1 * response[j - 1] if j >= 1 else 0.0) + (b2 * response[j - 2] if j >= 2 else 0.0)
    lags = np.subtract.outer(np.arange(n), np.arange(n))
    return np.asarray(x @ np.where(lags >= 0, response[np.abs(lags)], 0.0).T)


def deriche(a: Arrays, _: Mapping[str, int]) -> Arrays:
    alpha = float(a["alpha"])
    e = math.exp(-alpha)
    k = (1 - e) ** 2 / (1 + 2 * alpha * e - math.exp(2 * alpha))
    b1, b2 = 2.0**-alpha, -math.exp(-2 * alpha)

    def both_ways(x: Array) -> Array:
        forward = _recursion(x, k, k * e * (alpha - 1), b1, b2)
        late = np.concatenate([np.zeros((len(x), 1)), x[:, :0:-1]], axis=1)  # backwards, one behind
        backward = _recursion(late, k * e * (alpha + 1), -k * e * e, b1, b2)
        return np.asarray(forward + backward[:, ::-1])

    return {"out": both_ways(both_ways(a["image"]).T).T}


def floyd_warshall(a: Arrays, _: Mapping[str, int]) -> Arrays:
    path = a["path"].copy()
    for k in range(len(path)):
        path = np.minimum(path, path[:, k, None] + path[None, k, :])
    return {"path": path}


def nussinov(a: Arrays, at: Mapping[str, int]) -> Arrays:
    """By growing parts of the sequence instead of falling begins."""
    table, seq, n = a["table"].copy(), a["seq"], at["N"]
    for span in range(1, n):
        for i in range(n - span):
            j = i + span
            pair = int(span > 1 and seq[i] + seq[j] == 3)
            best = [table[i, j], table[i, j - 1], table[i + 1, j], table[i + 1, j - 1] + pair]
            table[i, j] = max(best + [table[i, k] + table[k + 1, j] for k in range(i + 1, j)])
    return {"table": table}


def adi(a: Arrays, at: Mapping[str, int]) -> Arrays:
    n, steps, u = at["N"], at["T"], a["u"].copy()
    lam = n * n / steps

    def implicit(weight: float, right: Array) -> Array:
        """Inner points of (-w, 1 + 2w, -w)*x = right between two ends of 1, for each row of `right`."""
        m = n - 2
        matrix = np.diag(np.full(m, 1 + 2 * weight)) - weight * (np.eye(m, k=1) + np.eye(m, k=-1))
        ends = right.copy()
        ends[:, 0] += weight
        ends[:, -1] += weight
        return np.asarray(np.linalg.solve(matrix, ends.T).T)

    for _ in range(steps):
        v = np.ones((n, n))
        # v's columns from u's rows: explicit with half the weight across
        explicit = u[1:-1, 1:-1] + 0.5 * lam * (u[1:-1, :-2] - 2 * u[1:-1, 1:-1] + u[1:-1, 2:])
        v[1:-1, 1:-1] = implicit(lam, explicit.T).T
        explicit = v[1:-1, 1:-1] + lam * (v[:-2, 1:-1] - 2 * v[1:-1, 1:-1] + v[2:, 1:-1])
        u[1:-1, 0] = u[1:-1, -1] = 1.0
        u[1:-1, 1:-1] = implicit(0.5 * lam, explicit)
    return {"u": u}


def fdtd_2d(a: Arrays, at: Mapping[str, int]) -> Arrays:
    ex, ey, hz = (a[k].copy() for k in ("ex", "ey", "hz"))
    for t in range(at["T"]):
        ey[0] = a["source"][t]
        ey[1:] -= 0.5 * np.diff(hz, axis=0)
        ex[:, 1:] -= 0.5 * np.diff(hz, axis=1)
        hz[:-1, :-1] -= 0.7 * (np.diff(ex, axis=1)[:-1] + np.diff(ey, axis=0)[:, :-1])
    return {"ex": ex, "ey": ey, "hz": hz}


def heat_3d(a: Arrays, at: Mapping[str, int]) -> Arrays:
    first, second = a["A"].copy(), a["B"].copy()
    inner = (slice(1, -1),) * 3

    def step(source: Array, target: Array) -> None:
        total = source[inner].copy()
        for axis in range(3):
            curve = np.diff(source, n=2, axis=axis)
            total += 0.125 * curve[tuple(slice(None) if k == axis else slice(1, -1) for k in range(3))]
        target[inner] = total

    for _ in range(at["T"]):
        step(first, second)
        step(second, first)
    return {"A": first, "B": second}


def jacobi_1d(a: Arrays, at: Mapping[str, int]) -> Arrays:
    first, second = a["A"].copy(), a["B"].copy()
    for _ in range(at["T"]):
        for source, target in ((first, second), (second, first)):
            target[1:-1] = 0.33333 * np.convolve(source, np.ones(3), "valid")
    return {"A": first, "B": second}


def jacobi_2d(a: Arrays, at: Mapping[str, int]) -> Arrays:
    first, second = a["A"].copy(), a["B"].copy()
    for _ in range(at["T"]):
        for s, target in ((first, second), (second, first)):
            target[1:-1, 1:-1] = 0.2 * (s[1:-1, 1:-1] + s[1:-1, :-2] + s[1:-1, 2:] + s[2:, 1:-1] + s[:-2, 1:-1])
    return {"A": first, "B": second}


def seidel_2d(a: Arrays, at: Mapping[str, int]) -> Arrays:
    field = a["A"].copy()
    n = at["N"]
    for _ in range(at["T"]):
        for i in range(1, n - 1):
            rest = field[i - 1 : i + 2].sum(axis=0) - field[i]  # the rows above and below
            known = rest[:-2] + rest[1:-1] + rest[2:] + field[i, 1:-1] + field[i, 2:]
            # x[j] = (known[j] + x[j - 1])/9: powers of 1/9 carry the row's new values
            powers = 9.0 ** -np.subtract.outer(np.arange(n - 2), np.arange(n - 2)).clip(-1)
            carried = np.tril(powers) @ (known / 9.0)
            field[i, 1:-1] = carried + field[i, 0] * 9.0 ** -np.arange(1, n - 1)
    return {"A": field}


DEFINITIONS: dict[str, Definition] = {
    f.__name__: f
    for f in (
        *(correlation, covariance, gemm, gemver, gesummv, symm, syr2k, syrk, trmm, two_mm, three_mm, atax, bicg),
        *(doitgen, mvt, cholesky, durbin, gramschmidt, lu, ludcmp, trisolv, deriche, floyd_warshall, nussinov),
        *(adi, fdtd_2d, heat_3d, jacobi_1d, jacobi_2d, seidel_2d),
    )
}
