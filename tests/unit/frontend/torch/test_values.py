"""View algebra against NumPy: any chain of views reads the same elements."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from polyopt.frontend.torch import _views as views
from polyopt.frontend.torch._fold import as_expression
from polyopt.frontend.torch._value import Array, Value, read, stored
from polyopt.ir import Const, Expr, Index, Read
from polyopt.sets import affine


def elements(value: Value, tensors: dict[str, Array]) -> Array:
    """Every element of `value`, one by one; each index must lie in exactly one piece."""
    out = np.zeros(value.shape, dtype=np.int64)
    for position in np.ndindex(*value.shape):
        cases = read(value, [affine(p) for p in position], {})
        assert len(cases) == 1 and not cases[0].constraints, f"{position} lies in {len(cases)} pieces"
        out[position] = _element(cases[0].expr, tensors)
    return out


def _element(expr: Expr, tensors: dict[str, Array]) -> int:
    if isinstance(expr, Const):
        return int(expr.value)
    if isinstance(expr, Index):
        return expr.value.evaluate({})
    assert isinstance(expr, Read)
    return int(tensors[expr.access.tensor][tuple(s.evaluate({}) for s in expr.access.affine_subscripts)])


def iota(*shape: int) -> Array:
    return np.arange(int(np.prod(shape, dtype=int))).reshape(shape)


def factorings(n: int, rank: int) -> list[tuple[int, ...]]:
    """Shapes of `rank` dimensions with n elements."""
    if rank == 1:
        return [(n,)]
    return [(d, *rest) for d in range(1, n + 1) if n % d == 0 for rest in factorings(n // d, rank - 1)]


@st.composite
def chains(draw: st.DrawFn) -> tuple[Value, Array, Array]:
    """A tensor after a few random views, as a value and as a NumPy array, and the tensor."""
    shape = draw(st.sampled_from([(2, 3, 4), (4, 6), (12,), (3, 1, 5), (2, 2, 2, 3), (5, 7), (1,)]))
    root = iota(*shape)
    value, array = stored("T", shape, "int64"), root
    for _ in range(draw(st.integers(1, 5))):
        value, array = _step(draw, value, array)
        assert value.shape == array.shape
    return value, array, root


def _step(draw: st.DrawFn, value: Value, array: Array) -> tuple[Value, Array]:
    kinds = ["reshape", "permute", "unsqueeze", "repeat"]
    if array.size <= 40:
        kinds.append("expand")
    if array.ndim:
        kinds += ["slice", "select", "flip", "roll", *(["cat", "pad"] if array.size <= 40 else [])]
    if array.ndim >= 2:
        kinds.append("diagonal")
    kind = draw(st.sampled_from(kinds))
    dim = draw(st.integers(0, max(0, array.ndim - 1)))
    if kind == "reshape":
        new = draw(st.sampled_from(factorings(array.size, draw(st.integers(1, 3)))))
        return views.reshape(value, new), array.reshape(new)
    if kind == "permute":
        order = draw(st.permutations(range(array.ndim)))
        return views.permute(value, order), array.transpose(order)
    if kind == "unsqueeze":
        return views.unsqueeze(value, dim), np.expand_dims(array, dim)
    if kind == "expand":
        new = (2, *(3 if n == 1 else n for n in array.shape))
        return views.expand(value, new), np.broadcast_to(array, new)
    if kind == "repeat":
        times = [1] * array.ndim if array.size > 40 else [draw(st.integers(1, 2)) for _ in array.shape]
        return views.repeat(value, times), np.tile(array, times)
    if kind in ("slice", "select", "flip", "roll"):
        return _step_along(draw, kind, dim, value, array)
    if kind == "diagonal":
        offset = draw(st.integers(1 - array.shape[0], array.shape[1] - 1))
        return views.diagonal(value, offset, 0, 1), np.diagonal(array, offset, 0, 1)
    if kind == "cat":
        return views.concatenate([value, value], dim), np.concatenate([array, array], dim)
    amounts = [(draw(st.integers(0, 2)), draw(st.integers(0, 1))) for _ in array.shape]
    return views.pad(value, amounts, 9), np.pad(array, amounts, constant_values=9)


def _step_along(draw: st.DrawFn, kind: str, dim: int, value: Value, array: Array) -> tuple[Value, Array]:
    n = array.shape[dim]
    if kind == "flip":
        return views.flip(value, [dim]), np.flip(array, dim)
    if kind == "select":
        k = draw(st.integers(0, n - 1))
        return views.select(value, dim, k), np.take(array, k, dim)
    start = draw(st.integers(0, n - 1))
    if kind == "roll":
        parts = [views.slice_dim(value, dim, start, n - start), views.slice_dim(value, dim, 0, start)]
        return views.concatenate(parts, dim), np.roll(array, -start, dim)
    step = draw(st.integers(1, 3))
    extent = draw(st.integers(1, (n - 1 - start) // step + 1))
    index: list[Any] = [slice(None)] * array.ndim
    index[dim] = slice(start, start + step * (extent - 1) + 1, step)
    return views.slice_dim(value, dim, start, extent, step), array[tuple(index)]


@given(chains())
def test_any_chain_of_views_reads_the_same_elements(chain: tuple[Value, Array, Array]) -> None:
    value, array, root = chain
    np.testing.assert_array_equal(elements(value, {"T": root}), array)


LINES = st.sampled_from(
    [
        np.arange(6) * 3 + 1,
        np.arange(8) // 2,
        np.arange(7) // 2,
        np.arange(9) % 3 * 2 - 1,
        np.roll(np.arange(5), 2),
        np.array([0, 0, 0, 4, 4]),
        np.array([5]),
        np.full(4, -2),
    ]
)


@given(LINES, LINES)
def test_sums_of_lines_become_expressions(a: Array, b: Array) -> None:
    table = np.add.outer(a, b)
    value = as_expression(table, "int64")
    assert value is not None
    np.testing.assert_array_equal(elements(value, {}), table)
    assert all(isinstance(p.expr, (Index, Const)) for p in value.pieces)


@given(st.lists(st.integers(-3, 3), min_size=1, max_size=7))
def test_an_expression_is_never_wrong(numbers: list[int]) -> None:
    table = np.array(numbers)
    value = as_expression(table, "int64")
    if value is not None:
        np.testing.assert_array_equal(elements(value, {}), table)


def test_truth_values_and_fractions_are_no_expressions() -> None:
    assert as_expression(np.array([True, False]), "bool") is None
    assert as_expression(np.array([0.5, 1.0]), "float32") is None
    constant = as_expression(np.array([0.5, 0.5]), "float32")
    assert constant is not None and constant.pieces[0].expr == Const(0.5)
