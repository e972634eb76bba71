"""The program under construction: tensors, statement drafts and the operands that rules read."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from polyopt.errors import UnsupportedError
from polyopt.frontend.torch._draft import Draft, Store
from polyopt.frontend.torch._value import (
    Array,
    Digit,
    Piece,
    Value,
    canonical,
    dim_index,
    read,
    stored,
)
from polyopt.frontend.torch._views import common_digits
from polyopt.ir import Access, Expr, Origin, Read, dtype
from polyopt.sets import Affine, Constraint, Interval, var

__all__ = ["Axis", "Builder", "Call", "Operand", "accumulator_dtype"]

MAX_PIECES = 8
"""A value of more pieces is copied into a tensor before it is used: each use would multiply statements."""

Operand = Value | int | float | bool


@dataclass(frozen=True, slots=True)
class Call:
    """One operator application: arguments by name with defaults filled in, and what it returns."""

    operator: str
    name: str
    arguments: Mapping[str, object]
    shapes: tuple[tuple[int, ...], ...]
    dtypes: tuple[str, ...]
    origin: Origin

    @property
    def shape(self) -> tuple[int, ...]:
        return self.shapes[0]

    @property
    def dtype(self) -> str:
        return self.dtypes[0]

    def value(self, name: str) -> Value:
        """The tensor argument `name`; refuses anything else."""
        found = self.arguments.get(name)
        if not isinstance(found, Value):
            raise self.refuse(f"argument {name!r} is {found!r}, expected a tensor")
        return found

    def values(self, name: str) -> tuple[Value, ...]:
        """The argument `name`, a list of tensors."""
        found = self.arguments.get(name)
        if not isinstance(found, (list, tuple)) or not all(isinstance(v, Value) for v in found):
            raise self.refuse(f"argument {name!r} is {found!r}, expected a list of tensors")
        return tuple(v for v in found if isinstance(v, Value))

    def optional(self, name: str) -> Value | None:
        """The tensor argument `name`, or None."""
        return None if self.arguments.get(name) is None else self.value(name)

    def operand(self, name: str) -> Operand:
        """The argument `name`, a tensor or a number."""
        found = self.arguments.get(name)
        return found if isinstance(found, Value) else self.number(name)

    def number(self, name: str, default: int | float | bool | None = None) -> int | float | bool:
        """The argument `name`, a number; `default` stands for None."""
        found = self.arguments.get(name)
        found = default if found is None else found
        if not isinstance(found, (bool, int, float)):
            raise self.refuse(f"argument {name!r} is {found!r}, expected a number")
        return found

    def integer(self, name: str, default: int | None = None) -> int:
        """The argument `name`, an integer; `default` stands for None."""
        found = self.number(name, default)
        if not isinstance(found, int):
            raise self.refuse(f"argument {name!r} is {found!r}, expected an integer")
        return found

    def integers(self, name: str, rank: int | None = None) -> tuple[int, ...]:
        """The argument `name`, a list of integers (one integer stands for a list of one), repeated to length `rank`."""
        found = self.arguments.get(name)
        items = found if isinstance(found, (list, tuple)) else [found]
        if not all(isinstance(i, int) for i in items):
            raise self.refuse(f"argument {name!r} is {found!r}, expected integers")
        whole = tuple(i for i in items if isinstance(i, int))
        return whole * rank if rank is not None and len(whole) == 1 else whole

    def flag(self, name: str) -> bool:
        """The argument `name` as a truth value; missing means false."""
        return bool(self.arguments.get(name))

    def dim(self, name: str, rank: int) -> int:
        """The dimension number `name`, counted from 0."""
        return self.integer(name) % max(rank, 1)

    def refuse(self, reason: str, *, help: str = "") -> UnsupportedError:
        """The error that this call cannot be taken in, with the module path and the source line."""
        place = f" in module {self.origin.module!r}" if self.origin.module else ""
        return UnsupportedError(
            f"{self.operator}{place}: {reason}",
            help=help,
            where=self.origin.where,
            id="torch-operator",
        )


@dataclass(frozen=True, slots=True)
class Axis:
    """One logical dimension of a loop nest: its iterators, outermost first."""

    digits: tuple[Digit, ...]

    @property
    def index(self) -> Affine:
        return dim_index(self.digits)

    @property
    def extent(self) -> int:
        return math.prod(d.extent for d in self.digits)

    @property
    def ranges(self) -> dict[str, Interval]:
        return {d.name: (0, d.extent - 1) for d in self.digits}


def accumulator_dtype(name: str) -> str:
    """The type in which PyTorch keeps sums of elements of type `name`."""
    kind = dtype(name)
    if not kind.is_float:
        return "int64"
    return "float32" if kind.element_bytes < 4 else name


@dataclass
class Builder:
    """Collects tensors and drafts.  Rules call `axis`, `cases`, `temp` and `emit`."""

    stores: dict[str, Store] = field(default_factory=dict)
    drafts: list[Draft] = field(default_factory=list)
    bound: dict[str, Array] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)

    def unique(self, wanted: str) -> str:
        """`wanted`, or `wanted_1`, ... if that name is taken."""
        name = wanted
        for k in itertools.count(1):
            if name not in self.names:
                break
            name = f"{wanted}_{k}"
        self.names.add(name)
        return name

    def store(self, wanted: str, shape: Sequence[int], dtype: str, role: str, *, free: bool = False) -> str:
        """Declare a tensor; returns its name."""
        name = self.unique(wanted)
        self.stores[name] = Store(name, tuple(shape), dtype, role, free)
        return name

    def constant(self, wanted: str, elements: Array, dtype: str) -> Value:
        """A folded constant that no expression of the indices describes: an input bound to `elements`."""
        name = self.store(wanted, elements.shape, dtype, "input")
        self.bound[name] = elements
        value = stored(name, elements.shape, dtype)
        return Value(dtype, value.dims, value.pieces, elements)

    def axis(self, prefix: str, extent: int, *uses: tuple[Value, int]) -> Axis:
        """Iterators `prefix`, `prefix_1`, ... for a dimension that `uses` (value, dimension) index as a whole."""
        candidates = [v.dims[k] for v, k in uses if v.shape[k] == extent]
        extents = [n for n in common_digits(candidates, extent) if n != 1]
        return Axis(tuple(Digit(prefix if j == 0 else f"{prefix}_{j}", n) for j, n in enumerate(extents)))

    def cases(self, value: Value, indices: Sequence[Affine], axes: Iterable[Axis]) -> list[Piece]:
        """The element of `value` at `indices`, which are expressions over the iterators of `axes`."""
        ranges: dict[str, Interval] = {}
        for a in axes:
            ranges |= a.ranges
        return read(value, indices, ranges)

    def temp(self, wanted: str, axes: Sequence[Axis], dtype: str) -> tuple[Access, Value]:
        """An intermediate tensor with one dimension per iterator: the access that writes it, and its value."""
        digits = [d for a in axes for d in a.digits]
        name = self.store(wanted, [d.extent for d in digits], dtype, "temp", free=True)
        access = Access(name, tuple(var(d.name) for d in digits))
        return access, canonical(dtype, [a.digits for a in axes], (Piece((), Read(access)),), {})

    def emit(
        self,
        call: Call,
        suffix: str,
        axes: Sequence[Axis],
        target: Access,
        operands: Sequence[Sequence[Piece]],
        make: Callable[[Sequence[Expr]], Expr],
        *,
        combine: str | None = None,
        guards: Sequence[Constraint] = (),
        runs: bool = False,
    ) -> None:
        """A statement for every non-empty combination of the operands' pieces: `target = make(operand elements)`."""
        ranges = {d.name: (0, d.extent - 1) for a in axes for d in a.digits}
        wanted = tuple(tuple(d.name for d in a.digits) for a in axes if len(a.digits) > 1) if runs else ()
        combinations = list(itertools.product(*operands))
        for k, pieces in enumerate(combinations):
            constraints = (*guards, *(c for p in pieces for c in p.constraints))
            value = make([p.expr for p in pieces])
            name = "_".join(filter(None, (call.name, suffix, f"p{k}" if len(combinations) > 1 else "")))
            draft = Draft("", ranges, constraints, target, value, combine, call.origin, wanted).simplified()
            if not draft.is_empty:
                self.drafts.append(replace(draft, name=self.unique(f"S_{name}")))

    def materialise(self, call: Call, value: Value, suffix: str = "copy") -> Value:
        """`value` copied into an intermediate tensor."""
        axes = [self.axis(f"i{k}", n, (value, k)) for k, n in enumerate(value.shape)]
        target, copied = self.temp(f"{call.name}_{suffix}", axes, value.dtype)
        self.emit(call, suffix, axes, target, [self.cases(value, [a.index for a in axes], axes)], lambda e: e[0])
        return copied

    def bounded(self, call: Call, value: Value) -> Value:
        """`value`, copied first if it has more than MAX_PIECES pieces."""
        return self.materialise(call, value) if len(value.pieces) > MAX_PIECES else value
