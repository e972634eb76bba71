"""Random small programs that run: every subscript lies inside its tensor, by construction of the extents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Protocol, TypeVar

from hypothesis import strategies as st

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
    Tensor,
    Uninterpreted,
)
from polyopt.sets import Affine, Constraint, Set, affine, interval, var

RANKS = {"A": 1, "B": 2, "C": 2, "s": 0, "t": 1, "n": 1}
"""Tensors of a random program; `n` and `idx` hold integers, `t` and `s` may be temps."""
SIZES = {"N": 4, "M": 3}
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Style:
    """What a random program may contain.

    functions: unary operators on floats.  dtypes: of the float tensors.  roles: of the tensors but `n` and `idx`.
    calls: uninterpreted functions.  reassociate: None is either.
    """

    functions: Sequence[str] = ("tanh", "relu", "abs", "neg")
    dtypes: Sequence[str] = ("float32",)
    operators: Sequence[str] = ("+", "-", "*", "min", "max")
    integers: bool = True
    gathers: bool = True
    calls: bool = False
    roles: Sequence[str] = ("inout",)
    reassociate: bool | None = None


class Choices(Protocol):
    """Where the choices come from."""

    def number(self, low: int, high: int) -> int:
        """low, ..., high."""

    def pick(self, things: Sequence[T]) -> T:
        """One of them."""

    def some(self, things: Sequence[T], most: int) -> list[T]:
        """Up to `most` different ones, in any order."""

    def shuffled(self, things: Sequence[T]) -> list[T]:
        """All of them, in any order."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """Choices of hypothesis: failures shrink, but many examples are simple."""

    draw: st.DrawFn

    def number(self, low: int, high: int) -> int:
        return self.draw(st.integers(low, high))

    def pick(self, things: Sequence[T]) -> T:
        return self.draw(st.sampled_from(list(things)))

    def some(self, things: Sequence[T], most: int) -> list[T]:
        return self.draw(st.lists(st.sampled_from(list(things)), max_size=most, unique=True)) if things else []

    def shuffled(self, things: Sequence[T]) -> list[T]:
        return list(self.draw(st.permutations(list(things))))


@dataclass(frozen=True, slots=True)
class Seeded:
    """Choices of a random generator: every program is as rich as the next."""

    random: Random

    def number(self, low: int, high: int) -> int:
        return self.random.randint(low, high)

    def pick(self, things: Sequence[T]) -> T:
        return self.random.choice(list(things))

    def some(self, things: Sequence[T], most: int) -> list[T]:
        return self.random.sample(list(things), min(len(things), self.random.randint(0, most)))

    def shuffled(self, things: Sequence[T]) -> list[T]:
        return self.random.sample(list(things), len(things))


@dataclass(slots=True)
class _Builder:
    """Extents grow with every access drawn."""

    choose: Choices
    style: Style
    extents: dict[str, list[int]] = field(default_factory=dict)

    def subscript(self, ranges: Mapping[str, tuple[int, int]], tensor: str, axis: int) -> Affine:
        dims = list(ranges)
        total = affine(self.choose.number(0, 1))
        for d in self.choose.some(dims, 2):
            total = total + var(d) * self.choose.pick([1, 1, 1, 2, -1])
        kind = self.choose.number(0, 11)
        if kind == 0:
            total = total % 2
        elif kind == 1:
            total = total // 2
        low, high = interval(total, dict(ranges))
        assert low is not None and high is not None
        self.grow(tensor, axis, high - min(low, 0) + 1)
        return total - min(low, 0)

    def grow(self, tensor: str, axis: int, extent: int) -> None:
        extents = self.extents.setdefault(tensor, [1] * RANKS.get(tensor, 1))
        extents[axis] = max(extents[axis], extent)

    def access(self, tensor: str, ranges: Mapping[str, tuple[int, int]]) -> Access:
        subscripts: list[Affine | Indirect] = [self.subscript(ranges, tensor, axis) for axis in range(RANKS[tensor])]
        if subscripts and self.style.gathers and self.choose.number(0, 7) == 0:
            subscripts[0] = Indirect(Access("idx", (self.subscript(ranges, "idx", 0),)))
            self.grow(tensor, 0, 3)
        return Access(tensor, tuple(subscripts))

    def source(self, ranges: Mapping[str, tuple[int, int]]) -> Expr:
        tensors = [t for t in RANKS if t != "n" or self.style.integers]
        return Read(self.access(self.choose.pick(tensors), ranges))

    def value(self, ranges: Mapping[str, tuple[int, int]], depth: int) -> Expr:
        if depth == 0:
            return self.leaf(ranges) if self.choose.number(0, 4) == 0 else self.source(ranges)
        what = self.choose.number(2, 9)
        if what <= 6:
            op = self.choose.pick(list(self.style.operators))
            return Apply(op, (self.value(ranges, depth - 1), self.value(ranges, depth - 1)))
        if what == 7 and self.style.functions:
            return Apply(self.choose.pick(list(self.style.functions)), (self.value(ranges, depth - 1),))
        if what == 8:
            test = Apply(self.choose.pick(["<", "<=", "=="]), (self.value(ranges, 0), self.value(ranges, 0)))
            return Apply("select", (test, self.value(ranges, depth - 1), self.value(ranges, depth - 1)))
        return self.other(ranges, depth)

    def leaf(self, ranges: Mapping[str, tuple[int, int]]) -> Expr:
        by_index = self.choose.number(0, 1) == 1
        if ranges and by_index:
            return Index(var(self.choose.pick(list(ranges))) - 1)
        return Const(self.choose.pick([0.5, 2.0, -1.0, 3, 0]))

    def other(self, ranges: Mapping[str, tuple[int, int]], depth: int) -> Expr:
        inner = self.value(ranges, depth - 1)
        if self.style.calls and self.choose.number(0, 1) == 1:
            return Uninterpreted("f", (inner, self.source(ranges)))
        if self.style.integers and self.choose.number(0, 3) == 0:
            return Cast(self.choose.pick(["int32", "int8", "bool"]), inner)
        return Apply("and", (Apply("<", (inner, Const(1))), Apply("!=", (self.source(ranges), Const(0)))))


@st.composite
def runnable_programs(draw: st.DrawFn, style: Style = Style()) -> Scop:
    """One to three statements of up to three iterators; runs at SIZES."""
    return make_program(Drawn(draw), style)


def make_program(choose: Choices, style: Style) -> Scop:
    builder = _Builder(choose, style)
    count = choose.pick([2, 1, 3])
    shared = choose.number(0, 2)
    statements = [_statement(builder, k, shared) for k in range(count)]
    context = Set.parse("N >= 1 and M >= 1", params=tuple(SIZES))
    reassociate = choose.number(0, 1) == 1 if style.reassociate is None else style.reassociate
    return Scop("random", tuple(SIZES), context, tuple(_tensors(builder)), tuple(statements), reassociate)


def _tensors(builder: _Builder) -> list[Tensor]:
    choose, style = builder.choose, builder.style
    tensors = []
    for name, rank in {**RANKS, "idx": 1}.items():
        extents = builder.extents.get(name, [1] * rank)
        shape = tuple(affine(n) for n in extents)
        if name == "idx":
            tensors.append(Tensor(name, shape, "int32", "input", "integers(0, 3)"))
        elif name == "n":
            tensors.append(Tensor(name, shape, choose.pick(["int32", "int8", "uint8"]), "inout"))
        else:
            role = choose.pick(list(style.roles))
            tensors.append(Tensor(name, shape, choose.pick(list(style.dtypes)), role))
    return tensors


def _statement(builder: _Builder, position: int, shared: int) -> Statement:
    """`shared` leading iterators have the same order entries in all statements that have them."""
    choose = builder.choose
    dims = ("i", "j", "k")[: choose.pick([2, 1, 3, 2, 0])]
    name = f"S{position}"
    domain = Set.from_constraints(name, dims, _rows(choose, dims), tuple(SIZES))
    ranges = _ranges(domain)
    targets = [t for t in RANKS if t != "n" or builder.style.integers]
    target = builder.access(choose.pick(targets), ranges)
    combine = choose.pick([None, None, "+", "+", "*", "min", "max"])
    if combine == "*" and "*" not in builder.style.operators:
        combine = "+"
    value = builder.value(ranges, choose.pick([1, 0, 2, 1, 2]))
    order = [var(d) * choose.pick([1, 1, 1, -1]) for d in dims]
    if choose.number(0, 3) == 0:
        order = list(choose.shuffled(order))
    if dims and choose.number(0, 9) == 0:
        order.insert(0, order[-1] // 2)
    order.insert(min(shared, len(order)), affine(choose.number(0, position)))
    return Statement(name, domain, tuple(order), Assign(target, value, combine))


def _rows(choose: Choices, dims: Sequence[str]) -> list[Constraint]:
    rows: list[Constraint] = []
    for k, d in enumerate(dims):
        outer = [var(x) for x in dims[:k]]
        low = choose.pick([affine(0), affine(0), affine(1), *outer])
        high = choose.pick([affine(2), var("N"), var("N"), var("M"), *(x + 1 for x in outer)])
        rows += [Constraint(var(d) - low), Constraint(high - 1 - var(d))]
        kind = choose.number(0, 9)
        if kind == 0:
            rows.append(Constraint(var(d) % 2 - choose.number(0, 1), True))
        elif kind == 1 and outer:
            rows.append(Constraint(var(d) * 2 + outer[0] - choose.number(0, 4)))
        elif kind == 2 and outer:
            rows.append(Constraint(affine(choose.number(1, 4)) - var(d) - outer[0]))
    return rows


def _ranges(domain: Set) -> dict[str, tuple[int, int]]:
    """Inclusive range of every iterator at SIZES; (0, 0) for a domain without points."""
    fixed = domain.fix(SIZES)
    if fixed.is_empty():
        return dict.fromkeys(domain.dims, (0, 0))
    found: dict[str, tuple[int, int]] = {}
    for d in domain.dims:
        low, high = fixed.bounds(d)
        found[d] = low.evaluate(SIZES), high.evaluate(SIZES)
    return found
