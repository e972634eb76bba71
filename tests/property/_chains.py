"""Random programs of producers, reductions and uses: what substitution, absorption and fusion of kernels work on.

Every tensor is written as a whole before it is read, so that temps may be kept on the chip; now and then a statement
spoils the pattern (overwrites an operand, covers too little, reads a second time), and the rewriting must notice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from hypothesis import strategies as st

from polyopt.ir import Access, Apply, Assign, Cast, Const, Expr, Read, Scop, Statement, Tensor
from polyopt.sets import Affine, Constraint, Set, affine, var

SHAPES: tuple[tuple[str, ...], ...] = (("N", "M"), ("M", "N"), ("N", "N"), ("N",), ("M",), ())
OPERATORS = ("+", "-", "*", "min", "max")
NAMES = ("i", "j", "k", "l")


@dataclass(slots=True)
class _Builder:
    draw: st.DrawFn
    shapes: dict[str, tuple[str, ...]] = field(default_factory=dict)
    roles: dict[str, str] = field(default_factory=dict)
    dtypes: dict[str, str] = field(default_factory=dict)
    statements: list[Statement] = field(default_factory=list)

    def tensor(self, shape: tuple[str, ...], roles: Sequence[str]) -> str:
        name = f"T{len(self.shapes)}"
        self.shapes[name] = shape
        self.roles[name] = self.draw(st.sampled_from(roles))
        self.dtypes[name] = self.draw(st.sampled_from(["float32", "float32", "bfloat16"]))
        return name

    # -- values -------------------------------------------------------------------------------------------------------
    def read(self, dims: dict[str, str], name: str) -> Expr:
        """A cell of a whole tensor, at iterators that run over extents no larger than its own."""
        subscripts: list[Affine] = []
        for extent in self.shapes[name]:
            fitting = [d for d, e in dims.items() if e == extent]
            if not fitting:
                subscripts.append(affine(0))
                continue
            d = var(self.draw(st.sampled_from(fitting)))
            subscripts.append(self.draw(st.sampled_from([d, d, d, d, var(extent) - 1 - d, affine(0)])))
        return Read(Access(name, tuple(subscripts)))

    def source(self, dims: dict[str, str]) -> Expr:
        if self.draw(st.integers(0, 7)) == 0:
            return Const(self.draw(st.sampled_from([2.0, 0.5, -1.0])))
        names = list(self.shapes)
        latest = names[-1]
        return self.read(dims, self.draw(st.sampled_from([*names, latest, latest])))

    def value(self, dims: dict[str, str]) -> Expr:
        kind = self.draw(st.integers(0, 5))
        if kind == 0:
            return self.source(dims)
        if kind == 1:
            return Apply(self.draw(st.sampled_from(["relu", "tanh", "neg"])), (self.source(dims),))
        if kind == 2:
            return Cast("bfloat16", self.source(dims))
        return Apply(self.draw(st.sampled_from(OPERATORS)), (self.source(dims), self.source(dims)))

    def product(self, dims: dict[str, str]) -> Expr:
        """Two factors that both move along the innermost iterator, where there are such tensors."""
        *_, reduced = dims
        names = [n for n, shape in self.shapes.items() if dims[reduced] in shape]
        factors: list[Expr] = []
        for _ in range(2):
            name = self.draw(st.sampled_from(names))
            shape, free = self.shapes[name], [d for d in dims if d != reduced]
            axis = self.draw(st.sampled_from([k for k, e in enumerate(shape) if e == dims[reduced]]))
            subscripts = []
            for k, extent in enumerate(shape):
                fitting = [d for d in free if dims[d] == extent]
                subscripts.append(
                    var(reduced if k == axis else self.draw(st.sampled_from(fitting)))
                    if k == axis or fitting
                    else affine(0)
                )
            factors.append(Read(Access(name, tuple(subscripts))))
        return Apply("*", (factors[0], factors[1]))

    # -- statements ---------------------------------------------------------------------------------------------------
    def add(self, dims: dict[str, str], order: Sequence[Affine], body: Assign, more: Sequence[Constraint] = ()) -> None:
        name = f"S{len(self.statements)}"
        rows = [c for d, e in dims.items() for c in (Constraint(var(d)), Constraint(var(e) - 1 - var(d)))]
        domain = Set.from_constraints(name, tuple(dims), [*rows, *more], ("N", "M"))
        self.statements.append(Statement(name, domain, tuple(order), body))

    def phase(self) -> Affine:
        """The next place in the outermost order, or now and then the present one once more: then what is written
        there has a value from outside, since reads may come first.
        """
        last = max((s.order[0].const for s in self.statements), default=0)
        if self.draw(st.integers(0, 6)):
            return affine(last + 1)
        for s in self.statements:
            if s.order[0].const == last:
                self.roles[s.assign.target.tensor] = "inout"
        return affine(last)

    def target(self, name: str, dims: dict[str, str]) -> Access:
        return Access(name, tuple(var(d) for d in list(dims)[: len(self.shapes[name])]))

    def map(self) -> None:
        shape = self.draw(st.sampled_from(SHAPES))
        dims = dict(zip(NAMES, shape, strict=False))
        value = self.value(dims)
        name = self.tensor(shape, ("temp", "temp", "output"))
        self.add(dims, [self.phase(), *map(var, dims)], Assign(self.target(name, dims), value))

    def reduce(self) -> None:
        """An initialisation and a reduction, in one loop nest or in two, now and then with differing domains."""
        shape = self.draw(st.sampled_from(SHAPES))
        outer = dict(zip(NAMES, shape, strict=False))
        inner = {**outer, NAMES[len(shape)]: self.draw(st.sampled_from(["N", "M"]))}
        start = self.value(outer) if self.draw(st.booleans()) else Const(self.draw(st.sampled_from([0.0, 0.0, 1.0])))
        term = self.product(inner) if self.draw(st.booleans()) else self.value(inner)
        odd = self.draw(st.integers(0, 5)) == 0
        name = self.tensor(shape, ("inout",) if odd else ("temp", "output"))
        target, place = self.target(name, outer), self.phase()
        fused = bool(shape) and self.draw(st.booleans())
        first = [place, *map(var, outer)]
        second = (
            [place, *map(var, outer), affine(1), var(NAMES[len(shape)])] if fused else [place + 1, *map(var, inner)]
        )
        cut = [Constraint(var("i") - 1)] if odd and shape else []
        combine = self.draw(st.sampled_from(["+", "+", "+", "max", "min", "*"]))
        whole, part = (cut, []) if self.draw(st.booleans()) else ([], cut)
        self.add(outer, first, Assign(target, start), whole)
        self.add(inner, second, Assign(target, term, combine), part)

    def use(self) -> None:
        """An elementwise use of the latest tensor, perhaps transposed or reversed."""
        latest = list(self.shapes)[-1]
        shape = self.shapes[latest]
        order = self.draw(st.permutations(range(len(shape))))
        dims = dict(zip(NAMES, (shape[k] for k in order), strict=False))
        names = list(dims)
        subscripts = [var(names[order.index(k)]) for k in range(len(shape))]
        if subscripts and self.draw(st.integers(0, 3)) == 0:
            subscripts[0] = var(shape[0]) - 1 - subscripts[0]
        read: Expr = Read(Access(latest, tuple(subscripts)))
        value = Apply("relu", (read,)) if self.draw(st.booleans()) else Apply("-", (read, self.source(dims)))
        name = self.tensor(tuple(dims.values()), ("temp", "output"))
        self.add(dims, [self.phase(), *map(var, dims)], Assign(self.target(name, dims), value))

    def spoil(self) -> None:
        """Overwrite an input that others read."""
        name = self.draw(st.sampled_from([n for n in self.shapes if self.roles[n] == "inout"]))
        dims = dict(zip(NAMES, self.shapes[name], strict=False))
        self.add(dims, [self.phase(), *map(var, dims)], Assign(self.target(name, dims), Const(3.0)))


@st.composite
def chains(draw: st.DrawFn) -> Scop:
    """Two to four producers or reductions over N and M; runs at sizes of at least 1."""
    builder = _Builder(draw)
    for shape in (("N", "M"), ("M", "N"), ("N",)):
        builder.tensor(shape, ("input", "inout"))
    for _ in range(draw(st.integers(2, 4))):
        kind = draw(st.integers(0, 9))
        if kind == 0 and "inout" in builder.roles.values():
            builder.spoil()
        elif kind <= 2:
            builder.map()
        elif kind <= 5:
            builder.use()
        else:
            builder.reduce()
            if kind >= 8:
                builder.use()
    last = list(builder.shapes)[-1]
    if builder.roles[last] == "temp":
        builder.roles[last] = "output"
    tensors = tuple(
        Tensor(n, tuple(var(e) for e in shape), builder.dtypes[n], builder.roles[n])
        for n, shape in builder.shapes.items()
    )
    context = Set.parse("N >= 1 and M >= 1", params=("N", "M"))
    return Scop(
        "chain", ("N", "M"), context, tensors, tuple(builder.statements), draw(st.sampled_from([True, True, False]))
    )
