"""Roles that specifications play, found by their form alone (no instruction names)."""

from __future__ import annotations

from collections.abc import Iterator

from polyopt.errors import InternalError, UnsupportedError
from polyopt.machine import (
    Body,
    InstructionSpec,
    Machine,
    MaskRef,
    OperandRef,
    OpRef,
    ScalarRef,
)

__all__ = [
    "contractions",
    "copy_specs",
    "fill_spec",
    "folds",
    "is_contraction",
    "is_pointwise",
    "masking_spec",
    "moved_operand",
    "transpose_spec",
]


def is_pointwise(spec: InstructionSpec) -> bool:
    """Whether every operand lies on the partitions as the target does and no lane is reduced."""
    home = spec.operand(spec.forms[0].target.name).partition
    aligned = all(o.partition == home for o in spec.operands)
    return spec.kind == "compute" and aligned and not any(f.reduced_lanes for f in spec.forms)


def is_contraction(form: Body) -> bool:
    """A sum of products of two operands over lanes that the target lacks."""
    value = form.value
    product = isinstance(value, OpRef) and value.op == "*" and all(isinstance(a, OperandRef) for a in value.args)
    return form.combine == ("+",) and product and bool(form.reduced_lanes)


def contractions(machine: Machine) -> Iterator[InstructionSpec]:
    """Specifications that are contractions."""
    return (s for s in machine.instructions if s.kind == "compute" and is_contraction(s.forms[0]))


def folds(machine: Machine, op: str, element: str) -> Iterator[InstructionSpec]:
    """Specifications that fold one operand over a lane with `op`: `O[p, f] = op.reduce(A[p, f, r])`."""
    for s in machine.instructions:
        form = s.forms[0]
        if s.kind != "compute" or not isinstance(form.value, OperandRef) or not form.reduced_lanes:
            continue
        dtypes = (s.operand(form.value.name).dtypes, s.operand(form.target.name).dtypes)
        if op in form.combine and all(element in d for d in dtypes):
            yield s


def moved_operand(form: Body) -> OperandRef:
    """The operand of a form that only moves one (a copy, a transposition)."""
    if not isinstance(form.value, OperandRef):
        raise InternalError(f"{form.text!r} does not just move an operand")
    return form.value


def copy_specs(
    machine: Machine, source: str, target: str, element: str, source_element: str = ""
) -> Iterator[tuple[InstructionSpec, int]]:
    """(specification, form) pairs of plain copies from memory `source` to memory `target`, writing `element`
    (and reading `source_element`, by default the same).
    """
    for s in machine.instructions:
        if not is_pointwise(s):
            continue
        for number, form in enumerate(s.forms):
            if not isinstance(form.value, OperandRef):
                continue
            a, o = s.operand(form.value.name), s.operand(form.target.name)
            read = (source_element or element) in a.dtypes
            if read and source in a.memories and target in o.memories and element in o.dtypes:
                yield s, number


def transpose_spec(machine: Machine, element: str) -> InstructionSpec | None:
    """A specification `O[f, p] = X[p, f]` that exchanges the partitions with a free lane, for this element type."""
    for s in machine.instructions:
        form = s.forms[0]
        if s.kind != "compute" or not isinstance(form.value, OperandRef) or form.reduced_lanes:
            continue
        if form.target.lanes == form.value.lanes[::-1] and len(form.target.lanes) == 2:
            x, o = s.operand(form.value.name), s.operand(form.target.name)
            if x.partition != o.partition and element in x.dtypes and element in o.dtypes:
                return s
    return None


def fill_spec(machine: Machine, element: str, memory: str) -> InstructionSpec:
    """A specification that writes one number everywhere.  Raises UnsupportedError when there is none."""
    for s in machine.instructions:
        if s.kind == "compute" and isinstance(s.forms[0].value, ScalarRef):
            target = s.operand(s.forms[0].target.name)
            if element in target.dtypes and memory in target.memories:
                return s
    raise UnsupportedError(f"{machine.name} cannot fill {memory} with {element}", id="no-instruction")


def masking_spec(machine: Machine, element: str) -> InstructionSpec | None:
    """A specification `O = select(mask, A, scalar)` for this element type."""
    for s in machine.instructions:
        value = s.forms[0].value
        if s.kind != "compute" or not isinstance(value, OpRef) or value.op != "select":
            continue
        if isinstance(value.args[0], MaskRef) and element in s.operand(s.forms[0].target.name).dtypes:
            return s
    return None
