"""Any program written as a SCoP file is read back: the same program, or one with the same values in canonical form."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from polyopt.errors import InputError
from polyopt.frontend import read_scop, write_scop
from polyopt.ir import (
    Access,
    Apply,
    Assign,
    Cast,
    Const,
    Expr,
    Index,
    Indirect,
    Read,
    Scop,
    Statement,
    Subscript,
    Tensor,
)
from polyopt.reference import inputs, interpret
from polyopt.sets import Affine, Constraint, Set, maximum, minimum, select, var

I_, J, N = var("i"), var("j"), var("N")

TENSORS = (
    Tensor("A", (N + 2, N + 2), "float32", "input", init="uniform(-2, 2)"),
    Tensor("x", (N + 4,), "float64", "input"),
    Tensor("k", (N,), "int32", "input"),
    Tensor("s", (), "float32", "input"),
    Tensor("O", (N, N), "float64", "inout"),
)

in_bounds = st.sampled_from(
    [
        I_,
        J,
        I_ + 1,
        N - 1 - I_,
        (I_ + J) // 2,
        (I_ + 2 * J) % 2,
        maximum(I_ - J, 0),
        minimum(I_ + J, N - 1),
        select([Constraint(I_ - J)], I_ - J, J),
        select([Constraint(I_ - J, equality=True), Constraint(I_ - 1)], I_, (J + 1) // 3),
    ]
)
gathers = st.builds(
    lambda e, c: Indirect(Access("k", (e,)), I_ * 0 + c), st.sampled_from([I_, J, N - 1 - J]), st.just(1)
)
subscripts: st.SearchStrategy[Subscript] = in_bounds
accesses = st.one_of(
    st.builds(lambda a, b: Access("A", (a, b)), in_bounds, in_bounds),
    st.builds(lambda a: Access("x", (a,)), st.one_of(subscripts, gathers)),
    st.just(Access("s", ())),
    st.just(Access("O", (I_, J))),
)
constants = st.one_of(
    st.integers(-3, 3),
    st.sampled_from([0.5, -0.25, 1e-3, 2.0, -0.0, float("inf"), float("-inf"), 1e300]),
    st.booleans(),
)
leaves: st.SearchStrategy[Expr] = st.one_of(
    accesses.map(Read), accesses.map(Read), constants.map(Const), in_bounds.map(Index)
)


def grow(inner: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    def apply(ops: str, arity: int) -> st.SearchStrategy[Expr]:
        args = st.tuples(*[inner] * arity)
        return st.builds(Apply, st.sampled_from(ops.split()), args)

    return st.one_of(
        apply("+ - * min max", 2),
        apply("< <= > >= == != and or", 2),
        apply("neg not abs tanh relu floor", 1),
        apply("select", 3),
        st.builds(Cast, st.sampled_from(["float32", "bfloat16"]), inner),
    )


values = st.recursive(leaves, grow, max_leaves=8)


def program(value: Expr, combine: str | None, order: tuple[Affine, ...]) -> Scop:
    domain = Set.parse("[i, j] : 0 <= i < N and 0 <= j < N and (i >= j or j = 2)", name="S", params=["N"])
    statement = Statement("S", domain, order, Assign(Access("O", (I_, J)), value, combine))
    return Scop("p", ("N",), Set.parse("N >= 1", params=["N"]), TENSORS, (statement,), combine is not None)


@settings(max_examples=200)
@given(values, st.sampled_from([None, "+", "*", "max", "min"]), st.sampled_from([(I_, J), (J, -I_), (I_ // 2, J, I_)]))
def test_written_and_read(value: Expr, combine: str | None, order: tuple[Affine, ...]) -> None:
    scop = program(value, combine, order)
    text = write_scop(scop)
    read = read_scop(text)
    assert read_scop(write_scop(read)) == read
    assert replace(read, statements=()) == replace(scop, statements=())
    assert (read.statements[0].domain, read.statements[0].order) == (scop.statements[0].domain, order)
    sizes = {"N": 3}
    given_arrays = inputs(scop, sizes, seed=5)
    given_arrays["k"] = np.array([0, 2, 1], np.int32)
    with np.errstate(all="ignore"):
        expected, got = (_outcome(s, given_arrays, sizes) for s in (scop, read))
    assert type(got) is type(expected)
    if isinstance(expected, np.ndarray):
        np.testing.assert_array_equal(got, expected)


def _outcome(scop: Scop, arrays: dict[str, np.ndarray], sizes: dict[str, int]) -> object:
    """The values, or the class of the refusal (an operator that is not made for its operands)."""
    try:
        return interpret(scop, arrays, sizes)["O"]
    except (InputError, ArithmeticError, ValueError) as error:
        return error
