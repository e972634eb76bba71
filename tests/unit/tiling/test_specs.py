"""Roles of instructions are found by their form: on a machine with other names they are the same."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from polyopt.bench import SUITES
from polyopt.errors import InternalError, UnsupportedError
from polyopt.ir import instructions
from polyopt.machine import Machine, machine
from polyopt.pipeline import compile
from polyopt.reference import evaluate, inputs
from polyopt.simulator import simulate
from polyopt.tiling._specs import (
    contractions,
    copy_specs,
    fill_spec,
    folds,
    is_contraction,
    is_pointwise,
    masking_spec,
    moved_operand,
    transpose_spec,
)
from tests.machines import nameless

TRN2 = machine("trn2")


@pytest.mark.parametrize("target", [TRN2, nameless()], ids=lambda m: m.name)
def test_roles(target: Machine) -> None:
    old = {s.name: t.name for s, t in zip(target.instructions, TRN2.instructions, strict=True)}
    assert [old[s.name] for s in contractions(target)] == ["matmul"]
    assert [old[s.name] for s in folds(target, "+", "float32")] == ["tensor_reduce"]
    assert not list(folds(target, "-", "float32")) and not list(folds(target, "+", "float8_e4m3"))
    found = transpose_spec(target, "bfloat16")
    assert found is not None and old[found.name] == "transpose"
    assert transpose_spec(target, "int32") is None
    found = masking_spec(target, "float32")
    assert found is not None and old[found.name] == "affine_select"
    assert masking_spec(target, "int8") is None
    assert old[fill_spec(target, "float32", "psum").name] == "memset"
    pointwise = {old[s.name] for s in target.instructions if is_pointwise(s)}
    assert {"activation", "tensor_tensor", "copy", "select", "iota", "memset"} <= pointwise
    assert not pointwise & {"matmul", "transpose", "tensor_reduce", "dma", "general"}


def test_copies_between_memories() -> None:
    found = {s.name for s, _ in copy_specs(TRN2, "psum", "sbuf", "float8_e4m3")}
    assert found == {"scalar_copy", "copy"}
    for s, number in copy_specs(TRN2, "sbuf", "sbuf", "float32"):
        assert moved_operand(s.forms[number]).name in ("X", "A")
    assert not list(copy_specs(TRN2, "hbm", "sbuf", "float32"))


def test_what_is_missing_is_said() -> None:
    with pytest.raises(UnsupportedError, match="trn2 cannot fill hbm with float32"):
        fill_spec(TRN2, "float32", "hbm")
    with pytest.raises(InternalError, match="does not just move an operand"):
        moved_operand(TRN2.spec("matmul").forms[0])
    assert is_contraction(TRN2.spec("matmul").forms[0])
    assert not is_contraction(TRN2.spec("tensor_reduce").forms[0])


@pytest.mark.parametrize("name", ["matmul", "softmax", "attention"])
def test_programs_do_not_depend_on_what_instructions_are_called(name: str) -> None:
    """The same code, instruction by instruction, and the same values."""
    (workload,) = (w for w in SUITES["main"] if w.name == name)
    sizes = dict.fromkeys(workload.sizes, 5)
    scop = workload.scop()
    here, there = (compile(scop, m, sizes).program for m in (TRN2, nameless()))
    new = {s.name: t.name for s, t in zip(TRN2.instructions, nameless().instructions, strict=True)}
    opcodes = [[x.opcode for x, _ in instructions(p.body)] for p in (here, there)]
    assert [new[o] for o in opcodes[0]] == opcodes[1]
    arrays = inputs(scop, sizes, mode="exact")
    expected = evaluate(scop, arrays, sizes, "exact")
    found = simulate(there, nameless(), arrays, sizes, mode="exact").outputs
    assert all(np.array_equal(found[k], v) for k, v in expected.items())


def test_a_machine_without_an_instruction_still_runs_everything() -> None:
    """Without a contraction instruction products are multiplied and folded; without transposition rows are copied."""
    (workload,) = (w for w in SUITES["main"] if w.name == "matmul")
    scop, sizes = workload.scop(), {"M": 5, "N": 6, "K": 7}
    for missing in ("matmul", "transpose", "tensor_reduce", "memset"):
        target = replace(TRN2, instructions=tuple(s for s in TRN2.instructions if s.name != missing))
        program = compile(scop, target, sizes).program
        assert missing not in {x.opcode for x, _ in instructions(program.body)}
        arrays = inputs(scop, sizes, mode="exact")
        expected = evaluate(scop, arrays, sizes, "exact")
        found = simulate(program, target, arrays, sizes, mode="exact").outputs
        assert all(np.array_equal(found[k], v) for k, v in expected.items())
