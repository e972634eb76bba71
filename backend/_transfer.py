"""The instructions that every copy is made of: fills, transfers, masks in lane terms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from polyopt.backend._frame import Frame
from polyopt.ir import Access, Buffer, Instr, Lane, View
from polyopt.ir.mapping import Span
from polyopt.machine import InstructionSpec, Machine, ScalarRef
from polyopt.sets import Affine, Constraint, affine, var
from polyopt.tiling import fill_spec, moved_operand

__all__ = ["emit_fill", "emit_transfer", "masks", "span_stop", "transfer_spec"]


def emit_fill(frame: Frame, buffer: Buffer, value: float, copy: Affine) -> Instr:
    """Write one number into a whole copy of a buffer."""
    spec = fill_spec(frame.machine, buffer.dtype, buffer.memory)
    roles = spec.forms[0].target.lanes
    scalar = spec.forms[0].value
    lanes = [Lane("a0", roles[0], affine(buffer.shape[0]))]
    lanes += [Lane(f"a{k}", roles[1], affine(n)) for k, n in enumerate(buffer.shape) if k and n > 1]
    steps = tuple((lane.name, tuple(int(f"a{k}" == lane.name) for k in range(len(buffer.shape)))) for lane in lanes)
    view = View(buffer.name, (affine(0),) * len(buffer.shape), steps, copy)
    name = scalar.name if isinstance(scalar, ScalarRef) else ""
    return Instr(
        site=frame.names.new(f"{frame.kernel.statement.name}_fill"),
        opcode=spec.name,
        queue=spec.engines[0],
        lanes=tuple(lanes),
        operands=((spec.forms[0].target.name, view),),
        attrs=(("form", 0), (name, value)),
        statement=frame.kernel.statement.name,
    )


def transfer_spec(machine: Machine) -> InstructionSpec:
    """The machine's copy between device memory and chip."""
    return next(s for s in machine.instructions if s.kind == "transfer")


def span_stop(frame: Frame, s: Span) -> Affine:
    return frame.rename(s.copy_stop)


def masks(frame: Frame, rows: Sequence[Constraint], position: Mapping[str, Affine]) -> tuple[Constraint, ...]:
    """Constraints on dimensions as constraints on lanes: dim = first point + lane."""
    values = {d: start + var(d) for d, start in position.items()}
    loops = {k: var(v) for k, v in frame.loop_names.items()}
    return tuple(Constraint(c.expr.substitute({**frame.outer, **loops, **values}), c.equality) for c in rows)


def emit_transfer(
    frame: Frame,
    access: Access,
    queue: str,
    lanes: Sequence[Lane],
    target: View,
    source: View,
    mask: tuple[Constraint, ...],
    *,
    store: bool,
) -> Instr:
    spec = transfer_spec(frame.machine)
    form = spec.forms[0]
    value = moved_operand(form)
    return Instr(
        site=frame.names.new(f"{frame.kernel.statement.name}_{'st' if store else 'ld'}_{access.tensor}"),
        opcode=spec.name,
        queue=queue,
        lanes=tuple(lanes),
        operands=((form.target.name, target), (value.name, source)),
        attrs=(("form", 0),),
        mask=mask,
        statement=frame.kernel.statement.name,
    )
