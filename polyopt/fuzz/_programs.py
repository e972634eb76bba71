"""Programs at random, valid by construction: domains first, then accesses whose images give tensors their shapes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from hypothesis import strategies as st

from polyopt.ir import (
    Access,
    Apply,
    Assign,
    Const,
    Expr,
    Index,
    Indirect,
    OpaqueCall,
    Read,
    Scop,
    Statement,
    Tensor,
)
from polyopt.sets import Affine, Constraint, Map, Set, affine, maximum, minimum, select, var

__all__ = ["ITERATORS", "programs"]

ITERATORS = ("i", "j", "k", "l")
RANKS = {"A": 1, "B": 2, "C": 2, "s": 0, "n": 1}
"""Tensors that are read and written; `n` and `C` may hold integers.  `p` holds subscripts and is only read."""

FLOATS, INTEGERS = ("float32",), ("int32", "int8", "uint8")
DEPTHS = (1, 2, 2, 2, 3, 1, 2, 3, 0, 4)
COUNTS = (1, 2, 2, 3, 4)
"""Simple ones first: failures shrink to them."""
REACH = 4
"""A gather's index tensor holds values below this."""


def chance(draw: st.DrawFn, percent: int) -> bool:
    """True in so many cases of a hundred; False is the simpler one."""
    return draw(st.integers(0, 99)) >= 100 - percent


@dataclass(slots=True)
class _Builder:
    """extents: for each tensor and axis, what its accesses need.  sizes: the context alone."""

    draw: st.DrawFn
    params: tuple[str, ...]
    context: Set
    extents: dict[str, list[list[Affine]]] = field(default_factory=dict)

    def pick(self, things: Sequence[Affine | str | int | float | None]) -> object:
        return self.draw(st.sampled_from(list(things)))

    # -- domains ------------------------------------------------------------------------------------------------------
    def domain(self, name: str, dims: Sequence[str]) -> Set:
        rows = [row for k in range(len(dims)) for row in self._loop(dims, k)]
        domain = Set.from_constraints(name, dims, rows, self.params)
        if dims and chance(self.draw, 30):
            domain = domain.intersect(self._union(name, dims))
        if chance(self.draw, 7):
            wrong = Constraint(-var(dims[0]) - 1) if dims else Constraint(affine(-1))
            domain = domain.constrain([wrong])
        return domain.intersect_params(self.context)

    def _loop(self, dims: Sequence[str], k: int) -> list[Constraint]:
        draw, d, outer = self.draw, dims[k], [var(x) for x in dims[:k]]
        deep = len(dims) >= 3
        low = draw(st.sampled_from([affine(0), affine(0), affine(1), *outer]))
        highs = [affine(2), affine(3)] if deep and k else [affine(3), *map(affine, self.params * 2)]
        high = draw(st.sampled_from([*highs, *(x + 1 for x in outer[:1])]))
        rows = [Constraint(var(d) - low), Constraint(high - 1 - var(d))]
        if chance(draw, 9):
            rows.append(Constraint(var(d) % draw(st.integers(2, 3)) - draw(st.integers(0, 1)), True))
        if chance(draw, 8):
            rows.append(Constraint(affine(draw(st.integers(1, 2))) - var(d) // 2))
        if outer and chance(draw, 12):
            rows.append(Constraint(affine(draw(st.integers(2, 5))) - var(d) - outer[0]))
        return rows

    def _union(self, name: str, dims: Sequence[str]) -> Set:
        """Two half spaces: what they leave out is a hole or a corner."""
        draw = self.draw
        a = var(draw(st.sampled_from(list(dims))))
        b = var(draw(st.sampled_from(list(dims))))
        first = draw(st.sampled_from([Constraint(-a), Constraint(b - a - 1), Constraint(affine(1) - a - b)]))
        second = draw(st.sampled_from([Constraint(a - 2), Constraint(a - b), Constraint(a + b - 3)]))
        parts = [Set.from_constraints(name, dims, [row], self.params) for row in (first, second)]
        return parts[0].union(parts[1])

    # -- accesses -----------------------------------------------------------------------------------------------------
    def subscript(self, domain: Set, tensor: str, axis: int) -> Affine:
        draw = self.draw
        total = affine(draw(st.integers(0, 1)))
        for d in draw(st.lists(st.sampled_from(domain.dims), max_size=2, unique=True)) if domain.dims else []:
            total = total + var(d) * draw(st.sampled_from([1, 1, 1, 2, -1]))
        if self.params and chance(draw, 10):
            total = affine(self.params[0]) - total
        if chance(draw, 12):
            total = total % draw(st.integers(2, 3))
        elif chance(draw, 12):
            total = total // 2
        elif chance(draw, 8):
            total = draw(st.sampled_from([maximum(total, affine(0)), minimum(total, affine(2))]))
        elif domain.dims and chance(draw, 6):
            total = select([Constraint(var(domain.dims[0]) - 1)], total, affine(0))
        low, high = _image(domain, total)
        self.extents.setdefault(tensor, [[] for _ in range(RANKS.get(tensor, 1))])[axis].append(high - low + 1)
        return total - low

    def access(self, domain: Set, tensor: str) -> Access:
        self.extents.setdefault(tensor, [[] for _ in range(RANKS[tensor])])
        subscripts: list[Affine | Indirect] = [self.subscript(domain, tensor, axis) for axis in range(RANKS[tensor])]
        if subscripts and chance(self.draw, 6):
            subscripts[0] = Indirect(Access("p", (self.subscript(domain, "p", 0),)))
            self.extents[tensor][0].append(affine(REACH))
        return Access(tensor, tuple(subscripts))

    # -- values -------------------------------------------------------------------------------------------------------
    def value(self, domain: Set, depth: int) -> Expr:
        draw = self.draw
        what = draw(st.integers(0, 9)) if depth else draw(st.sampled_from([10, 10, 10, 11, 12]))
        if what <= 5:
            op = draw(st.sampled_from(["+", "+", "-", "*", "min", "max"]))
            return Apply(op, (self.value(domain, depth - 1), self.value(domain, depth - 1)))
        if what == 6:
            return Apply(draw(st.sampled_from(["neg", "abs", "relu"])), (self.value(domain, depth - 1),))
        if what == 7:
            test = Apply(draw(st.sampled_from(["<", "<=", "==", "!="])), (self.value(domain, 0), self.value(domain, 0)))
            return Apply("select", (test, self.value(domain, depth - 1), self.value(domain, depth - 1)))
        if what == 11 and domain.dims:
            return Index(var(draw(st.sampled_from(domain.dims))) - 1)
        if what == 12:
            return Const(draw(st.sampled_from([1, 2, -1, 3])))
        return Read(self.access(domain, draw(st.sampled_from(list(RANKS)))))


def _image(domain: Set, expr: Affine) -> tuple[Affine, Affine]:
    """The smallest and the largest value of an expression, in terms of the sizes; (0, 0) where there is no instance."""
    if domain.is_empty():
        return expr, expr
    return Map.from_exprs(domain, "", [expr]).range(["c"]).bounds("c")


@st.composite
def programs(draw: st.DrawFn) -> Scop:
    """One to four statements of up to four iterators, with at most two sizes."""
    params = draw(st.sampled_from([("N",), ("N", "M"), ()]))
    bounds = [Constraint(var(p) - draw(st.sampled_from([1, 0, 2]))) for p in params]
    context = Set.from_constraints("", (), bounds, params)
    builder = _Builder(draw, params, context)
    count = draw(st.sampled_from(COUNTS))
    shared = draw(st.integers(0, 2))
    statements = [_statement(builder, k, shared) for k in range(count)]
    return Scop("fuzz", params, context, _tensors(builder), tuple(statements), draw(st.booleans()))


def _statement(builder: _Builder, position: int, shared: int) -> Statement:
    draw, name = builder.draw, f"S{position}"
    dims = ITERATORS[: draw(st.sampled_from(DEPTHS))]
    domain = builder.domain(name, dims)
    order = _order(draw, dims, position, shared)
    if chance(draw, 5):
        names = draw(st.lists(st.sampled_from(list(RANKS)), min_size=1, max_size=2, unique=True))
        for n in names:
            builder.extents.setdefault(n, [[] for _ in range(RANKS[n])])
        return Statement(name, domain, order, OpaqueCall(tuple(names), tuple(names[:1])))
    target = builder.access(domain, draw(st.sampled_from(list(RANKS))))
    combine = draw(st.sampled_from([None, None, None, "+", "+", "*", "max", "min"]))
    value = builder.value(domain, draw(st.sampled_from([1, 2, 1, 0])))
    if combine is None and chance(draw, 10):
        test = Apply(draw(st.sampled_from(["<", "!="])), (Read(builder.access(domain, "A")), Const(1)))
        value = Apply("select", (test, value, Read(target)))
    return Statement(name, domain, order, Assign(target, value, combine))


def _order(draw: st.DrawFn, dims: Sequence[str], position: int, shared: int) -> tuple[Affine, ...]:
    entries = [var(d) * draw(st.sampled_from([1, 1, 1, -1])) for d in dims]
    if chance(draw, 15):
        entries = list(draw(st.permutations(entries)))
    if len(dims) >= 2 and chance(draw, 12):
        entries[0] = entries[0] + entries[1]  # skewed: still tells instances apart
    if dims and chance(draw, 8):
        entries.insert(0, entries[-1] // 2)
    entries.insert(min(shared, len(entries)), affine(draw(st.integers(0, position))))
    return tuple(entries)


def _tensors(builder: _Builder) -> tuple[Tensor, ...]:
    draw = builder.draw
    found: list[Tensor] = []
    for name, axes in builder.extents.items():
        shape = tuple(_extent(builder, needs) for needs in axes)
        if name == "p":
            found.append(Tensor(name, shape, "int32", "input", f"integers(0, {REACH - 1})"))
            continue
        whole = name == "n" or (name == "C" and draw(st.booleans()))
        dtype = draw(st.sampled_from(INTEGERS if whole else FLOATS))
        found.append(Tensor(name, shape, dtype, "inout"))
    return tuple(sorted(found, key=lambda t: t.name))


def _extent(builder: _Builder, needs: Sequence[Affine]) -> Affine:
    unique: Mapping[Affine, None] = dict.fromkeys(needs)
    return maximum(affine(1), *unique)
