"""The rules for one instruction that hold for every size: see `check_program`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NoReturn

from polyopt.errors import ProgramError, nearest
from polyopt.ir import Tensor, expr_iterators
from polyopt.ir.program import Buffer, Instr, Loop, Program, View
from polyopt.machine import (
    Body,
    IndexRef,
    InstructionSpec,
    Machine,
    MaskRef,
    OperandRef,
    OperandSpec,
    OpRef,
    Pattern,
    operand_refs,
    scalar_refs,
)
from polyopt.sets import Affine
from polyopt.simulator._plan import INDEX_SPEC, operand_spec

__all__ = ["SiteCheck", "mentions", "refuse"]


def mentions(pattern: Pattern, kind: type[MaskRef] | type[IndexRef]) -> bool:
    """Whether a body says `mask` or `index`."""
    return isinstance(pattern, kind) or (isinstance(pattern, OpRef) and any(mentions(a, kind) for a in pattern.args))


def refuse(text: str, *, help: str, id: str) -> NoReturn:
    raise ProgramError(text, help=help, id=id)


@dataclass(frozen=True, slots=True)
class SiteCheck:
    """The checks of one instruction."""

    program: Program
    machine: Machine
    instr: Instr
    loops: tuple[Loop, ...]

    def refuse(self, text: str, *, help: str, id: str) -> NoReturn:
        of = f" of statement {self.instr.statement}" if self.instr.statement else ""
        refuse(
            f"instruction {self.instr.site} ({self.instr.opcode} on {self.instr.queue}){of}: {text}", help=help, id=id
        )

    def check(self) -> None:
        spec = next((s for s in self.machine.instructions if s.name == self.instr.opcode), None)
        if spec is None:
            known = [s.name for s in self.machine.instructions]
            self.refuse(
                f"{self.machine.name} has no instruction {self.instr.opcode!r}{nearest(self.instr.opcode, known)}",
                help="use an instruction of the machine",
                id="opcode",
            )
        if self.instr.queue not in spec.engines:
            self.refuse(
                f"{spec.name} does not run on {self.instr.queue}",
                help=f"it runs on {', '.join(spec.engines)}",
                id="queue",
            )
        self.check_lanes(spec)
        body = self.form(spec)
        self.check_scope(spec)
        self.check_attributes(spec, body)
        self.check_operands(spec, body)

    def form(self, spec: InstructionSpec) -> Body:
        form = self.instr.attr("form", 0)
        if not isinstance(form, int) or isinstance(form, bool) or not 0 <= form < len(spec.forms):
            self.refuse(f"form {form!r}", help=f"{spec.name} has forms 0 to {len(spec.forms) - 1}", id="form")
        return spec.forms[form]

    def check_lanes(self, spec: InstructionSpec) -> None:
        roles = [lane.name for lane in spec.lanes]
        taken = {*self.program.params, *(loop.var for loop in self.loops)}
        names: set[str] = set()
        for lane in self.instr.lanes:
            if spec.kind == "compute" and lane.role not in roles:
                self.refuse(
                    f"lane {lane.name} has role {lane.role!r}{nearest(lane.role, roles)}",
                    help=f"{spec.name} has lanes {', '.join(roles)}",
                    id="lane",
                )
            if lane.name in names | taken:
                self.refuse(f"lane {lane.name} is not a new name", help="rename it", id="names")
            names.add(lane.name)

    def check_scope(self, spec: InstructionSpec) -> None:
        outer = {*self.program.params, *(loop.var for loop in self.loops)}
        lanes = {lane.name for lane in self.instr.lanes}
        general = spec.kind == "general"
        groups: list[tuple[str, Iterable[Affine], set[str]]] = [
            ("a lane extent", (lane.extent for lane in self.instr.lanes), outer),
            ("a guard", (c.expr for c in self.instr.guards), outer),
            ("the mask", (c.expr for c in self.instr.mask), outer | lanes),
            ("the index", () if self.instr.index is None else (self.instr.index,), outer | lanes),
        ]
        for name, view in self.instr.operands:
            for v in view.chain:
                groups.append((f"operand {name}", (*v.base, v.copy), outer | lanes if general else outer))
        for what, expressions, known in groups:
            for e in expressions:
                self.in_scope(what, e.variables(), known)
        if self.instr.value is not None:
            used = expr_iterators(self.instr.value)
            self.in_scope("the value", used, outer | lanes)

    def in_scope(self, what: str, used: frozenset[str], known: set[str]) -> None:
        unknown = sorted(used - known)
        if unknown:
            self.refuse(
                f"{what} uses {unknown[0]}, which is not in scope there",
                help=f"in scope: {', '.join(sorted(known)) or 'nothing'}",
                id="scope",
            )

    def check_attributes(self, spec: InstructionSpec, body: Body) -> None:
        slots = {body.combine_slot: body.combine} if body.combine_slot else {}
        slots.update(_slots(body.value))
        for slot, choices in slots.items():
            chosen = self.instr.attr(slot)
            if chosen not in choices:
                self.refuse(f"operator {slot} = {chosen!r}", help=f"choose one of {' '.join(choices)}", id="operator")
        if self.instr.mask and not (spec.maskable or mentions(body.value, MaskRef)):
            self.refuse("a mask", help=f"{spec.name} cannot be masked: use guards or smaller lanes", id="mask")
        if mentions(body.value, IndexRef) != (self.instr.index is not None):
            self.refuse(
                "an index value is missing or not used", help="give `index` to bodies that say index", id="index"
            )
        if (spec.kind == "general") != (self.instr.value is not None):
            self.refuse("a value expression is missing or not used", help="general instructions have one", id="value")
        if spec.accumulate == "never" and self.instr.attr("accumulate"):
            self.refuse("accumulate is set", help=f"{spec.name} always starts afresh", id="accumulate")

    def check_operands(self, spec: InstructionSpec, body: Body) -> None:
        given = [name for name, _ in self.instr.operands]
        if len(set(given)) < len(given):
            self.refuse("an operand is given twice", help="name each operand once", id="operand")
        if not given or given[0] != body.target.name:
            self.refuse(f"the first operand is not {body.target.name}", help="outputs come first", id="operand")
        if spec.kind != "general":
            self.check_operand_names(body, given)
        moving = _operand_lanes(spec, body)
        for k, (name, view) in enumerate(self.instr.operands):
            own = operand_spec(spec, name)
            if own is None:
                self.refuse(
                    f"operand {name!r}", help=f"{spec.name} has {[o.name for o in spec.operands]}", id="operand"
                )
            self.check_view(spec, own, name, view, writes=k == 0)
            if spec.kind == "compute":
                self.check_steps(own, name, view, moving[name])

    def check_operand_names(self, body: Body, given: list[str]) -> None:
        needed = {body.target.name, *(r.name for r in operand_refs(body.value))}
        scalars = {s.name for s in scalar_refs(body.value)}
        for name in given:
            if name not in needed | scalars:
                self.refuse(
                    f"operand {name!r} does not occur in {body.text!r}",
                    help=f"it has {', '.join(sorted(needed | scalars))}",
                    id="operand",
                )
        for name in sorted(needed - set(given)):
            self.refuse(f"operand {name!r} of {body.text!r} is missing", help="give a view for it", id="operand")
        for name in sorted(scalars - set(given)):
            value = self.instr.attr(name)
            if not isinstance(value, (int, float)):
                self.refuse(
                    f"scalar {name!r} of {body.text!r} is {value!r}",
                    help="give a number or an operand for it",
                    id="operand",
                )

    def check_view(self, spec: InstructionSpec, own: OperandSpec, name: str, view: View, *, writes: bool) -> None:
        array: Buffer | Tensor | None = self.program.buffer(view.array) or self.program.tensor(view.array)
        if array is None:
            names = [*(b.name for b in self.program.buffers), *(t.name for t in self.program.tensors)]
            self.refuse(
                f"operand {name} is in {view.array!r}{nearest(view.array, names)}", help="declare it", id="array"
            )
        if len(view.base) != len(array.shape):
            self.refuse(
                f"operand {name} has {len(view.base)} subscripts, {view.array} has {len(array.shape)} axes",
                help="one subscript per axis",
                id="rank",
            )
        lanes = {lane.name for lane in self.instr.lanes}
        for lane, steps in view.steps:
            if lane not in lanes or len(steps) != len(view.base):
                self.refuse(
                    f"operand {name} has steps {steps} along lane {lane!r}",
                    help="name a lane of the instruction and give one step per axis",
                    id="steps",
                )
        memory = array.memory if isinstance(array, Buffer) else self.device()
        self.check_place(spec, own, name, array, memory, writes=writes)
        if view.indirect:
            self.check_indirect(spec, name, view)

    def device(self) -> str:
        memory = self.machine.memory_of_kind("device")
        return memory.name if memory else "device memory"

    def check_place(
        self, spec: InstructionSpec, own: OperandSpec, name: str, array: Buffer | Tensor, memory: str, *, writes: bool
    ) -> None:
        if own is not INDEX_SPEC and memory not in own.memories:
            self.refuse(
                f"operand {name} ({array.name}) lies in {memory}",
                help=f"it must lie in {' or '.join(own.memories)}",
                id="memory",
            )
        if array.dtype not in own.dtypes:
            self.refuse(
                f"operand {name} ({array.name}) has element type {array.dtype}",
                help=f"allowed: {', '.join(own.dtypes)}",
                id="dtype",
            )
        engine = next((e for e in self.machine.engines if e.name == self.instr.queue), None)
        stream = self.machine.transfer if engine is None else engine
        edges = stream.writes if writes else stream.reads
        if memory not in edges:
            verb = "write" if writes else "read"
            self.refuse(
                f"{self.instr.queue} cannot {verb} {memory} (operand {name}, {array.name})",
                help=f"it can {verb} {', '.join(edges) or 'nothing'}",
                id="edge",
            )
        if writes and isinstance(array, Tensor) and array.role == "input":
            self.refuse(f"it writes the input {array.name}", help="inputs are read only; use role inout", id="role")

    def check_indirect(self, spec: InstructionSpec, name: str, view: View) -> None:
        if spec.kind == "compute":
            self.refuse(
                f"operand {name} has a data-dependent subscript",
                help="only transfers and general instructions gather",
                id="gather",
            )
        for axis, index in view.indirect:
            if not 0 <= axis < len(view.base):
                self.refuse(
                    f"operand {name} gathers along axis {axis}", help=f"{view.array} has no such axis", id="gather"
                )
            self.check_view(spec, INDEX_SPEC, f"{name}'s index", index, writes=False)

    def check_steps(self, own: OperandSpec, name: str, view: View, moving: frozenset[str]) -> None:
        """A compute operand moves only along its own lanes, and its partition lane alone moves along partitions."""
        buffer = self.program.buffer(view.array)
        memory = next((m for m in self.machine.memories if buffer is not None and m.name == buffer.memory), None)
        for lane in self.instr.lanes:
            step = view.step(lane.name)
            if any(step) and lane.role not in moving:
                self.refuse(
                    f"operand {name} moves along lane {lane.name} of role {lane.role}",
                    help=f"it may move along {', '.join(sorted(moving)) or 'no lane'}",
                    id="steps",
                )
            if memory is None or memory.partitions <= 1 or own.partition is None or not step:
                continue
            if lane.role != own.partition and step[0]:
                self.refuse(
                    f"operand {name} moves over partitions along lane {lane.name} of role {lane.role}",
                    help=f"lanes of role {own.partition} lie on its partitions",
                    id="partition",
                )
            if lane.role == own.partition and any(step[1:]):
                self.refuse(
                    f"operand {name} moves inside partitions along lane {lane.name} of role {lane.role}",
                    help=f"lanes of role {own.partition} lie on its partitions, axis 0 of {view.array}",
                    id="partition",
                )


def _slots(pattern: Pattern) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    if isinstance(pattern, OpRef):
        if pattern.slot:
            found[pattern.slot] = pattern.choices
        for a in pattern.args:
            found.update(_slots(a))
    return found


def _operand_lanes(spec: InstructionSpec, body: Body) -> dict[str, frozenset[str]]:
    """Operand -> roles along which its view may move; a scalar operand has one value per partition."""
    found: dict[str, frozenset[str]] = {}
    refs: tuple[OperandRef, ...] = (body.target, *operand_refs(body.value))
    for r in refs:
        found[r.name] = found.get(r.name, frozenset()) | frozenset(r.lanes)
    for s in scalar_refs(body.value):
        lane = next((o.partition for o in spec.operands if o.name == s.name), None)
        found[s.name] = frozenset((lane,) if lane else ())
    return found
