"""Random small programs that run: every subscript lies inside its tensor, by construction of the extents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

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


@dataclass(slots=True)
class _Builder:
    """Extents grow with every access drawn."""

    draw: st.DrawFn
    style: Style
    extents: dict[str, list[int]] = field(default_factory=dict)

    def subscript(self, ranges: Mapping[str, tuple[int, int]], tensor: str, axis: int) -> Affine:
        dims = list(ranges)
        total = affine(self.draw(st.integers(0, 1)))
        for d in self.draw(st.lists(st.sampled_from(dims), max_size=2, unique=True)) if dims else []:
            total = total + var(d) * self.draw(st.sampled_from([1, 1, 1, 2, -1]))
        kind = self.draw(st.integers(0, 11))
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
        if subscripts and self.style.gathers and self.draw(st.integers(0, 7)) == 0:
            subscripts[0] = Indirect(Access("idx", (self.subscript(ranges, "idx", 0),)))
            self.grow(tensor, 0, 3)
        return Access(tensor, tuple(subscripts))

    def source(self, ranges: Mapping[str, tuple[int, int]]) -> Expr:
        tensors = [t for t in RANKS if t != "n" or self.style.integers]
        return Read(self.access(self.draw(st.sampled_from(tensors)), ranges))

    def value(self, ranges: Mapping[str, tuple[int, int]], depth: int) -> Expr:
        what = self.draw(st.integers(0, 9 if depth else 3))
        if what <= 2:
            return self.source(ranges)
        if what == 3:
            return self.leaf(ranges)
        if what <= 6:
            op = self.draw(st.sampled_from(list(self.style.operators)))
            return Apply(op, (self.value(ranges, depth - 1), self.value(ranges, depth - 1)))
        if what == 7 and self.style.functions:
            return Apply(self.draw(st.sampled_from(list(self.style.functions))), (self.value(ranges, depth - 1),))
        if what == 8:
            test = Apply(self.draw(st.sampled_from(["<", "<=", "=="])), (self.value(ranges, 0), self.value(ranges, 0)))
            return Apply("select", (test, self.value(ranges, depth - 1), self.value(ranges, depth - 1)))
        return self.other(ranges, depth)

    def leaf(self, ranges: Mapping[str, tuple[int, int]]) -> Expr:
        by_index = self.draw(st.booleans())
        if ranges and by_index:
            return Index(var(self.draw(st.sampled_from(list(ranges)))) - 1)
        return Const(self.draw(st.sampled_from([0.5, 2.0, -1.0, 3, 0])))

    def other(self, ranges: Mapping[str, tuple[int, int]], depth: int) -> Expr:
        inner = self.value(ranges, depth - 1)
        if self.style.calls and self.draw(st.booleans()):
            return Uninterpreted("f", (inner, self.source(ranges)))
        if self.style.integers and self.draw(st.integers(0, 3)) == 0:
            return Cast(self.draw(st.sampled_from(["int32", "int8", "bool"])), inner)
        return Apply("and", (Apply("<", (inner, Const(1))), Apply("!=", (self.source(ranges), Const(0)))))


@st.composite
def runnable_programs(draw: st.DrawFn, style: Style = Style()) -> Scop:
    """One to three statements of up to three iterators; runs at SIZES."""
    builder = _Builder(draw, style)
    count = draw(st.integers(1, 3))
    shared = draw(st.integers(0, 2))
    statements = [_statement(builder, k, shared) for k in range(count)]
    context = Set.parse("N >= 1 and M >= 1", params=tuple(SIZES))
    reassociate = draw(st.booleans()) if style.reassociate is None else style.reassociate
    return Scop("random", tuple(SIZES), context, tuple(_tensors(builder)), tuple(statements), reassociate)


def _tensors(builder: _Builder) -> list[Tensor]:
    draw, style = builder.draw, builder.style
    tensors = []
    for name, rank in {**RANKS, "idx": 1}.items():
        extents = builder.extents.get(name, [1] * rank)
        shape = tuple(affine(n) for n in extents)
        if name == "idx":
            tensors.append(Tensor(name, shape, "int32", "input", "integers(0, 3)"))
        elif name == "n":
            tensors.append(Tensor(name, shape, draw(st.sampled_from(["int32", "int8", "uint8"])), "inout"))
        else:
            role = draw(st.sampled_from(list(style.roles)))
            tensors.append(Tensor(name, shape, draw(st.sampled_from(list(style.dtypes))), role))
    return tensors


def _statement(builder: _Builder, position: int, shared: int) -> Statement:
    """`shared` leading iterators have the same order entries in all statements that have them."""
    draw = builder.draw
    dims = ("i", "j", "k")[: draw(st.integers(0, 3))]
    name = f"S{position}"
    domain = Set.from_constraints(name, dims, _rows(draw, dims), tuple(SIZES))
    ranges = _ranges(domain)
    targets = [t for t in RANKS if t != "n" or builder.style.integers]
    target = builder.access(draw(st.sampled_from(targets)), ranges)
    combine = draw(st.sampled_from([None, None, "+", "+", "*", "min", "max"]))
    if combine == "*" and "*" not in builder.style.operators:
        combine = "+"
    value = builder.value(ranges, draw(st.integers(0, 2)))
    order = [var(d) * draw(st.sampled_from([1, 1, 1, -1])) for d in dims]
    if draw(st.integers(0, 3)) == 0:
        order = list(draw(st.permutations(order)))
    if dims and draw(st.integers(0, 9)) == 0:
        order.insert(0, order[-1] // 2)
    order.insert(min(shared, len(order)), affine(draw(st.integers(0, position))))
    return Statement(name, domain, tuple(order), Assign(target, value, combine))


def _rows(draw: st.DrawFn, dims: Sequence[str]) -> list[Constraint]:
    rows: list[Constraint] = []
    for k, d in enumerate(dims):
        outer = [var(x) for x in dims[:k]]
        low = draw(st.sampled_from([affine(0), affine(0), affine(1), *outer]))
        high = draw(st.sampled_from([affine(2), var("N"), var("N"), var("M"), *(x + 1 for x in outer)]))
        rows += [Constraint(var(d) - low), Constraint(high - 1 - var(d))]
        kind = draw(st.integers(0, 9))
        if kind == 0:
            rows.append(Constraint(var(d) % 2 - draw(st.integers(0, 1)), True))
        elif kind == 1 and outer:
            rows.append(Constraint(var(d) * 2 + outer[0] - draw(st.integers(0, 4))))
        elif kind == 2 and outer:
            rows.append(Constraint(affine(draw(st.integers(1, 4))) - var(d) - outer[0]))
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
