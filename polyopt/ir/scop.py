"""The static control part: tensors, statements, accesses and the original order.

Accesses have three classes, and the class is carried through every later verdict: **exact** (quasi-affine), **may** (a
data-dependent subscript may name any cell of its tensor), **opaque** (a call on whole tensors).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from polyopt.errors import InternalError, Location
from polyopt.ir.dtypes import DType, dtype
from polyopt.ir.expr import Access, Apply, Expr, Read, accesses
from polyopt.sets import Affine, Constraint, Map, Set, affine

__all__ = ["ROLES", "Assign", "OpaqueCall", "Origin", "Scop", "Statement", "Tensor", "access_relation"]

ROLES = ("input", "output", "inout", "temp")
COMBINES = ("+", "*", "min", "max")
"""Associative and commutative combiners that `Assign.combine` may name."""


@dataclass(frozen=True, slots=True)
class Tensor:
    """A dense array in device memory.  `shape` is affine in the parameters; `role` is one of ROLES."""

    name: str
    shape: tuple[Affine, ...]
    dtype: str
    role: str
    init: str | None = None

    @property
    def element(self) -> DType:
        return dtype(self.dtype)

    def sizes(self, at: Mapping[str, int]) -> tuple[int, ...]:
        """The extents at fixed parameters."""
        return tuple(s.evaluate(at) for s in self.shape)

    def cells(self, dims: Sequence[str], params: Sequence[str]) -> Set:
        """{ name[dims] : 0 <= dims < shape }."""
        bounds = {d: (affine(0), s) for d, s in zip(dims, self.shape, strict=True)}
        return Set.box(self.name, bounds, params)


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a statement comes from: a place in a text, or a module path of a model with the operator's name."""

    where: Location | None = None
    module: str = ""
    operator: str = ""

    def __str__(self) -> str:
        parts = [self.module and f"module {self.module}", self.operator, str(self.where) if self.where else ""]
        return ", ".join(p for p in parts if p)


@dataclass(frozen=True, slots=True)
class Assign:
    """`target = value`, or `target = combine(target, value)` when `combine` is one of '+', '*', 'min', 'max'."""

    target: Access
    value: Expr
    combine: str | None = None

    def reads(self) -> tuple[Access, ...]:
        """Every access read: the target first when it is combined into, then the value's from left to right."""
        own = (self.target,) if self.combine else ()
        return own + accesses(self.value)

    def full_value(self) -> Expr:
        """The right-hand side with the combination written out."""
        if self.combine is None:
            return self.value
        return Apply(self.combine, (Read(self.target), self.value))


@dataclass(frozen=True, slots=True)
class OpaqueCall:
    """A call about which only the tensors are known that it may read and may write, wholly."""

    may_read: tuple[str, ...] = ()
    may_write: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Statement:
    """`body` for every instance in `domain`, in the lexicographic order of `order` (shorter vectors padded with 0).

    Two statements are equal when they say the same, wherever they were read.
    """

    name: str
    domain: Set
    order: tuple[Affine, ...]
    body: Assign | OpaqueCall
    origin: Origin = field(default=Origin(), compare=False)

    @property
    def iterators(self) -> tuple[str, ...]:
        return self.domain.dims

    @property
    def assign(self) -> Assign:
        """The assignment; InternalError for an opaque call."""
        if not isinstance(self.body, Assign):
            raise InternalError(f"{self.name} is an opaque call")
        return self.body

    @property
    def is_opaque(self) -> bool:
        return isinstance(self.body, OpaqueCall)


@dataclass(frozen=True, slots=True)
class Scop:
    """One program.  `reassociate` grants the axiom that float reductions may be reordered and accumulated wider."""

    name: str
    params: tuple[str, ...]
    context: Set
    tensors: tuple[Tensor, ...]
    statements: tuple[Statement, ...]
    reassociate: bool = False

    def tensor(self, name: str) -> Tensor:
        """The tensor called `name`; KeyError when there is none."""
        for t in self.tensors:
            if t.name == name:
                return t
        raise KeyError(name)

    def statement(self, name: str) -> Statement:
        """The statement called `name`; KeyError when there is none."""
        for s in self.statements:
            if s.name == name:
                return s
        raise KeyError(name)

    def tensor_map(self) -> dict[str, Tensor]:
        return {t.name: t for t in self.tensors}

    def with_role(self, *roles: str) -> Iterator[Tensor]:
        """Tensors whose role is one of `roles`, in declared order."""
        return (t for t in self.tensors if t.role in roles)

    def order_length(self) -> int:
        """The length that all order vectors are padded to."""
        return max((len(s.order) for s in self.statements), default=0)

    def schedule_map(self, statement: Statement) -> Map:
        """The original order of one statement: instances -> padded order vector, textual position last."""
        position = self.statements.index(statement)
        padding = [affine(0)] * (self.order_length() - len(statement.order))
        exprs = [*statement.order, *padding, affine(position)]
        return Map.from_exprs(statement.domain.intersect_params(self.context), "", exprs)

    def at(self, sizes: Mapping[str, int]) -> Scop:
        """The same program with parameters fixed in the context (they keep their names)."""
        return replace(self, context=self.context.fix({k: v for k, v in sizes.items() if k in self.params}))


def access_relation(domain: Set, access: Access, tensor: Tensor, params: Sequence[str]) -> Map:
    """Instances -> cells.  A data-dependent subscript ranges over the whole extent of its dimension (a may-access)."""
    fresh = [f"_cell{k}" for k, s in enumerate(access.subscripts) if not isinstance(s, Affine)]
    exprs: list[Affine] = []
    free = iter(fresh)
    bounds: list[tuple[str, Affine]] = []
    for s, extent in zip(access.subscripts, tensor.shape, strict=True):
        if isinstance(s, Affine):
            exprs.append(s)
        else:
            name = next(free)
            bounds.append((name, extent))
            exprs.append(affine(name))
    if not fresh:
        return Map.from_exprs(domain, tensor.name, exprs)
    widened = domain.add_dims(fresh).constrain(
        [c for n, e in bounds for c in (Constraint(affine(n)), Constraint(e - 1 - affine(n)))]
    )
    return Map.from_exprs(widened, tensor.name, exprs).forget_in(fresh, domain.name)
