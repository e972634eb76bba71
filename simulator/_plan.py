"""A Program at fixed sizes: expressions with the sizes put in, arrays with addresses, sites with their parts."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import NoReturn

from polyopt.errors import InputError, InternalError, ProgramError
from polyopt.ir import dtype, substitute_expr
from polyopt.ir.program import Instr, Loop, Node, Program, View
from polyopt.machine import Body, Engine, InstructionSpec, Machine, Memory, OperandSpec
from polyopt.sets import Affine, Constraint, Interval, interval, simplify

__all__ = [
    "INDEX_SPEC",
    "ArrayPlan",
    "LoopPlan",
    "OperandPlan",
    "Plan",
    "SitePlan",
    "fail",
    "make_plan",
    "operand_spec",
    "sites",
]


@dataclass(frozen=True, slots=True, eq=False)
class ArrayPlan:
    """A buffer or tensor.  `value_strides` count elements, `cell_strides` count cells: copy first, then the axes.

    Cells are what ownership and races are kept for: the elements of a tensor; in an on-chip memory the pieces of
    `unit_bytes` at physical addresses, `cells_per_element` of them for one element, so that buffers which share bytes
    share cells.  `space` names the address space: the memory, or the tensor itself.
    """

    name: str
    owner: int
    memory: Memory
    is_tensor: bool
    role: str
    dtype: str
    shape: tuple[int, ...]
    copies: int
    value_strides: tuple[int, ...]
    space: str
    cell_offset: int
    cell_strides: tuple[int, ...]
    cells_per_element: int
    copy_bytes: int
    offset_bytes: int

    @property
    def element_bytes(self) -> int:
        return dtype(self.dtype).element_bytes

    @property
    def elements(self) -> int:
        return self.copies * math.prod(self.shape)

    @property
    def has_partitions(self) -> bool:
        return not self.is_tensor and self.memory.partitions > 1


@dataclass(frozen=True, slots=True, eq=False)
class OperandPlan:
    """One view.  `steps`: per lane of the site, the step per axis.  `first`: where its numbers begin in a site's tuple
    of evaluated bases: one per axis, then the copy.  `indices`: axes with
    data-dependent subscripts and their views.
    """

    name: str
    array: ArrayPlan
    spec: OperandSpec
    writes: bool
    base: tuple[Affine, ...]
    copy: Affine
    steps: tuple[tuple[int, ...], ...]
    first: int
    indices: tuple[tuple[int, OperandPlan], ...] = ()

    @property
    def chain(self) -> tuple[OperandPlan, ...]:
        """This view and the views of its data-dependent subscripts, in the order of their numbers."""
        return (self, *(p for _, index in self.indices for p in index.chain))


@dataclass(frozen=True, slots=True, eq=False)
class SitePlan:
    """One instruction site.  `operands`: outputs first.  `engine`: None on a transfer queue.  `loops`: around it."""

    number: int
    instr: Instr
    spec: InstructionSpec
    body: Body
    engine: Engine | None
    lanes: tuple[str, ...]
    roles: tuple[str, ...]
    extents: tuple[Affine, ...]
    operands: tuple[OperandPlan, ...]
    guards: tuple[Constraint, ...]
    mask: tuple[Constraint, ...]
    index: Affine | None
    loops: tuple[str, ...]
    ranges: Mapping[str, Interval]
    sizes: Mapping[str, int]

    @property
    def name(self) -> str:
        return self.instr.site

    @property
    def all_views(self) -> tuple[OperandPlan, ...]:
        """Every view, data-dependent subscripts included, in the order of their numbers."""
        return tuple(v for o in self.operands for v in o.chain)

    @property
    def output(self) -> OperandPlan:
        return self.operands[0]

    @property
    def masks_operands(self) -> bool:
        """Whether the mask restricts what the operands touch (a body that says `mask` runs on the whole box)."""
        return bool(self.mask) and not self.body_uses_mask

    @property
    def body_uses_mask(self) -> bool:
        return "mask" in self.body.text


@dataclass(frozen=True, slots=True, eq=False)
class LoopPlan:
    """for var in range(lower, upper, step)."""

    number: int
    var: str
    lower: Affine
    upper: Affine
    step: int
    body: tuple[LoopPlan | SitePlan, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """A whole program at `sizes`.  `spaces`: address space -> number of cells."""

    program: Program
    machine: Machine
    sizes: Mapping[str, int]
    arrays: Mapping[str, ArrayPlan]
    body: tuple[LoopPlan | SitePlan, ...]
    sites: tuple[SitePlan, ...]
    spaces: Mapping[str, int]


INDEX_SPEC = OperandSpec("index", (), None, ("int64", "int32", "int16", "int8", "uint8"))
"""What a data-dependent subscript may be."""


def fail(site: SitePlan, at: Mapping[str, int], text: str, *, help: str, id: str) -> NoReturn:
    """Raise ProgramError that names the instruction, its statement and the loop variables."""
    place = ", ".join(f"{n} = {at[n]}" for n in site.loops if n in at)
    of = f" of statement {site.instr.statement}" if site.instr.statement else ""
    at_place = f" at {place}" if place else ""
    raise ProgramError(
        f"instruction {site.name} ({site.instr.opcode} on {site.instr.queue}){of}{at_place}: {text}",
        help=help,
        id=id,
    )


def sites(body: tuple[LoopPlan | SitePlan, ...]) -> Iterator[SitePlan]:
    """Every site in program order."""
    for node in body:
        if isinstance(node, LoopPlan):
            yield from sites(node.body)
        else:
            yield node


def operand_spec(spec: InstructionSpec, name: str) -> OperandSpec | None:
    """The specification of operand `name`; a general instruction's further inputs are like its last one."""
    for o in spec.operands:
        if o.name == name:
            return o
    return spec.operands[-1] if spec.kind == "general" and len(spec.operands) > 1 else None


def make_plan(program: Program, machine: Machine, sizes: Mapping[str, int]) -> Plan:
    """Bind `sizes`.  The program must have passed `check_program`.  InputError on missing or impossible sizes."""
    check_sizes(program, sizes)
    arrays, spaces = _arrays(program, machine, sizes)
    builder = _Builder(machine, dict(sizes), arrays)
    body = tuple(builder.node(n, (), {}) for n in program.body)
    return Plan(program, machine, dict(sizes), arrays, body, tuple(sites(body)), spaces)


def check_sizes(program: Program, sizes: Mapping[str, int]) -> None:
    """InputError unless `sizes` gives every parameter an integer that the program's context allows."""
    missing = [p for p in program.params if p not in sizes]
    extra = [p for p in sizes if p not in program.params]
    if missing or extra:
        wrong = f"missing: {', '.join(missing)}" if missing else f"unknown: {', '.join(extra)}"
        raise InputError(
            f"the sizes of program {program.name} do not fit its parameters ({wrong})",
            help=f"give exactly these: {', '.join(program.params) or 'none'}",
            id="sizes",
        )
    if program.context.fix(dict(sizes)).is_empty():
        given = ", ".join(f"{n}={v}" for n, v in sizes.items())
        raise InputError(
            f"program {program.name} was made for {program.context}, not for {given}",
            help="choose sizes inside the context or compile again for them",
            id="sizes",
        )


def _arrays(
    program: Program, machine: Machine, sizes: Mapping[str, int]
) -> tuple[dict[str, ArrayPlan], dict[str, int]]:
    device = machine.memory_of_kind("device")
    if device is None:
        raise InputError(
            f"machine {machine.name} has no device memory",
            help="add a memory of kind device to the machine file",
            id="machine-file",
        )
    arrays: dict[str, ArrayPlan] = {}
    spaces: dict[str, int] = {}
    for t in program.tensors:
        shape = t.sizes(sizes)
        if any(n < 0 for n in shape):
            raise InputError(
                f"tensor {t.name} has shape {shape} at these sizes", help="choose larger sizes", id="sizes"
            )
        strides = (0, *_row_major(shape))
        arrays[t.name] = ArrayPlan(
            t.name, 1, device, True, t.role, t.dtype, shape, 1, strides, t.name, 0, strides, 1, 0, 0
        )
        spaces[t.name] = math.prod(shape)
    for memory in machine.memories:
        spaces.update(_buffers(program, memory, arrays))
    return arrays, spaces


def _buffers(program: Program, memory: Memory, arrays: dict[str, ArrayPlan]) -> dict[str, int]:
    """Add the buffers of one on-chip memory; the number of its cells."""
    mine = [b for b in program.buffers if b.memory == memory.name]
    if not mine:
        return {}
    rows = memory.partitions > 1
    unit, end = 0, 0
    for b in mine:
        item = dtype(b.dtype).element_bytes
        unit = math.gcd(unit, item, b.offset_bytes, b.copy_bytes if b.copies > 1 else 0)
        inner = b.shape[1:] if rows else b.shape
        end = max(end, b.offset_bytes + (b.copies - 1) * b.copy_bytes + math.prod(inner) * item)
    row_cells = -(-end // unit)
    for k, b in enumerate(mine):
        each = dtype(b.dtype).element_bytes // unit
        strides = _row_major(b.shape)
        scaled = [s * each for s in strides]
        if rows and scaled:
            scaled[0] = row_cells
        arrays[b.name] = ArrayPlan(
            b.name,
            k + 1,
            memory,
            False,
            "",
            b.dtype,
            b.shape,
            b.copies,
            (math.prod(b.shape), *strides),
            memory.name,
            b.offset_bytes // unit,
            (b.copy_bytes // unit if b.copies > 1 else 0, *scaled),
            each,
            b.copy_bytes,
            b.offset_bytes,
        )
    return {memory.name: row_cells * (memory.partitions if rows else 1)}


def _row_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    strides: list[int] = []
    step = 1
    for n in reversed(shape):
        strides.append(step)
        step *= n
    return tuple(reversed(strides))


class _Builder:
    """Binds sizes into the tree of loops and numbers loops and sites in program order."""

    def __init__(self, machine: Machine, sizes: Mapping[str, int], arrays: Mapping[str, ArrayPlan]) -> None:
        self.machine = machine
        self.sizes = sizes
        self.arrays = arrays
        self.engines = {e.name: e for e in machine.engines}
        self.num_loops = 0
        self.num_sites = 0

    def node(self, node: Node, loops: tuple[str, ...], ranges: Mapping[str, Interval]) -> LoopPlan | SitePlan:
        if isinstance(node, Loop):
            return self.loop(node, loops, ranges)
        return self.site(node, loops, ranges)

    def bind(self, expr: Affine, ranges: Mapping[str, Interval]) -> Affine:
        return simplify(expr.substitute(self.sizes), ranges)

    def loop(self, loop: Loop, loops: tuple[str, ...], ranges: Mapping[str, Interval]) -> LoopPlan:
        lower, upper = self.bind(loop.lower, ranges), self.bind(loop.upper, ranges)
        if loop.step > 0:
            span = (interval(lower, ranges)[0], _plus(interval(upper, ranges)[1], -1))
        else:
            span = (_plus(interval(upper, ranges)[0], 1), interval(lower, ranges)[1])
        number = self.num_loops
        self.num_loops += 1
        inner = {**ranges, loop.var: span}
        body = tuple(self.node(n, (*loops, loop.var), inner) for n in loop.body)
        return LoopPlan(number, loop.var, lower, upper, loop.step, body)

    def site(self, instr: Instr, loops: tuple[str, ...], ranges: Mapping[str, Interval]) -> SitePlan:
        spec = self.machine.spec(instr.opcode)
        form = instr.attr("form", 0)
        lanes = tuple(lane.name for lane in instr.lanes)
        operands: list[OperandPlan] = []
        first = 0
        for k, (name, view) in enumerate(instr.operands):
            own = operand_spec(spec, name)
            if own is None:
                raise InternalError(f"{spec.name} has no operand {name!r}: the program was not checked")
            plan = self.operand(own, name, view, k == 0, lanes, first, ranges)
            operands.append(plan)
            first += sum(len(v.base) + 1 for v in plan.chain)
        number = self.num_sites
        self.num_sites += 1
        return SitePlan(
            number=number,
            instr=instr if instr.value is None else replace(instr, value=substitute_expr(instr.value, self.sizes)),
            spec=spec,
            body=spec.forms[int(form) if form is not None else 0],
            engine=self.engines.get(instr.queue),
            lanes=lanes,
            roles=tuple(lane.role for lane in instr.lanes),
            extents=tuple(self.bind(lane.extent, ranges) for lane in instr.lanes),
            operands=tuple(operands),
            guards=tuple(c.substitute(self.sizes) for c in instr.guards),
            mask=tuple(c.substitute(self.sizes) for c in instr.mask),
            index=None if instr.index is None else instr.index.substitute(self.sizes),
            loops=loops,
            ranges=ranges,
            sizes=self.sizes,
        )

    def operand(
        self,
        own: OperandSpec,
        name: str,
        view: View,
        writes: bool,
        lanes: tuple[str, ...],
        first: int,
        ranges: Mapping[str, Interval],
    ) -> OperandPlan:
        after = first + len(view.base) + 1
        indices: list[tuple[int, OperandPlan]] = []
        for k, (axis, index) in enumerate(view.indirect):
            called = f"{name}'s index" if len(view.indirect) == 1 else f"{name}'s index {k}"
            plan = self.operand(INDEX_SPEC, called, index, False, lanes, after, ranges)
            after += sum(len(p.base) + 1 for p in plan.chain)
            indices.append((axis, plan))
        return OperandPlan(
            name=name,
            array=self.arrays[view.array],
            spec=own,
            writes=writes,
            base=tuple(self.bind(b, ranges) for b in view.base),
            copy=self.bind(view.copy, ranges),
            steps=tuple(view.step(lane) for lane in lanes),
            first=first,
            indices=tuple(indices),
        )


def _plus(value: int | None, more: int) -> int | None:
    return None if value is None else value + more
