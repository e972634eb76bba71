"""Which buffers take over bytes of which others, for synchronisation.

A buffer that takes over bytes waits for the buffers that had them.  Waits are transitive, so the buffers before those
need none, but only if the one between is written whenever they are used: a kernel may have no instance at some sizes,
or in some iterations of the loops around it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from polyopt.ir import Buffer, Instr, Loop, Node, Program, instructions
from polyopt.sets import Affine, Constraint, Set, affine

__all__ = ["arrays_of", "successions"]

Owned = tuple[int, int, str]
"""(first byte, byte behind the last, buffer)."""


def successions(program: Program, sequential: frozenset[str]) -> tuple[tuple[str, str], ...]:
    """(earlier, later) pairs of buffers where the later one takes over bytes of the earlier one, around loops too.

    sequential: variables of the loops around several kernels.
    """
    owners = _Owners(program, sequential, {b.name: b for b in program.buffers})
    for instr, loops in instructions(program.body):
        for k, name in enumerate(arrays_of(instr)):
            owners.sites.setdefault(name, []).append((instr, loops, k == 0))
    _walk(program.body, owners)
    return tuple(owners.pairs)


def arrays_of(instr: Instr) -> list[str]:
    """The arrays that an instruction touches, the one that it writes first."""
    return [v.array for _, view in instr.operands for v in view.chain]


@dataclass(slots=True)
class _Owners:
    """Who may have used each byte range of each memory last, while a program is walked in order.

    now: memory -> byte ranges with their buffers.  sites: buffer -> (instruction, loops around it, whether it writes).
    """

    program: Program
    sequential: frozenset[str]
    buffers: dict[str, Buffer]
    now: dict[str, list[Owned]] = field(default_factory=dict)
    pairs: dict[tuple[str, str], None] = field(default_factory=dict)
    sites: dict[str, list[tuple[Instr, tuple[Loop, ...], bool]]] = field(default_factory=dict)
    used: dict[str, Set] = field(default_factory=dict)
    written: dict[str, Set] = field(default_factory=dict)

    def use(self, name: str) -> None:
        """`name` is used: whoever owned bytes of it before is succeeded."""
        b = self.buffers.get(name)
        if b is None:
            return
        start, stop = b.offset_bytes, b.offset_bytes + b.copies * b.copy_bytes
        kept: list[Owned] = [(start, stop, name)]
        for low, high, other in self.now.get(b.memory, []):
            if high <= start or stop <= low:
                kept.append((low, high, other))
            elif other != name:
                self.pairs[other, name] = None
                if not self.surely_between(other, name):
                    kept.append((low, high, other))
                    continue
                kept += [(low, start, other)] if low < start else []
                kept += [(stop, high, other)] if stop < high else []
        self.now[b.memory] = kept

    def surely_between(self, earlier: str, later: str) -> bool:
        """Whether `later` is written at all sizes at which `earlier` is used."""
        for name in (earlier, later):
            if name not in self.used:
                self.used[name] = _union(self.program, [_at_most(self.program, i, ls) for i, ls, _ in self.sites[name]])
                sure = [_at_least(self.program, i, ls, self.sequential) for i, ls, w in self.sites[name] if w]
                self.written[name] = _union(self.program, sure)
        return self.used[earlier].is_subset(self.written[later])


def _walk(nodes: tuple[Node, ...], owners: _Owners) -> None:
    for n in nodes:
        if isinstance(n, Loop):
            _walk(n.body, owners)
            if _reuses_bytes(n.body, owners.buffers):
                _walk(n.body, owners)
        else:
            for name in arrays_of(n):
                owners.use(name)


def _reuses_bytes(nodes: tuple[Node, ...], buffers: dict[str, Buffer]) -> bool:
    names = dict.fromkeys(a for instr, _ in instructions(nodes) for a in arrays_of(instr))
    used = [buffers[n] for n in names if n in buffers]
    return any(a.memory == b.memory and overlap(a, b) for k, a in enumerate(used) for b in used[k + 1 :])


def overlap(a: Buffer, b: Buffer) -> bool:
    """Whether two buffers of one memory have bytes in common."""
    return a.offset_bytes < b.offset_bytes + b.copies * b.copy_bytes and (
        b.offset_bytes < a.offset_bytes + a.copies * a.copy_bytes
    )


def _union(program: Program, parts: Sequence[Set]) -> Set:
    found = Set.empty("", (), program.params)
    for part in parts:
        found = found.union(part)
    return found


def _at_most(program: Program, instr: Instr, loops: Sequence[Loop]) -> Set:
    """The sizes at which some instance runs, or more."""
    rows = [*instr.guards, *(Constraint(lane.extent - 1) for lane in instr.lanes)]
    for loop in loops:
        rows += [Constraint(affine(loop.var) - loop.lower), Constraint(loop.upper - 1 - loop.var)]
    return _sizes(program, [loop.var for loop in loops], rows)


def _at_least(program: Program, instr: Instr, loops: Sequence[Loop], sequential: frozenset[str]) -> Set:
    """The sizes at which an instance runs in every iteration of the sequential loops around it, or fewer: those at
    which the first iteration of all other loops does.
    """
    outer: list[str] = []
    around: list[Constraint] = []
    first: dict[str, Affine] = {}
    inside: list[Constraint] = []
    missing = Set.empty("", (), program.params)
    for loop in loops:
        lower, upper = loop.lower.substitute(first), loop.upper.substitute(first)
        if loop.var in sequential:
            missing = missing.union(_sizes(program, outer, [*around, Constraint(lower - upper)]))
            outer.append(loop.var)
            around += [Constraint(affine(loop.var) - lower), Constraint(upper - 1 - loop.var)]
        else:
            inside.append(Constraint(upper - 1 - lower))
            first[loop.var] = lower
    inside += [c.substitute(first) for c in instr.guards]
    inside += [Constraint(lane.extent.substitute(first) - 1) for lane in instr.lanes]
    every = Set.from_constraints("", outer, around, program.params)
    skipped = every.subtract(every.constrain(inside)).intersect_params(program.context)
    everywhere = Set.universe("", (), program.params).intersect_params(program.context)
    return everywhere.subtract(missing).subtract(skipped.project_onto([]))


def _sizes(program: Program, dims: Sequence[str], rows: Sequence[Constraint]) -> Set:
    """The sizes in the context for which the rows have a solution."""
    return Set.from_constraints("", dims, rows, program.params).intersect_params(program.context).project_onto([])
