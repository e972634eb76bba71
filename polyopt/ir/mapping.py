"""A Mapping: how every statement runs on a machine, before code is generated.

Per kernel: an instruction for each operation, which dimensions are lanes, the tile loops, where each operand's copy
stands, transposes, buffer counts.  Everything that a cost model needs and a generator follows is here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from polyopt.ir.expr import Access, Const
from polyopt.ir.scop import Statement
from polyopt.sets import Affine, Constraint, var

__all__ = [
    "Dim",
    "Kernel",
    "Mapping",
    "MappingNode",
    "MicroOp",
    "Placement",
    "Sequential",
    "Span",
    "Temp",
    "Term",
    "TileLoop",
    "Window",
    "kernels",
]


@dataclass(frozen=True, slots=True)
class Temp:
    """An on-chip value of one kernel, one element per point of `dims`."""

    name: str
    dims: tuple[str, ...]
    dtype: str


Term = Access | Temp | Const


@dataclass(frozen=True, slots=True)
class MicroOp:
    """One operation of a statement after covering its expression with instruction specifications.

    operands and scalars: (name in the specification, term); slots: (operator slot, chosen operator); lanes: (lane of
    the specification, dimensions that feed it).  target: a temp, or the statement's own access for the last operation.
    mask and index are in terms of dimensions.  depth: how many of the kernel's loops enclose it; after: it stands
    behind the loops at that depth, not before them.
    """

    spec: str
    form: int
    engine: str
    operands: tuple[tuple[str, Term], ...]
    target: Term
    target_name: str
    scalars: tuple[tuple[str, Term], ...] = ()
    slots: tuple[tuple[str, str], ...] = ()
    mask: tuple[Constraint, ...] = ()
    index: Affine | None = None
    lanes: tuple[tuple[str, tuple[str, ...]], ...] = ()
    depth: int = 0
    after: bool = False


@dataclass(frozen=True, slots=True)
class Dim:
    """A dimension of a kernel: `tile` points at once, `extent_hint` points at the sizes the mapping was made for."""

    name: str
    tile: int
    extent_hint: int
    reduced: bool = False


@dataclass(frozen=True, slots=True)
class TileLoop:
    """One loop of a kernel: `var` runs over starts of steps of `dim`; bounds (upper excluded) in terms of what is
    outside.
    """

    dim: str
    var: str
    step: int
    lower: Affine
    upper: Affine
    trips_hint: float


@dataclass(frozen=True, slots=True)
class Window:
    """A subscript along which several dimensions move: `name` stands for its value `expr` on axis `axis` of the
    access.
    """

    axis: int
    name: str
    expr: Affine


@dataclass(frozen=True, slots=True)
class Span:
    """The points of `dim` (a dimension or a window) that a buffer covers: `size` at most, from `start` up to `stop`
    (excluded); the points from `copy_start` up to `copy_stop` exist in device memory, the others are filled.
    """

    dim: str
    size: int
    start: Affine
    stop: Affine
    copy_start: Affine
    copy_stop: Affine


@dataclass(frozen=True, slots=True)
class Placement:
    """Where a term lives on the chip.

    depth: how many of the kernel's loops enclose its copy.  partition: the dimension on the partitions (None: one
    partition), in steps of `partition_tile`.  spans: the covered points of every dimension it moves along.
    through: for an access whose contiguous dimension lies on the partitions, the dimension on the partitions of the
    copy that is then transposed.  fill: the value outside `mask` (None: the copy covers the whole box).
    """

    term: Term
    memory: str
    dtype: str
    depth: int
    copies: int
    partition: str | None
    partition_tile: int
    spans: tuple[Span, ...]
    direction: str = "temp"
    through: str | None = None
    mask: tuple[Constraint, ...] = ()
    fill: float | None = None
    windows: tuple[Window, ...] = ()

    @property
    def copied(self) -> Access:
        """The access with every window replaced by its own name."""
        if not isinstance(self.term, Access):
            raise TypeError(f"{self.term} is no access")
        names = {w.axis: var(w.name) for w in self.windows}
        subscripts = tuple(names.get(axis, s) for axis, s in enumerate(self.term.subscripts))
        return Access(self.term.tensor, subscripts)

    def span(self, dim: str) -> Span | None:
        return next((s for s in self.spans if s.dim == dim), None)


@dataclass(frozen=True, slots=True)
class Kernel:
    """One statement on the machine.

    outer: iterators that surrounding sequential loops fix.  spans: (depth, what each dimension covers inside that many
    loops), for every depth at which operations stand.  guards: constraints on outer iterators without which nothing
    runs. remark: why the statement runs on the general engine (then there are no operations), else empty.
    """

    statement: Statement
    outer: tuple[str, ...]
    dims: tuple[Dim, ...] = ()
    loops: tuple[TileLoop, ...] = ()
    reduce_depth: int = 0
    ops: tuple[MicroOp, ...] = ()
    placements: tuple[Placement, ...] = ()
    accumulator: Temp | None = None
    spans: tuple[tuple[int, tuple[Span, ...]], ...] = ()
    guards: tuple[Constraint, ...] = ()
    remark: str = ""
    estimated_ns: float = 0.0
    bound_by: str = ""

    def placement(self, term: Term) -> Placement:
        return next(p for p in self.placements if p.term == term)

    def span(self, depth: int, dim: str) -> Span:
        """What `dim` covers inside the first `depth` loops."""
        return next(s for d, spans in self.spans if d == depth for s in spans if s.dim == dim)

    def dim(self, name: str) -> Dim:
        return next(d for d in self.dims if d.name == name)


@dataclass(frozen=True, slots=True)
class Sequential:
    """A loop whose iterations keep their order; `iterators`: (statement, its iterator of this loop)."""

    var: str
    lower: Affine
    upper: Affine
    iterators: tuple[tuple[str, str], ...]
    body: tuple[MappingNode, ...]


MappingNode = Kernel | Sequential


@dataclass(frozen=True, slots=True)
class Mapping:
    """All kernels of a program in execution order."""

    name: str
    target: str
    nodes: tuple[MappingNode, ...]


def kernels(nodes: tuple[MappingNode, ...]) -> Iterator[Kernel]:
    """Every kernel, in execution order."""
    for node in nodes:
        if isinstance(node, Sequential):
            yield from kernels(node.body)
        else:
            yield node
