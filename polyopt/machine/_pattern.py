"""The body of an instruction specification: a one-statement loop nest over lanes, written as text.

`O[m, n] += W[k, m] * X[k, n]` reads: for all lanes, combine the right side into O.  Names with subscripts are operands;
lower-case calls whose name is declared under `ops` are operator slots (`op(A[p, f], B[p, f])`); bare names declared
under `scalars` are immediates or one-value-per-partition operands; `mask` and `index` are the instruction's affine
predicate and value.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from polyopt.errors import MachineFileError

__all__ = [
    "Body",
    "IndexRef",
    "MaskRef",
    "OpRef",
    "OperandRef",
    "Pattern",
    "ScalarRef",
    "operand_refs",
    "parse_body",
    "scalar_refs",
]


@dataclass(frozen=True, slots=True)
class OperandRef:
    """Operand `name` at the listed lanes."""

    name: str
    lanes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ScalarRef:
    """An immediate number or an operand with one value per partition."""

    name: str


@dataclass(frozen=True, slots=True)
class MaskRef:
    """True where the instruction's affine mask holds."""


@dataclass(frozen=True, slots=True)
class IndexRef:
    """The value of the instruction's affine index expression."""


@dataclass(frozen=True, slots=True)
class OpRef:
    """An operator: a fixed one (`slot` empty) or any of `choices`, remembered in attribute `slot`."""

    op: str
    slot: str
    choices: tuple[str, ...]
    args: tuple[Pattern, ...]


Pattern = OperandRef | ScalarRef | MaskRef | IndexRef | OpRef


@dataclass(frozen=True, slots=True)
class Body:
    """`target = value`, or a reduction `target combine= value` (combine '' when none; `slot` when it is chosen)."""

    target: OperandRef
    value: Pattern
    combine: tuple[str, ...] = ()
    combine_slot: str = ""
    text: str = ""

    @property
    def reduced_lanes(self) -> tuple[str, ...]:
        """Lanes of the right side that the target does not have."""
        seen = [n for r in operand_refs(self.value) for n in r.lanes]
        return tuple(dict.fromkeys(n for n in seen if n not in self.target.lanes))


_BINARY: dict[type[ast.operator], str] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.Pow: "**"}


def parse_body(text: str, *, ops: Mapping[str, tuple[str, ...]], scalars: tuple[str, ...], where: str) -> Body:
    """Read one body.  `reduce_op(O[...], X[...])`-style reductions are written `O[p] = combine_slot.reduce(A[p, r])`.

    Raises MachineFileError naming `where`.
    """
    try:
        node = ast.parse(text, mode="exec").body[0]
    except (SyntaxError, IndexError) as error:
        raise MachineFileError(
            f"{where}: cannot read the body {text!r}: {error}", help="write it in the syntax of Python"
        ) from error
    reader = _Reader(ops, scalars, where, text)
    if isinstance(node, ast.AugAssign):
        combine = _BINARY.get(type(node.op), "")
        if combine not in ("+", "*"):
            raise MachineFileError(
                f"{where}: {text!r}: only += and *= reduce", help="write +=, *= or slot.reduce(X[...])"
            )
        return Body(reader.operand(node.target), reader.pattern(node.value), (combine,), "", text)
    if not isinstance(node, ast.Assign) or len(node.targets) != 1:
        raise MachineFileError(
            f"{where}: {text!r} is not one assignment", help="write one assignment such as O[m, n] += W[k, m]*X[k, n]"
        )
    target, value = reader.operand(node.targets[0]), node.value
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr == "reduce":
        slot = value.func.value
        if not isinstance(slot, ast.Name) or slot.id not in ops or len(value.args) != 1:
            raise MachineFileError(
                f"{where}: {text!r}: write slot.reduce(X[...]) with a declared operator slot",
                help="declare the slot under slots",
            )
        return Body(target, reader.pattern(value.args[0]), ops[slot.id], slot.id, text)
    return Body(target, reader.pattern(value), (), "", text)


@dataclass(frozen=True, slots=True)
class _Reader:
    ops: Mapping[str, tuple[str, ...]]
    scalars: tuple[str, ...]
    where: str
    text: str

    def operand(self, node: ast.expr) -> OperandRef:
        if not (isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name)):
            raise self.error(node)
        inner = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        lanes: list[str] = []
        for lane in inner:
            if not isinstance(lane, ast.Name):
                raise self.error(lane)
            lanes.append(lane.id)
        return OperandRef(node.value.id, tuple(lanes))

    def pattern(self, node: ast.expr) -> Pattern:
        if isinstance(node, ast.Subscript):
            return self.operand(node)
        if isinstance(node, ast.Name):
            if node.id == "mask":
                return MaskRef()
            if node.id == "index":
                return IndexRef()
            if node.id in self.scalars:
                return ScalarRef(node.id)
        if isinstance(node, ast.BinOp) and type(node.op) in _BINARY:
            op = _BINARY[type(node.op)]
            return OpRef(op, "", (op,), (self.pattern(node.left), self.pattern(node.right)))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            args = tuple(self.pattern(a) for a in node.args)
            name = node.func.id
            if name in self.ops:
                return OpRef("", name, self.ops[name], args)
            return OpRef(name, "", (name,), args)
        raise self.error(node)

    def error(self, node: ast.expr) -> MachineFileError:
        return MachineFileError(
            f"{self.where}: cannot read {ast.unparse(node)!r} in {self.text!r}",
            help="operands are Name[lane, ...], scalars and operator slots must be declared",
        )


def operand_refs(pattern: Pattern) -> Iterator[OperandRef]:
    """Every operand of a pattern from left to right."""
    if isinstance(pattern, OperandRef):
        yield pattern
    elif isinstance(pattern, OpRef):
        for a in pattern.args:
            yield from operand_refs(a)


def scalar_refs(pattern: Pattern) -> Iterator[ScalarRef]:
    """Every scalar slot of a pattern from left to right."""
    if isinstance(pattern, ScalarRef):
        yield pattern
    elif isinstance(pattern, OpRef):
        for a in pattern.args:
            yield from scalar_refs(a)
