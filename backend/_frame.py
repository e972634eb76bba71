"""Shared ground of one kernel's code generation: buffers of terms, current positions, views."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from polyopt.backend._names import Names
from polyopt.errors import InternalError
from polyopt.ir import Access, Buffer, Const, Indirect, Lane, Tensor, View
from polyopt.ir.mapping import Kernel, Placement, Temp, Term
from polyopt.machine import Machine
from polyopt.sets import Affine, affine, var

__all__ = ["Frame", "rotating"]


@dataclass(slots=True)
class Frame:
    """outer: the statement's outer iterators -> sequential loop variables.  loop_names: kernel loop var -> program
    var.
    """

    kernel: Kernel
    machine: Machine
    tensors: Mapping[str, Tensor]
    names: Names
    outer: Mapping[str, Affine]
    loop_names: dict[str, str]
    buffers: list[Buffer] = field(default_factory=list)
    by_term: dict[Term, Buffer] = field(default_factory=dict)
    transient: set[str] = field(default_factory=set)

    def rename(self, expr: Affine) -> Affine:
        """An expression of the mapping in the program's variables."""
        values: dict[str, Affine] = dict(self.outer)
        values.update({k: var(v) for k, v in self.loop_names.items()})
        return expr.substitute(values)

    def make_buffers(self) -> None:
        """One buffer for each placement."""
        for p in self.kernel.placements:
            base = p.term.tensor if isinstance(p.term, Access) else p.term.name if isinstance(p.term, Temp) else "const"
            name = self.names.new(f"{self.kernel.statement.name}_{base}")
            buffer = Buffer(name, p.memory, buffer_shape(p), p.dtype, p.copies)
            self.buffers.append(buffer)
            self.by_term[p.term] = buffer

    def new_buffer(self, base: str, memory: str, shape: tuple[int, ...], dtype: str, copies: int) -> Buffer:
        buffer = Buffer(self.names.new(f"{self.kernel.statement.name}_{base}"), memory, shape, dtype, copies)
        self.buffers.append(buffer)
        return buffer

    def start(self, depth: int, dim: str) -> Affine:
        """First point of `dim` inside the first `depth` loops, in the program's variables."""
        return self.rename(self.kernel.span(depth, dim).start)

    def view(self, term: Term, depth: int, lanes: Sequence[Lane]) -> View:
        """The cells of an on-chip term for an operation inside `depth` loops."""
        if isinstance(term, Const):
            raise InternalError("a constant has no buffer")
        p, buffer = self.kernel.placement(term), self.by_term[term]
        windows = {w.name: w.expr for w in p.windows}
        starts = {d.name: self.start(depth, d.name) for d in self.kernel.dims}
        here = {
            s.dim: self.rename(windows[s.dim].substitute(starts)) if s.dim in windows else starts[s.dim]
            for s in p.spans
        }
        offsets = {s.dim: here[s.dim] - self.rename(s.start) for s in p.spans}
        return placed_view(p, buffer, offsets, [lane.name for lane in lanes], self.copy_index(p), windows)

    def copy_index(self, p: Placement) -> Affine:
        """Which rotating copy the present iteration uses."""
        return self.rotation(p.depth) if p.copies > 1 else affine(0)

    def rotation(self, depth: int) -> Affine:
        """The iteration number of the innermost of the first `depth` loops."""
        if depth == 0:
            return affine(0)
        loop = self.kernel.loops[depth - 1]
        return (
            (var(self.loop_names[loop.var]) - self.rename(loop.lower)) // loop.step
            if loop.step > 1
            else (var(self.loop_names[loop.var]) - self.rename(loop.lower))
        )

    def device_view(
        self, access: Access, position: Mapping[str, Affine], lanes: Sequence[Lane], index: View | None = None
    ) -> View:
        """The cells of an access in device memory; `position` gives the first point of every kernel dimension."""
        names = [lane.name for lane in lanes]
        base: list[Affine] = []
        steps: dict[str, list[int]] = {n: [] for n in names}
        indirect: tuple[tuple[int, View], ...] = ()
        for axis, s in enumerate(access.subscripts):
            offset = s.offset if isinstance(s, Indirect) else s
            if isinstance(s, Indirect):
                if index is None or indirect:
                    raise InternalError(f"{access} has not just the one index view that is given")
                indirect = ((axis, index),)
            base.append(self.rename(offset.substitute(position)))
            for n in names:
                steps[n].append(offset.coefficient(n))
        moving = tuple((n, tuple(steps[n])) for n in names if any(steps[n]))
        return View(access.tensor, tuple(base), moving, indirect=indirect)


def rotating(copies: int) -> bool:
    return copies > 1


def buffer_shape(p: Placement) -> tuple[int, ...]:
    """Partition axis; number of partition tiles when there are several; then every other covered dimension."""
    shape = [p.partition_tile if p.partition is not None else 1]
    own = p.span(p.partition) if p.partition is not None else None
    if own is not None and own.size > p.partition_tile:
        shape.append(-(-own.size // p.partition_tile))
    return (*shape, *(s.size for s in p.spans if s.dim != p.partition))


def placed_view(
    p: Placement,
    buffer: Buffer,
    offsets: Mapping[str, Affine],
    lanes: Sequence[str],
    copy: Affine,
    windows: Mapping[str, Affine] | None = None,
) -> View:
    """A view of a placement's buffer: `offsets` are distances from the starts of its spans, per dimension or window.

    windows: values of windows in the dimensions that lanes run over; without it lanes run over the windows themselves.
    """
    base: list[Affine] = [affine(0)]
    moves: list[dict[str, int]] = [{p.partition: 1} if p.partition is not None else {}]
    own = p.span(p.partition) if p.partition is not None else None
    if own is not None and own.size > p.partition_tile:
        base.append(offsets[own.dim] // p.partition_tile)
        moves.append({})
    for s in p.spans:
        if s.dim != p.partition:
            base.append(offsets[s.dim])
            expr = (windows or {}).get(s.dim, var(s.dim))
            moves.append({name: expr.coefficient(name) for name in lanes})
    steps = [(name, tuple(m.get(name, 0) for m in moves)) for name in lanes]
    return View(buffer.name, tuple(base), tuple((n, s) for n, s in steps if any(s)), copy)
