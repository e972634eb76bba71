"""verify_scop on hand-made programs: what only a wrong pass can make, messages with origins, speed."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from polyopt.errors import InputError, InternalError, Location
from polyopt.ir import (
    Access,
    Apply,
    Assign,
    Cast,
    Const,
    Expr,
    Index,
    Indirect,
    OpaqueCall,
    Origin,
    Read,
    Scop,
    Statement,
    Tensor,
    verify_scop,
)
from polyopt.sets import Set, affine, var

I_, N = var("i"), var("N")
A = Access("A", (I_,))
ZERO = Const(0.0)


def scop(value: Expr = ZERO, target: Access = A, **changes: object) -> Scop:
    domain = Set.parse("[i] : 0 <= i < N", name="S", params=["N"])
    tensors = (Tensor("A", (N,), "float32", "output"), Tensor("k", (N,), "int32", "input"))
    statement = Statement("S", domain, (I_,), Assign(target, value))
    made = Scop("p", ("N",), Set.parse("N >= 0", params=["N"]), tensors, (statement,))
    return replace(made, **changes)  # type: ignore[arg-type]


def with_statement(**changes: object) -> Scop:
    good = scop()
    return replace(good, statements=(replace(good.statements[0], **changes),))  # type: ignore[arg-type]


def test_a_good_program_passes_and_nothing_is_returned() -> None:
    verify_scop(scop())
    verify_scop(scop(Read(Access("k", (Indirect(Access("k", (I_,)), affine(-1)),)))))


@pytest.mark.parametrize(
    "broken",
    [
        scop(Apply("+", (Const(1.0),))),
        scop(Apply("sine", (Const(1.0),))),
        with_statement(body=Assign(A, Const(1.0), "-")),
        with_statement(domain=Set.parse("[i] : 0 <= i < N", name="T", params=["N"])),
        with_statement(domain=Set.parse("[i] : 0 <= i < M", name="S", params=["M"])),
        scop(context=Set.parse("[i] : i = 0")),
    ],
)
def test_what_only_a_wrong_pass_makes_is_an_internal_error(broken: Scop) -> None:
    with pytest.raises(InternalError):
        verify_scop(broken)


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (scop(Read(Access("B", (I_,)))), "S reads B[i], but B is not declared"),
        (scop(Read(Access("k", (I_, I_)))), "S reads k[i, i], but k has shape [N]"),
        (scop(Index(var("j"))), "S: unknown name j in its value"),
        (scop(target=Access("A", (var("j"),))), "S: unknown name j in its subscript of A[j]"),
        (scop(target=Access("A", (N - 1 - I_ - 1,))), "S writes A[N - i - 2], out of bounds in dimension 0 of A"),
        (scop(Cast("float31", Const(1.0))), "unknown dtype 'float31'"),
        (scop(Read(Access("k", (Indirect(A),)))), "S: A subscripts k, but its dtype is float32"),
        (scop(Read(Access("k", (Indirect(Access("k", (I_ + 1,))),)))), "S reads k[i + 1], out of bounds"),
        (with_statement(order=(var("t"),)), "S: unknown name t in its order [t]"),
        (with_statement(order=()), "S: two instances have the same place in order []: at N=2, S[i=0] and S[i=1]"),
        (with_statement(body=OpaqueCall(("B",), ("A",))), "S: the call names B, which is not declared"),
        (with_statement(body=OpaqueCall((), ("A", "k"))), "S writes k, whose role is input"),
        (with_statement(body=OpaqueCall(("A",), ())), "S reads A, whose role is output, but no statement writes it"),
        (scop(statements=()), "tensor A has the role output, but no statement writes it"),
        (scop(statements=scop().statements * 2), "two statements are called S"),
        (scop(context=Set.parse("N >= 0 and N < 0", params=["N"])), "no sizes satisfy the context"),
    ],
)
def test_messages(broken: Scop, message: str) -> None:
    with pytest.raises(InputError) as caught:
        verify_scop(broken)
    assert message in str(caught.value)


def test_the_origin_stands_in_the_message() -> None:
    where = Location("model.py", 7, 3, "  y = x", 5)
    origin = Origin(where, module="layers.0.attention", operator="matmul")
    broken = with_statement(body=Assign(Access("A", (I_ + 1,)), Const(0.0)), origin=origin)
    with pytest.raises(InputError) as caught:
        verify_scop(broken)
    assert str(caught.value) == (
        "model.py:7:3: error[out-of-bounds]: S (matmul, module layers.0.attention) writes A[i + 1], out of bounds in "
        "dimension 0 of A, whose shape is [N]: at N=1, S[i=0] it touches A[1] of shape [1]\n"
        "      y = x\n"
        "      ^^^^^\n"
        "help: restrict the domain, enlarge the tensor, or bound the sizes in context"
    )


def test_origins_do_not_count_in_comparisons() -> None:
    assert with_statement(origin=Origin(operator="add")) == scop()


@pytest.mark.parametrize("name", ["exists", "max", "MOD", "lambda", "1x", "a b", "", "é", "a.b", "inf", "None"])
def test_names_that_cannot_be_used(name: str) -> None:
    with pytest.raises(InputError, match="cannot name a tensor"):
        verify_scop(scop(tensors=(*scop().tensors, Tensor(name, (), "float32", "temp"))))


def test_empty_domains_and_size_zero_are_accepted() -> None:
    empty = Set.parse("[i] : 1 = 0 and i = 0", name="S", params=["N"])
    verify_scop(with_statement(domain=empty))
    verify_scop(scop(tensors=(Tensor("A", (N,), "float32", "output"), Tensor("z", (affine(0),), "int8", "temp"))))


def test_an_accessed_cell_may_not_lie_beyond_a_size_of_zero() -> None:
    broken = with_statement(
        domain=Set.parse("[i] : 0 <= i <= N", name="S", params=["N"]),
        body=Assign(Access("A", (affine(0),)), Const(0.0)),
    )
    with pytest.raises(InputError, match=r"at N=0, S\[i=0\] it touches A\[0\] of shape \[0\]"):
        verify_scop(broken)


def test_hundreds_of_statements_take_milliseconds_each() -> None:
    tensors, statements = [Tensor("X0", (N, affine(128), affine(768)), "float32", "input")], []
    for k in range(200):
        text = "[b, i, j] : 0 <= b < N and 0 <= i < 128 and 0 <= j < 768"
        b, i, j = var("b"), var("i"), var("j")
        source = Read(Access(f"X{k}", (b, i, j // 64 * 64 + j % 64)))
        body = Assign(Access(f"X{k + 1}", (b, i, j)), source)
        statements.append(Statement(f"S{k}", Set.parse(text, name=f"S{k}", params=["N"]), (affine(k), b, i, j), body))
        tensors.append(Tensor(f"X{k + 1}", tensors[0].shape, "float32", "temp"))
    program = Scop("deep", ("N",), Set.parse("N >= 0", params=["N"]), tuple(tensors), tuple(statements))
    start = time.process_time()
    verify_scop(program)
    assert time.process_time() - start < 2.0  # 0.15 s on a slow core
