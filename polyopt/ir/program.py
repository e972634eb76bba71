"""A generated accelerator program: loops with affine bounds around instructions on affine views of buffers.

Everything is symbolic in the parameters and the surrounding loop variables, so a Program is itself a loop nest over a
larger set of cells (device memory, scratchpad, accumulator).  An instruction is a small box of **lanes**; a view says
which cell each lane point touches.  Sequential program order gives the meaning; `waits` give the order that the
machine must keep.

Rules.  Lanes of extent <= 0 make an instruction a no-op.  A reduction (`O += ...`) sums over its lanes that O lacks;
with attribute `accumulate` false (or a specification that never accumulates) it starts from the identity, else from
O's old value.  A masked instruction touches no operand outside its mask, except a body that mentions `mask`, which
runs on the whole box.  A transfer casts when the element types differ.  An operand's partition axis is axis 0 of its
buffer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from polyopt.ir.expr import Expr
from polyopt.ir.scop import Tensor
from polyopt.sets import Affine, Constraint, Set

__all__ = [
    "Buffer",
    "Instr",
    "Lane",
    "Loop",
    "Node",
    "Program",
    "View",
    "Wait",
    "instructions",
]

Attr = str | int | float | bool


@dataclass(frozen=True, slots=True)
class Buffer:
    """An on-chip array of `copies` rotating copies, each of `shape` elements; axis 0 is the partition axis.

    `offset_bytes` is where copy 0 begins within every partition (all partitions alike); copy c begins
    `c * copy_bytes` later.  In a banked memory a copy starts at a bank when `copy_bytes` is a multiple of the bank.
    """

    name: str
    memory: str
    shape: tuple[int, ...]
    dtype: str
    copies: int = 1
    offset_bytes: int = 0
    copy_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Lane:
    """One dimension of an instruction's box: 0 <= name < extent.  `role` is the specification's lane it belongs to.

    Several lanes may share a role: the specification's lane is then their row-major product.
    """

    name: str
    role: str
    extent: Affine


@dataclass(frozen=True, slots=True)
class View:
    """Cells of one operand: cell[axis] = base[axis] + sum over lanes of steps[lane][axis] * lane.

    `array` names a Buffer or an HBM Tensor; `copy` picks the rotating copy (taken modulo the number of copies).
    `steps` lists (lane name, step per axis); a lane that is not listed does not move the view (broadcast).
    `indirect` lists (axis, index view): the index view's value at the lane point is added to the cell along `axis`.
    """

    array: str
    base: tuple[Affine, ...]
    steps: tuple[tuple[str, tuple[int, ...]], ...] = ()
    copy: Affine = field(default_factory=Affine)
    indirect: tuple[tuple[int, View], ...] = ()

    @property
    def chain(self) -> tuple[View, ...]:
        """This view and the views of its data-dependent subscripts, each before its own."""
        return (self, *(v for _, index in self.indirect for v in index.chain))

    def step(self, lane: str) -> tuple[int, ...]:
        """The step per axis along `lane` (zeros when the view does not move)."""
        return next((s for n, s in self.steps if n == lane), (0,) * len(self.base))


@dataclass(frozen=True, slots=True)
class Wait:
    """Start only after earlier instructions have completed.

    `site` names an instruction site or a whole queue (then every instruction of that queue counts).
    `loop` is None: every such instance before this point of the program order.  Otherwise every such instance except
    those of the last `distance` iterations of the enclosing loop `loop`, the present one counted as the first:
    `distance` = 1 leaves out the present iteration, 2 the present and the one before, ...  Iterations are those of
    the present run of the loop: instances from before the loop was entered always count.
    """

    site: str
    loop: str | None = None
    distance: int = 0


@dataclass(frozen=True, slots=True)
class Instr:
    """One instruction site.

    site: unique name.  opcode: a specification of the machine.  queue: engine or DMA queue that issues it, in order.
    lanes: the box.  guards: the instruction is skipped unless all hold (no lanes inside).  mask: only lane points where
    all hold are touched (lane names and loop variables inside), for opcodes whose specification allows it.
    operands: (operand name of the specification, view), outputs first.  statement: the source statement, for messages.
    attrs: `form` (which body of the specification, from 0), the chosen operator of every operator slot, the value of
    every scalar slot that is an immediate (a scalar slot may be an operand instead, one value per partition),
    `accumulate`. index: the affine value (of lanes, loop variables and parameters) of a body that says `index`.
    value: for the general instruction only, the expression of one lane point; `Read(Access(operand, ()))` is an
    operand's value, and views may use lane names in any quasi-affine way in their bases; lane points run in
    lexicographic order.
    """

    site: str
    opcode: str
    queue: str
    lanes: tuple[Lane, ...]
    operands: tuple[tuple[str, View], ...]
    attrs: tuple[tuple[str, Attr], ...] = ()
    guards: tuple[Constraint, ...] = ()
    mask: tuple[Constraint, ...] = ()
    waits: tuple[Wait, ...] = ()
    index: Affine | None = None
    value: Expr | None = None
    statement: str = ""

    def operand(self, name: str) -> View:
        """The view of operand `name`; KeyError when the instruction has none."""
        for n, v in self.operands:
            if n == name:
                return v
        raise KeyError(name)

    def attr(self, name: str, default: Attr | None = None) -> Attr | None:
        return next((v for n, v in self.attrs if n == name), default)


@dataclass(frozen=True, slots=True)
class Loop:
    """for var in range(lower, upper, step): body.  `step` may be negative, then `upper` is an exclusive lower end."""

    var: str
    lower: Affine
    upper: Affine
    body: tuple[Node, ...]
    step: int = 1


Node = Loop | Instr


@dataclass(frozen=True, slots=True)
class Program:
    """A whole program for one machine.  `tensors` live in device memory; temps among them are scratch space there."""

    name: str
    target: str
    params: tuple[str, ...]
    context: Set
    tensors: tuple[Tensor, ...]
    buffers: tuple[Buffer, ...]
    body: tuple[Node, ...]

    def buffer(self, name: str) -> Buffer | None:
        return next((b for b in self.buffers if b.name == name), None)

    def tensor(self, name: str) -> Tensor | None:
        return next((t for t in self.tensors if t.name == name), None)


def instructions(nodes: tuple[Node, ...], loops: tuple[Loop, ...] = ()) -> Iterator[tuple[Instr, tuple[Loop, ...]]]:
    """Every instruction site with its enclosing loops, outermost first, in program order."""
    for node in nodes:
        if isinstance(node, Loop):
            yield from instructions(node.body, (*loops, node))
        else:
            yield node, loops
