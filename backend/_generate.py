"""From a mapping to a program: emit, allocate, synchronise."""

from __future__ import annotations

from collections.abc import Mapping

from polyopt.backend._allocate import allocate
from polyopt.backend._frame import Frame
from polyopt.backend._kernel import emit_general, emit_kernel
from polyopt.backend._names import Names
from polyopt.backend._sync import add_waits
from polyopt.ir import Buffer, Loop, Node, Program, Scop
from polyopt.ir.mapping import Kernel, MappingNode, Sequential, kernels
from polyopt.ir.mapping import Mapping as ProgramMapping
from polyopt.machine import Machine
from polyopt.sets import Affine, var

__all__ = ["emit_program", "estimate_time_ns", "general_kernels"]


def emit_program(scop: Scop, mapping: ProgramMapping, machine: Machine) -> Program:
    """Code, addresses and synchronisation for a mapping."""
    emitter = _Emitter(scop, machine)
    body = emitter.nodes(mapping.nodes, {}, 0)
    buffers = allocate(machine, emitter.groups, emitter.transient)
    program = Program(
        name=scop.name,
        target=machine.name,
        params=scop.params,
        context=scop.context,
        tensors=scop.tensors,
        buffers=buffers,
        body=body,
    )
    return add_waits(program, frozenset(emitter.sequential))


class _Emitter:
    def __init__(self, scop: Scop, machine: Machine) -> None:
        self.scop, self.machine = scop, machine
        self.names = Names()
        self.groups: list[list[Buffer]] = []
        self.sequential: list[str] = []
        self.transient: set[str] = set()
        queues = machine.transfer.queues
        self.load_queues, self.store_queue = queues[:-1] or queues, queues[-1]

    def nodes(
        self, nodes: tuple[MappingNode, ...], outer: Mapping[str, Mapping[str, Affine]], level: int
    ) -> tuple[Node, ...]:
        out: list[Node] = []
        for node in nodes:
            if isinstance(node, Sequential):
                out.append(self._loop(node, outer, level))
            else:
                out += self._kernel(node, outer.get(node.statement.name, {}))
        return tuple(out)

    def _loop(self, node: Sequential, outer: Mapping[str, Mapping[str, Affine]], level: int) -> Loop:
        name = self.names.new(node.var)
        self.sequential.append(name)
        inner = {s: {**outer.get(s, {}), it: var(name)} for s, it in node.iterators}
        known = {f"s{k}": v for k, v in enumerate(next(iter(inner.values())).values())}
        lower, upper = node.lower.substitute(known), node.upper.substitute(known)
        return Loop(name, lower, upper, self.nodes(node.body, {**outer, **inner}, level + 1))

    def _kernel(self, kernel: Kernel, outer: Mapping[str, Affine]) -> tuple[Node, ...]:
        names = {loop.var: self.names.new(f"{kernel.statement.name}_{loop.var}") for loop in kernel.loops}
        frame = Frame(kernel, self.machine, self.scop.tensor_map(), self.names, outer, names)
        if kernel.remark:
            return emit_general(frame)
        nodes = emit_kernel(frame, self.load_queues, self.store_queue)
        self.groups.append(frame.buffers)
        self.transient |= frame.transient
        return nodes


def estimate_time_ns(mapping: ProgramMapping, at: Mapping[str, int]) -> float:
    """The cost model's sum over kernels, each times the iterations of the loops around it."""
    return sum(_weighted(mapping.nodes, at, 1.0), 0.0)


def _weighted(nodes: tuple[MappingNode, ...], at: Mapping[str, int], times: float) -> list[float]:
    out: list[float] = []
    for node in nodes:
        if isinstance(node, Sequential):
            inside = {**dict.fromkeys(node.lower.variables() | node.upper.variables(), 0), **at}
            trips = max(0, node.upper.evaluate(inside) - node.lower.evaluate(inside))
            out += _weighted(node.body, at, times * trips)
        else:
            out.append(node.estimated_ns * times)
    return out


def general_kernels(mapping: ProgramMapping) -> tuple[Kernel, ...]:
    """Kernels that run on the general engine."""
    return tuple(k for k in kernels(mapping.nodes) if k.remark)
