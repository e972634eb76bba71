"""Counts of operations and compulsory bytes, against enumeration by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyopt.ir import Access, Apply, Assign, Const, Expr, Index, Indirect, Read, Scop, Statement, Tensor
from polyopt.machine import machine
from polyopt.report import compute_compulsory_bytes, compute_work, count_points
from polyopt.sets import Affine, Set, affine, var


def at(name: str, *subscripts: Affine | Indirect | int) -> Access:
    return Access(name, tuple(affine(s) if isinstance(s, int) else s for s in subscripts))


def mul(a: Expr, b: Expr) -> Expr:
    return Apply("*", (a, b))


def scop(params: list[str], tensors: list[Tensor], *statements: Statement) -> Scop:
    return Scop("p", tuple(params), Set.parse("", params=params), tuple(tensors), statements)


def tensor(name: str, role: str, *shape: Affine | int, dtype: str = "float32") -> Tensor:
    return Tensor(name, tuple(affine(s) for s in shape), dtype, role)


M, N, K, T = (var(n) for n in "MNKT")
i, j, k, t, n = (var(x) for x in "ijktn")


def matmul(dtype: str = "float32") -> Scop:
    params = ["M", "N", "K"]
    zero = Statement(
        "Z",
        Set.parse("[i, j] : 0 <= i < M and 0 <= j < N", name="Z", params=params),
        (i, j, affine(0)),
        Assign(at("C", i, j), Const(0.0)),
    )
    accumulate = Statement(
        "S",
        Set.parse("[i, j, k] : 0 <= i < M and 0 <= j < N and 0 <= k < K", name="S", params=params),
        (i, j, affine(1), k),
        Assign(at("C", i, j), mul(Read(at("A", i, k)), Read(at("B", k, j))), "+"),
    )
    tensors = [
        tensor("A", "input", M, K, dtype=dtype),
        tensor("B", "input", K, N, dtype=dtype),
        tensor("C", "output", M, N),
    ]
    return scop(params, tensors, zero, accumulate)


def test_matmul() -> None:
    work = compute_work(matmul("bfloat16"), machine("trn2"), {"M": 1000, "N": 777, "K": 513})
    assert work.flops == 2 * 1000 * 777 * 513
    assert work.multiply_adds == 1000 * 777 * 513
    assert work.dtype == "bfloat16"
    assert work.compulsory_bytes == 2 * (1000 * 513 + 513 * 777) + 4 * 1000 * 777


def test_no_points() -> None:
    work = compute_work(matmul(), machine("trn2"), {"M": 3, "N": 0, "K": 5})
    assert (work.flops, work.compulsory_bytes, work.dtype) == (0, 0, "float32")


def test_only_live_in_cells_of_an_inout_are_read() -> None:
    """for t: for i in 1..N-2: A[(t+1)%2, i] = A[t%2, i-1] + A[t%2, i+1]"""
    domain = Set.parse("[t, i] : 0 <= t < T and 1 <= i < N - 1", name="S", params=["T", "N"])
    body = Apply("+", (Read(at("A", t % 2, i - 1)), Read(at("A", t % 2, i + 1))))
    s = Statement("S", domain, (t, i), Assign(at("A", (t + 1) % 2, i), body))
    heat = scop(["T", "N"], [tensor("A", "inout", 2, N)], s)
    for steps in (1, 2, 3, 4):
        read: set[tuple[int, int]] = set()
        written: set[tuple[int, int]] = set()
        for time in range(steps):
            for place in range(1, 10):
                read |= {(time % 2, place + d) for d in (-1, 1)} - written
                written.add(((time + 1) % 2, place))
        assert compute_compulsory_bytes(heat, {"T": steps, "N": 11}) == 4 * (len(read) + len(written))


def test_operations_that_count() -> None:
    """`2.0*3.0` is folded and an index is no operation; casts are not counted."""
    value = Apply(
        "select", (Apply("<", (Read(at("x", i)), Index(i))), Apply("exp", (Read(at("x", i)),)), mul(Const(2), Const(3)))
    )
    s = Statement("S", Set.parse("[i] : 0 <= i < N", name="S", params=["N"]), (i,), Assign(at("y", i), value, "max"))
    program = scop(["N"], [tensor("x", "input", N), tensor("y", "inout", N)], s)
    assert compute_work(program, machine("trn2"), {"N": 10}).flops == 10 * 4


@pytest.mark.parametrize("rows", [[0, 0, 0, 0], [3, 1, 3, 2]])
def test_gather_touches_what_the_indices_say(rows: list[int]) -> None:
    domain = Set.parse("[n, j] : 0 <= n < N and 0 <= j < K", name="S", params=["N", "K"])
    s = Statement("S", domain, (n, j), Assign(at("y", n, j), Read(at("x", Indirect(at("idx", n)), j))))
    tensors = [tensor("x", "input", 9, K), tensor("idx", "input", N, dtype="int32"), tensor("y", "output", N, K)]
    program = scop(["N", "K"], tensors, s)
    sizes = {"N": 4, "K": 5}
    known = 4 * 4 + 4 * 4 * 5
    assert compute_compulsory_bytes(program, sizes, {"idx": np.array(rows)}) == known + 4 * 5 * len(set(rows))
    assert compute_compulsory_bytes(program, sizes) == known + 4


@given(
    st.integers(0, 6),
    st.integers(0, 6),
    st.sampled_from(["j <= i", "j < n", "2*j >= i and k <= j", "(i + j) % 2 = 0", "j < i or j > i"]),
)
def test_count_is_the_number_of_points(size: int, other: int, extra: str) -> None:
    text = f"[i, j, k] : 0 <= i < n and 0 <= j < 4 and 0 <= k < m and ({extra})"
    points = Set.parse(text, name="S", params=["n", "m"])
    sizes = {"n": size, "m": other}
    assert count_points(points, sizes) == len(points.points(sizes))


def test_count_without_dims() -> None:
    assert count_points(Set.parse("[] : N > 2", params=["N"]), {"N": 3}) == 1
    assert count_points(Set.parse("[] : N > 2", params=["N"]), {"N": 2}) == 0
