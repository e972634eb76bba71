"""Which instances of a program's instructions are ordered, by the definition of queues and waits, and which of them
touch the same bytes: slow, and shares nothing with the race detector.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from polyopt.ir import Instr, Loop, Node, Program, View, dtype
from polyopt.machine import Machine

Cell = tuple[str, int, int]
"""(memory or tensor, partition or 0, byte or element)."""


@dataclass(frozen=True)
class Instance:
    """One execution.  runs: which run of each enclosing loop; steps: which iteration of it."""

    instr: Instr
    env: Mapping[str, int]
    runs: Mapping[str, int]
    steps: Mapping[str, int]


@dataclass
class Trace:
    """Every instance of a program in program order, and who touches each cell."""

    program: Program
    machine: Machine
    sizes: Mapping[str, int]
    instances: list[Instance] = field(default_factory=list)
    conflicts: set[tuple[int, int]] = field(default_factory=set)
    awaited: list[list[tuple[int, int]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        counters: dict[str, int] = {}
        for node in self.program.body:
            self._visit(node, dict(self.sizes), {}, {}, counters)
        self._meet()
        self.awaited = [self._awaited(n) for n in range(len(self.instances))]

    def _meet(self) -> None:
        """Pairs of instances that touch one cell, one of them writing."""
        touching: dict[Cell, dict[int, bool]] = {}
        for number, x in enumerate(self.instances):
            for position, (_, view) in enumerate(x.instr.operands):
                for cell in self._cells(x, view):
                    own = touching.setdefault(cell, {})
                    own[number] = own.get(number, False) or position == 0
        for own in touching.values():
            for (m, a), (n, b) in itertools.combinations(sorted(own.items()), 2):
                if a or b:
                    self.conflicts.add((m, n))

    def _awaited(self, n: int) -> list[tuple[int, int]]:
        """For each wait of an instance: the instances that it waits for as bits, and the latest of them (or -1)."""
        x, found = self.instances[n], []
        for w in x.instr.waits:
            bits, latest = 0, -1
            for m in range(n):
                y = self.instances[m]
                if w.site not in (y.instr.site, y.instr.queue):
                    continue
                present = w.loop is not None and y.runs.get(w.loop) == x.runs.get(w.loop)
                if present and w.loop is not None and y.steps[w.loop] > x.steps[w.loop] - w.distance:
                    continue
                bits, latest = bits | 1 << m, m
            found.append((bits, latest))
        return found

    def _visit(
        self, node: Node, env: dict[str, int], runs: dict[str, int], steps: dict[str, int], counters: dict[str, int]
    ) -> None:
        if isinstance(node, Loop):
            counters[node.var] = counters.get(node.var, 0) + 1
            number = counters[node.var]
            for k, value in enumerate(range(node.lower.evaluate(env), node.upper.evaluate(env), node.step)):
                for inner in node.body:
                    inside = {**env, node.var: value}
                    self._visit(inner, inside, {**runs, node.var: number}, {**steps, node.var: k}, counters)
            return
        runs_at_all = all(lane.extent.evaluate(env) > 0 for lane in node.lanes)
        if runs_at_all and all(g.holds(env) for g in node.guards):
            self.instances.append(Instance(node, env, runs, steps))

    def _cells(self, x: Instance, view: View) -> Iterator[Cell]:
        spec = self.machine.spec(x.instr.opcode)
        assert not view.indirect and spec.kind != "general"
        buffer = self.program.buffer(view.array)
        names = [lane.name for lane in x.instr.lanes]
        for point in itertools.product(*(range(lane.extent.evaluate(x.env)) for lane in x.instr.lanes)):
            if x.instr.mask and spec.kind == "transfer":
                at = {**x.env, **dict(zip(names, point, strict=True))}
                if not all(c.holds(at) for c in x.instr.mask):
                    continue
            cell = [b.evaluate(x.env) for b in view.base]
            for name, k in zip(names, point, strict=True):
                cell = [c + s * k for c, s in zip(cell, view.step(name), strict=True)]
            if buffer is None:
                tensor = self.program.tensor(view.array)
                assert tensor is not None
                flat = 0
                for c, extent in zip(cell, tensor.sizes(self.sizes), strict=True):
                    flat = flat * extent + c
                yield view.array, 0, flat
                continue
            flat, size = 0, dtype(buffer.dtype).element_bytes
            for c, extent in zip(cell[1:], buffer.shape[1:], strict=True):
                flat = flat * extent + c
            first = buffer.offset_bytes + view.copy.evaluate(x.env) % buffer.copies * buffer.copy_bytes + flat * size
            for byte in range(size):
                yield buffer.memory, cell[0], first + byte

    def unordered(self, without: tuple[str, int] | None = None) -> set[tuple[str, str]]:
        """Pairs of sites that touch one cell, one of them writing, with nothing between to order them.

        without: a wait that is left out, as (site, position among its waits).
        """
        known: list[int] = []  # bit n: instance n has completed before this one starts
        last: dict[str, int] = {}
        for n, x in enumerate(self.instances):
            before = last.get(x.instr.queue)
            mine = 0 if before is None else known[before] | 1 << before
            for position, (bits, latest) in enumerate(self.awaited[n]):
                if bits and without != (x.instr.site, position):
                    mine |= bits | known[latest]  # those awaited are of one queue: the latest knows what the others do
            known.append(mine)
            last[x.instr.queue] = n
        return {
            (self.instances[m].instr.site, self.instances[n].instr.site)
            for m, n in self.conflicts
            if not known[n] >> m & 1
        }
