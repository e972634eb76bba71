"""Covering an expression tree with instructions, the largest matching form first (maximal munch).

The result is three-address code: a list of operations on terms, each one instruction of the machine.  Which dimension
lies on the partitions is decided before, since a scalar slot holds one value per partition.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from polyopt.errors import UnsupportedError
from polyopt.ir import Access, Apply, Cast, Const, Expr, Index, Read, dtype, expr_iterators
from polyopt.ir.mapping import MicroOp, Temp, Term
from polyopt.machine import InstructionSpec, Machine, OperandRef, OpRef, Pattern, ScalarRef
from polyopt.tiling._specs import fill_spec, is_pointwise
from polyopt.tiling._unify import Match, unify

__all__ = ["Cover", "copy_value", "cover_value", "expr_dtype", "stripped"]


@dataclass(slots=True)
class Cover:
    """Operations under construction for one statement.

    dims: the dimensions that lanes run over.  partition: the one on the partitions (None: a single partition).
    dtypes: tensor name -> element type.  memories: tensors that are already on the chip -> their memory.
    """

    machine: Machine
    dims: tuple[str, ...]
    partition: str | None
    dtypes: Mapping[str, str]
    prefix: str = "t"
    ops: list[MicroOp] = field(default_factory=list)
    memories: Mapping[str, str] = field(default_factory=dict)

    def new_temp(self, dims: Sequence[str], element: str) -> Temp:
        return Temp(f"{self.prefix}{len(self.ops)}", tuple(dims), element)

    def dims_of(self, expr: Expr) -> tuple[str, ...]:
        """Lane dimensions that a value moves along, the partition dimension always among them."""
        used = expr_iterators(expr) | ({self.partition} if self.partition else set())
        return tuple(d for d in self.dims if d in used)

    def is_scalar(self, expr: Expr) -> bool:
        """Whether a scalar slot can hold `expr`: a constant, or one value per partition."""
        if isinstance(expr, Const):
            return True
        return all(d == self.partition for d in self.dims_of(expr)) and not isinstance(expr, Index)


def expr_dtype(expr: Expr, dtypes: Mapping[str, str]) -> str:
    """The element type in which `expr` is computed: comparisons give bool, otherwise the widest float or integer
    inside.
    """
    if isinstance(expr, Cast):
        return expr.dtype
    if isinstance(expr, Read):
        return dtypes[expr.access.tensor]
    if isinstance(expr, Const):
        return "bool" if isinstance(expr.value, bool) else ("int32" if isinstance(expr.value, int) else "float32")
    if isinstance(expr, Index):
        return "int32"
    if isinstance(expr, Apply) and (expr.op in ("<", "<=", ">", ">=", "==", "!=", "not", "and", "or")):
        return "bool"
    args = expr.args[1:] if isinstance(expr, Apply) and expr.op == "select" else expr.args
    kinds = [expr_dtype(a, dtypes) for a in args]
    floats = [k for k in kinds if dtype(k).is_float]
    if floats or (isinstance(expr, Apply) and expr.op in FLOAT_FUNCTIONS):
        return "float64" if "float64" in floats else "float32"
    return "int64" if "int64" in kinds else "int32"


FLOAT_FUNCTIONS = frozenset(
    {"/", "exp", "log", "sin", "cos", "sqrt", "rsqrt", "tanh", "sigmoid", "erf", "gelu", "gelu_tanh", "silu"}
)


def cover_value(cover: Cover, expr: Expr, target: Access | None, element: str) -> Term:
    """Operations that compute `expr` rounded to `element`; into `target` when given, else into a temp.

    Returns the term that holds the value.  A value that no instruction writes as `element` is computed in its own type
    and copied.  Raises UnsupportedError when no instruction fits a node.
    """
    expr = stripped(expr, cover.dtypes)
    if isinstance(expr, Cast) and expr.dtype == "bool":
        expr = Apply("!=", (expr.arg, Const(0)))
    if isinstance(expr, Cast) and isinstance(expr.arg, Const):
        rounded = _rounded_constant(cover, expr.arg, expr.dtype)
        if target is None:
            return rounded
        if isinstance(rounded, Const):
            return cover_value(cover, rounded, target, element)
        return _copy(cover, rounded, target, element)
    if isinstance(expr, Cast):
        element_inside = expr.dtype
        if target is None:
            return _cover_node(cover, stripped(expr.arg, cover.dtypes), None, element_inside)
        if element_inside == element or dtype(element_inside).element_bytes >= dtype(element).element_bytes >= 4:
            return cover_value(cover, expr.arg, target, element)
        inner = cover_value(cover, expr.arg, None, element_inside)
        return _copy(cover, inner, target, element)
    return _cover_node(cover, expr, target, element)


def _cover_node(cover: Cover, expr: Expr, target: Access | None, element: str) -> Term:
    if target is None:
        if isinstance(expr, Read):
            if cover.dtypes[expr.access.tensor] == element or not dtype(element).is_float:
                return expr.access
            return (
                expr.access
                if _exactly_wider(cover.dtypes[expr.access.tensor], element)
                else _copy(cover, expr.access, None, element)
            )
        if isinstance(expr, Const):
            return expr
    best: tuple[tuple[int, ...], InstructionSpec, int, Match] | None = None
    for spec in cover.machine.instructions:
        if not is_pointwise(spec):
            continue
        for number, form in enumerate(spec.forms):
            if not _makes_progress(form.value, expr):
                continue
            for match in unify(form.value, expr, cover.is_scalar):
                if not _acceptable(cover, spec, match, element):
                    continue
                rank = (
                    _size(form.value),
                    len(match.scalars),
                    -len(match.operands),
                    -cover.machine.instructions.index(spec),
                )
                if best is None or rank > best[0]:
                    best = (rank, spec, number, match)
    natural = expr_dtype(expr, cover.dtypes)
    if best is None and natural != element and not isinstance(expr, Read):
        return _copy(cover, _materialised(cover, cover_value(cover, expr, None, natural)), target, element)
    if best is None:
        what = f"operator {expr.op!r}" if isinstance(expr, Apply) else type(expr).__name__.lower()
        raise UnsupportedError(
            f"no instruction of {cover.machine.name} computes {what} as {element}", id="no-instruction"
        )
    return _emit(cover, expr, best[1], best[2], best[3], target, element)


def _makes_progress(pattern: Pattern, expr: Expr) -> bool:
    """A bare operand or scalar would match anything: it is for reads and numbers only."""
    if isinstance(pattern, ScalarRef):
        return isinstance(expr, Const)
    return not isinstance(pattern, OperandRef) or isinstance(expr, Read)


def _acceptable(cover: Cover, spec: InstructionSpec, match: Match, element: str) -> bool:
    if element not in spec.operand(spec.forms[0].target.name).dtypes:
        return False
    if match.scalars and len(match.operands) == 1 and isinstance(match.operands[0][1], Const):
        return False
    bound = [(ref.name, sub) for ref, sub in match.operands] + list(match.scalars)
    return all(_fits(cover, spec, name, stripped(sub, cover.dtypes)) for name, sub in bound)


def _fits(cover: Cover, spec: InstructionSpec, name: str, sub: Expr) -> bool:
    """Whether operand `name` may hold `sub`: element type, and memory when it is on the chip already."""
    if isinstance(sub, Const):
        return True
    allowed = spec.operand(name)
    home = cover.memories.get(sub.access.tensor) if isinstance(sub, Read) else None
    return expr_dtype(sub, cover.dtypes) in allowed.dtypes and (home is None or home in allowed.memories)


def _emit(
    cover: Cover, expr: Expr, spec: InstructionSpec, form: int, match: Match, target: Access | None, element: str
) -> Term:
    def term(sub: Expr) -> Term:
        wanted = expr_dtype(stripped(sub, cover.dtypes), cover.dtypes)
        return cover_value(cover, sub, None, wanted)

    operands = tuple((ref.name, _materialised(cover, term(sub))) for ref, sub in match.operands)
    scalars = tuple((name, term(sub)) for name, sub in match.scalars)
    result: Term = target if target is not None else cover.new_temp(cover.dims_of(expr), element)
    body = spec.forms[form]
    cover.ops.append(
        MicroOp(
            spec=spec.name,
            form=form,
            engine=spec.engines[0],
            operands=operands,
            target=result,
            target_name=body.target.name,
            scalars=scalars,
            slots=match.slots,
            mask=match.mask,
            index=match.index,
        )
    )
    return result


def copy_value(cover: Cover, source: Access, element: str) -> Term:
    """A copy of `source` in a temp of its own."""
    return _copy(cover, source, None, element)


def _materialised(cover: Cover, term: Term) -> Term:
    """Constants that must stand in an operand slot are written into a tile first."""
    if not isinstance(term, Const):
        return term
    return _cover_node_constant(cover, term, expr_dtype(term, cover.dtypes))


def _cover_node_constant(cover: Cover, value: Const, element: str) -> Temp:
    home = tuple(d for d in cover.dims if d == cover.partition)
    temp = cover.new_temp(home, element)
    spec = fill_spec(cover.machine, element, _pad(cover.machine))
    pattern = spec.forms[0].value
    name = pattern.name if isinstance(pattern, ScalarRef) else ""
    cover.ops.append(MicroOp(spec.name, 0, spec.engines[0], (), temp, spec.forms[0].target.name, ((name, value),)))
    return temp


def _rounded_constant(cover: Cover, value: Const, element: str) -> Const | Temp:
    """A literal in an element type: itself when it is a value of that type, otherwise rounded in a tile."""
    kind = dtype(element)
    with np.errstate(all="ignore"):
        rounded = np.asarray(value.value).astype(kind.numpy)
    kept = float(rounded) if kind.is_float else int(rounded)
    return Const(kept) if kept == value.value else _cover_node_constant(cover, value, element)


def _pad(machine: Machine) -> str:
    memory = machine.memory_of_kind("scratchpad")
    return memory.name if memory else machine.memories[0].name


def _copy(cover: Cover, term: Term, target: Access | None, element: str) -> Term:
    """`target = term`, rounding to `element`."""
    dims = term.dims if isinstance(term, Temp) else cover.dims_of(Read(term)) if isinstance(term, Access) else ()
    source = (
        term.dtype if isinstance(term, Temp) else cover.dtypes[term.tensor] if isinstance(term, Access) else element
    )
    for spec in cover.machine.instructions:
        for number, form in enumerate(spec.forms):
            if not is_pointwise(spec) or not isinstance(form.value, OperandRef):
                continue
            if element in spec.operand(form.target.name).dtypes and source in spec.operand(form.value.name).dtypes:
                result: Term = target if target is not None else cover.new_temp(dims, element)
                operands = ((form.value.name, term),)
                cover.ops.append(MicroOp(spec.name, number, spec.engines[0], operands, result, form.target.name))
                return result
    raise UnsupportedError(f"no instruction of {cover.machine.name} copies {source} to {element}", id="no-instruction")


def _size(pattern: Pattern) -> int:
    return 1 + sum(_size(a) for a in pattern.args) if isinstance(pattern, OpRef) else 0


def stripped(expr: Expr, dtypes: Mapping[str, str]) -> Expr:
    """Drop casts that change no value (to the same or an exactly wider type)."""
    while isinstance(expr, Cast):
        inner = expr_dtype(expr.arg, dtypes)
        if inner != expr.dtype and not _exactly_wider(inner, expr.dtype):
            break
        if isinstance(expr.arg, Const):
            break
        expr = expr.arg
    return expr


def _exactly_wider(narrow: str, wide: str) -> bool:
    """Whether every value of `narrow` is a value of `wide` and computing in it is the same as in float32 or wider."""
    a, b = dtype(narrow), dtype(wide)
    if narrow == wide:
        return True
    if a.is_float and b.is_float:
        return b.element_bytes > a.element_bytes and b.element_bytes >= 4
    if a.is_float:
        return False
    if b.is_float:
        return b.element_bytes > a.element_bytes
    return b.element_bytes > a.element_bytes
