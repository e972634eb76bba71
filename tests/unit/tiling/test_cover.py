"""Covering: the three-address code computes the expression, in few instructions, each within its specification."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polyopt.errors import UnsupportedError
from polyopt.ir import Access, Apply, Cast, Const, Expr, Index, Read, Uninterpreted, dtype
from polyopt.ir.mapping import MicroOp, Temp, Term
from polyopt.machine import IndexRef, MaskRef, OperandRef, Pattern, ScalarRef, machine
from polyopt.sets import affine, var
from polyopt.tiling._cover import Cover, cover_value, expr_dtype, stripped

TRN2 = machine("trn2")
DTYPES = {"X": "float32", "Z": "float32", "v": "float32", "w": "float32", "b": "bfloat16", "n": "int32", "m": "int8"}
EXTENT = 3
TARGET = Access("Y", (var("p"), var("f")))


def read(name: str, *dims: str) -> Expr:
    return Read(Access(name, tuple(var(d) for d in dims)))


X, Z, v, w = read("X", "p", "f"), read("Z", "p", "f"), read("v", "p"), read("w", "f")
b, n, m = read("b", "p", "f"), read("n", "p", "f"), read("m", "p", "f")


def plus(x: Expr, y: Expr) -> Expr:
    return Apply("+", (x, y))


def times(x: Expr, y: Expr) -> Expr:
    return Apply("*", (x, y))


def covered(expr: Expr, element: str = "float32", target: Access | None = TARGET) -> tuple[list[MicroOp], Term]:
    cover = Cover(TRN2, ("p", "f"), "p", {**DTYPES, "Y": element})
    return cover.ops, cover_value(cover, expr, target, element)


def specs(expr: Expr, element: str = "float32") -> list[str]:
    return [op.spec for op in covered(expr, element)[0]]


# -- known covers ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("expr", "form", "scalars"),
    [
        (Apply("exp", (plus(times(X, v), read("v", "p")),)), 0, {"scale": v, "bias": v}),
        (Apply("exp", (plus(v, times(Const(0.125), X)),)), 0, {"scale": Const(0.125), "bias": v}),
        (Apply("exp", (times(X, Const(2.0)),)), 1, {"scale": Const(2.0)}),
        (Apply("silu", (plus(X, v),)), 2, {"bias": v}),
        (Apply("exp", (Apply("-", (X, v)),)), 3, {"bias": v}),
        (Apply("rsqrt", (X,)), 4, {}),
    ],
)
def test_one_activation_with_scale_and_bias(expr: Expr, form: int, scalars: dict[str, Expr]) -> None:
    ops, term = covered(expr)
    (op,) = ops
    assert (op.spec, op.form, term) == ("activation", form, TARGET)
    assert op.operands == (("X", Access("X", (var("p"), var("f")))),)
    expected = {k: e.access if isinstance(e, Read) else e for k, e in scalars.items()}
    assert dict(op.scalars) == expected
    assert isinstance(expr, Apply) and dict(op.slots) == {"func": expr.op}


def test_a_bias_along_the_free_lanes_is_an_addition_of_its_own() -> None:
    ops, _ = covered(Apply("exp", (plus(X, w),)))
    assert [op.spec for op in ops] == ["tensor_tensor", "activation"]
    assert ops[0].target == Temp("t0", ("p", "f"), "float32")
    assert dict(ops[1].operands) == {"X": ops[0].target}


@pytest.mark.parametrize(
    ("expr", "expected"),
    [
        (X, ["scalar_copy"]),
        (Const(1.5), ["memset"]),
        (Index(var("p") * 2 + var("f")), ["iota"]),
        (plus(X, Z), ["tensor_tensor"]),
        (times(plus(X, v), Const(2.0)), ["tensor_scalar"]),
        (Apply("-", (Const(1.0), X)), ["tensor_scalar"]),
        (Apply("neg", (X,)), ["unary"]),
        (Apply("select", (Apply("<", (X, Z)), X, Z)), ["tensor_tensor", "select"]),
        (Apply("select", (Apply("<=", (Index(var("f")), Index(var("p")))), X, Const(0.0))), ["affine_select"]),
        (times(X, Apply("tanh", (Z,))), ["activation", "tensor_tensor"]),
        (Cast("bool", n), ["tensor_scalar"]),
    ],
)
def test_instructions(expr: Expr, expected: list[str]) -> None:
    assert specs(expr) == expected


def test_an_affine_select_carries_its_mask() -> None:
    condition = Apply("and", (Apply("<=", (Index(var("f")), Index(var("p")))), Apply(">", (Index(var("p")), Const(0)))))
    (op,), _ = covered(Apply("select", (condition, X, Const(-1.0))))
    inside = {(p, f) for p in range(4) for f in range(4) if all(c.holds({"p": p, "f": f}) for c in op.mask)}
    assert inside == {(p, f) for p in range(1, 4) for f in range(p + 1)}
    assert dict(op.scalars) == {"s0": Const(-1.0)}


def test_the_value_of_a_read_needs_no_instruction() -> None:
    ops, term = covered(X, target=None)
    assert not ops and term == Access("X", (var("p"), var("f")))
    ops, term = covered(Const(2.0), target=None)
    assert not ops and term == Const(2.0)


# -- element types ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("expr", "expected"),
    [
        (X, "float32"),
        (b, "bfloat16"),
        (Cast("float16", X), "float16"),
        (Const(1.0), "float32"),
        (Const(1), "int32"),
        (Const(True), "bool"),
        (Index(var("p")), "int32"),
        (plus(b, b), "float32"),
        (plus(n, m), "int32"),
        (Apply("exp", (n,)), "float32"),
        (Apply("/", (n, m)), "float32"),
        (Apply("<", (X, Z)), "bool"),
        (Apply("select", (Apply("<", (X, Z)), n, m)), "int32"),
        (Apply("max", (n, b)), "float32"),
    ],
)
def test_the_type_in_which_a_value_is_computed(expr: Expr, expected: str) -> None:
    assert expr_dtype(expr, DTYPES) == expected


@pytest.mark.parametrize(
    ("expr", "expected"),
    [
        (Cast("float32", b), b),
        (Cast("float32", X), X),
        (Cast("int32", m), m),
        (Cast("float32", Cast("float32", X)), X),
        (Cast("bfloat16", X), Cast("bfloat16", X)),
        (Cast("int8", n), Cast("int8", n)),
        (Cast("float32", n), Cast("float32", n)),
        (Cast("float32", Cast("bfloat16", X)), Cast("bfloat16", X)),
    ],
)
def test_casts_that_change_nothing_are_dropped(expr: Expr, expected: Expr) -> None:
    assert stripped(expr, DTYPES) == expected


def test_roundings_are_kept_in_temps_of_their_type() -> None:
    ops, _ = covered(plus(Cast("bfloat16", times(X, Z)), X))
    assert [op.spec for op in ops] == ["tensor_tensor", "tensor_tensor"]
    assert isinstance(ops[0].target, Temp) and ops[0].target.dtype == "bfloat16"
    ops, _ = covered(Cast("bfloat16", plus(X, Z)))
    assert isinstance(ops[0].target, Temp) and ops[0].target.dtype == "bfloat16" and len(ops) == 2
    ops, _ = covered(plus(X, Z), element="bfloat16")
    assert len(ops) == 1


def test_literals_are_rounded_to_the_type_they_are_cast_to() -> None:
    """What the type holds stays a literal; what it does not hold goes through a tile."""
    assert specs(plus(X, Cast("bfloat16", Const(0.5)))) == ["scalar_copy"]
    ops, _ = covered(plus(X, Cast("bfloat16", Const(0.1))))
    assert [op.spec for op in ops] == ["memset", "scalar_copy"]
    assert isinstance(ops[0].target, Temp) and ops[0].target.dtype == "bfloat16"
    assert specs(Cast("bfloat16", Const(2.0))) == ["memset"]
    assert specs(Cast("int8", Const(300)), "int32") == ["memset", "copy"]


@pytest.mark.parametrize(
    ("expr", "element", "expected"),
    [
        (Apply("exp", (n,)), "int32", [("activation", "float32"), ("copy", "int32")]),
        (plus(X, Z), "float8_e4m3", [("tensor_tensor", "float32"), ("scalar_copy", "float8_e4m3")]),
        (Index(var("p")), "int8", [("iota", "int32"), ("copy", "int8")]),
        (Apply("sqrt", (Const(2.0),)), "float32", [("memset", "float32"), ("activation", "float32")]),
    ],
)
def test_values_are_computed_in_their_own_type_and_copied(
    expr: Expr, element: str, expected: list[tuple[str, str]]
) -> None:
    ops, term = covered(expr, element)
    assert term == TARGET and ops[-1].target == TARGET
    kinds = [op.target.dtype if isinstance(op.target, Temp) else element for op in ops]
    assert list(zip([op.spec for op in ops], kinds, strict=True)) == expected


@pytest.mark.parametrize(
    ("expr", "element", "message"),
    [
        (Uninterpreted("f", (X,)), "float32", "no instruction of trn2 computes uninterpreted as float32"),
        (Apply("relu", (n,)), "int32", "no instruction of trn2 computes operator 'relu' as int32"),
        (plus(Apply("erf", (X,)), Uninterpreted("g", (X,))), "float32", "computes uninterpreted as float32"),
    ],
)
def test_what_no_instruction_computes(expr: Expr, element: str, message: str) -> None:
    with pytest.raises(UnsupportedError, match=message) as caught:
        covered(expr, element)
    assert caught.value.diagnostic.id == "no-instruction"


# -- the code computes the expression ----------------------------------------------------------------------------------
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "+": lambda x, y: x + y,
    "-": lambda x, y: x - y,
    "*": lambda x, y: x * y,
    "min": min,
    "max": max,
    "<": lambda x, y: x < y,
    "<=": lambda x, y: x <= y,
    ">": lambda x, y: x > y,
    ">=": lambda x, y: x >= y,
    "==": lambda x, y: x == y,
    "!=": lambda x, y: x != y,
    "and": lambda x, y: bool(x) and bool(y),
    "or": lambda x, y: bool(x) or bool(y),
    "not": lambda x: not x,
    "neg": lambda x: -x,
    "abs": abs,
    "relu": lambda x: max(x, 0.0),
    "tanh": math.tanh,
    "exp": lambda x: math.exp(min(x, 50.0)),
    "select": lambda c, x, y: x if c else y,
}
Env = Mapping[str, int]


def rounded(value: Any, element: str) -> Any:
    """A value stored in an element type; float32 is left in Python's floats, as computations in it are here."""
    kind = dtype(element)
    if kind.name == "bool":
        return bool(value != 0)
    if not kind.is_float:
        return int(np.asarray(int(value)).astype(kind.numpy))
    return float(value) if element == "float32" else float(np.asarray(value, np.float64).astype(kind.numpy))


def cell(access: Access, env: Env) -> Any:
    k = sum((axis + 1) * s.evaluate(env) for axis, s in enumerate(access.affine_subscripts))
    value = {"X": 3 - k, "Z": k * 0.5 - 2, "v": k - 0.75, "w": 1.5 * k - 4, "b": k * 0.25 - 1, "n": k - 4, "m": 2 - k}
    return value[access.tensor]


def direct(expr: Expr, env: Env) -> Any:
    if isinstance(expr, Const):
        return expr.value
    if isinstance(expr, Index):
        return expr.value.evaluate(env)
    if isinstance(expr, Read):
        return cell(expr.access, env)
    if isinstance(expr, Cast):
        return rounded(direct(expr.arg, env), expr.dtype)
    assert isinstance(expr, Apply)
    return FUNCTIONS[expr.op](*(direct(a, env) for a in expr.args))


def by_code(ops: list[MicroOp], result: Term, env: Env) -> Any:
    """Every operation at one lane point; a temp is a dictionary entry."""
    known: dict[Term, Any] = {}

    def term(t: Term) -> Any:
        if isinstance(t, Const):
            return t.value
        return known[t] if t in known else cell(t, env) if isinstance(t, Access) else known[t]

    def body(pattern: Pattern, op: MicroOp) -> Any:
        if isinstance(pattern, OperandRef):
            return term(dict(op.operands)[pattern.name])
        if isinstance(pattern, ScalarRef):
            return term(dict(op.scalars)[pattern.name])
        if isinstance(pattern, MaskRef):
            return all(c.holds(env) for c in op.mask)
        if isinstance(pattern, IndexRef):
            assert op.index is not None
            return op.index.evaluate(env)
        name = dict(op.slots)[pattern.slot] if pattern.slot else pattern.op
        return FUNCTIONS[name](*(body(a, op) for a in pattern.args))

    for op in ops:
        spec = TRN2.spec(op.spec)
        element = op.target.dtype if isinstance(op.target, Temp) else "float32"
        known[op.target] = rounded(body(spec.forms[op.form].value, op), element)
    return term(result)


def check_op(op: MicroOp) -> None:
    """Element types of operands are allowed; one value per partition in scalar slots; all slots are filled."""
    spec = TRN2.spec(op.spec)
    form = spec.forms[op.form]
    for name, t in (*op.operands, *op.scalars, (op.target_name, op.target)):
        element = (
            t.dtype if isinstance(t, Temp) else {**DTYPES, "Y": "float32"}[t.tensor] if isinstance(t, Access) else ""
        )
        assert not element or element in spec.operand(name).dtypes, (op.spec, name, element)
    for _, t in op.scalars:
        dims = t.dims if isinstance(t, Temp) else () if isinstance(t, Const) else tuple(map(str, t.affine_subscripts))
        assert set(dims) <= {"p"}
    assert op.engine in spec.engines and op.target_name == form.target.name


leaves = st.sampled_from([X, Z, v, w, b, n, Const(0.5), Const(2.0), Const(-1), Index(var("f") - var("p"))])


def grow(inner: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    binary = st.sampled_from(["+", "-", "*", "min", "max"])
    comparison = st.sampled_from(["<", "<=", ">", ">=", "==", "!="])
    test = st.builds(lambda op, x, y: Apply(op, (x, y)), comparison, inner, inner)
    return st.one_of(
        st.builds(lambda op, x, y: Apply(op, (x, y)), binary, inner, inner),
        st.builds(lambda op, x: Apply(op, (x,)), st.sampled_from(["relu", "tanh", "neg", "abs", "exp"]), inner),
        st.builds(lambda c, x, y: Apply("select", (c, x, y)), test, inner, inner),
        st.builds(lambda x: Cast("bfloat16", x), inner),
    )


values = st.recursive(leaves, grow, max_leaves=7)


@settings(max_examples=200)
@given(values)
def test_the_code_computes_the_expression(expr: Expr) -> None:
    try:
        ops, result = covered(expr)
    except UnsupportedError:
        return
    for op in ops:
        check_op(op)
    for p, f in itertools.product(range(EXTENT), repeat=2):
        env = {"p": p, "f": f}
        assert by_code(ops, result, env) == pytest.approx(float(direct(expr, env)), rel=1e-12), env


def test_subscripts_do_not_matter_to_the_choice() -> None:
    turned = Read(Access("X", (var("f") + 1, affine(0), var("p"))))
    assert specs(Apply("exp", (plus(turned, v),))) == specs(Apply("exp", (plus(X, v),)))
