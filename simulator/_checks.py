"""Rules that hold for every size: names, opcodes, operands, memory edges, capacity, alignment, waits."""

from __future__ import annotations

import math
from collections.abc import Mapping

from polyopt.errors import nearest
from polyopt.ir import DTYPES, Tensor, dtype
from polyopt.ir.program import Buffer, Instr, Loop, Node, Program, Wait, instructions
from polyopt.machine import Machine, Memory
from polyopt.simulator._site_checks import SiteCheck, refuse

__all__ = ["check_program"]


def check_program(program: Program, machine: Machine) -> None:
    """Raise ProgramError, naming the instruction or buffer, when `program` breaks a rule of `machine` at any size.

    Checked: unique names; buffers inside their memory, aligned, copies apart; known opcodes, forms, operator slots and
    operands on an engine that has them; operand memories, element types and lanes; engine and transfer edges; variables
    in scope; masks, guards and values where they are allowed; waits on sites that come before.  What depends on sizes
    (bounds, lane extents, partition starts, banks) is checked during the run.
    """
    _check_names(program, machine)
    _check_rank_and_types(program, machine)
    _check_buffers(program, machine)
    _check_loops(program.body, frozenset(program.params))
    order = {instr.site: k for k, (instr, _) in enumerate(instructions(program.body))}
    loops_of = {instr.site: loops for instr, loops in instructions(program.body)}
    for instr, loops in instructions(program.body):
        SiteCheck(program, machine, instr, loops).check()
        for wait in instr.waits:
            _check_wait(program, machine, instr, wait, order, loops_of)


def _check_names(program: Program, machine: Machine) -> None:
    queues = {*(e.name for e in machine.engines), *machine.transfer.queues}
    arrays = [*(t.name for t in program.tensors), *(b.name for b in program.buffers)]
    names = [instr.site for instr, _ in instructions(program.body)]
    for kind, group in (("tensors and buffers", arrays), ("instruction sites", names)):
        twice = sorted({n for n in group if group.count(n) > 1}) if len(set(group)) < len(group) else []
        if twice:
            refuse(f"{kind} named {', '.join(twice)} more than once", help="give every one its own name", id="names")
    both = sorted(queues & set(names))
    if both:
        refuse(
            f"site {both[0]} has the name of a queue", help="rename the site: waits name sites and queues", id="names"
        )


def _check_rank_and_types(program: Program, machine: Machine) -> None:
    items: tuple[Tensor | Buffer, ...] = (*program.tensors, *program.buffers)
    for item in items:
        if item.dtype not in DTYPES or item.dtype not in machine.dtypes:
            refuse(
                f"{item.name} has element type {item.dtype}, which {machine.name} lacks",
                help=f"it has: {', '.join(machine.dtypes)}",
                id="dtype",
            )


def _check_buffers(program: Program, machine: Machine) -> None:
    memories = {m.name: m for m in machine.memories}
    for b in program.buffers:
        memory = memories.get(b.memory)
        if memory is None or memory.kind == "device":
            on_chip = [m.name for m in machine.memories if m.kind != "device"]
            refuse(
                f"buffer {b.name} lies in memory {b.memory!r}, expected an on-chip memory{nearest(b.memory, on_chip)}",
                help="arrays in device memory are tensors of the program",
                id="memory",
            )
        _check_buffer(b, memory)


def _check_buffer(b: Buffer, memory: Memory) -> None:
    rows = memory.partitions > 1
    item = dtype(b.dtype).element_bytes
    if b.copies < 1 or any(n < 1 for n in b.shape) or (rows and not b.shape):
        refuse(
            f"buffer {b.name} has shape {b.shape} x {b.copies}", help="extents and copies are at least 1", id="buffer"
        )
    if rows and b.shape[0] > memory.partitions:
        refuse(
            f"buffer {b.name} has {b.shape[0]} partitions, {memory.name} has {memory.partitions}",
            help="axis 0 of a buffer is its partition axis: tile it",
            id="capacity",
        )
    size = math.prod(b.shape[1:] if rows else b.shape) * item
    if b.copies > 1 and b.copy_bytes < size:
        refuse(
            f"copies of buffer {b.name} overlap: each takes {size} bytes, the next begins {b.copy_bytes} bytes later",
            help=f"set copy_bytes to at least {size}",
            id="capacity",
        )
    end = b.offset_bytes + (b.copies - 1) * b.copy_bytes + size
    if b.offset_bytes < 0 or end > memory.bytes_per_partition:
        refuse(
            f"buffer {b.name} takes bytes {b.offset_bytes} to {end} of each partition of {memory.name}, which has "
            f"{memory.bytes_per_partition}",
            help="use smaller tiles or fewer copies",
            id="capacity",
        )
    for what, value in (("offset_bytes", b.offset_bytes), ("copy_bytes", b.copy_bytes if b.copies > 1 else 0)):
        if value % memory.align_bytes:
            refuse(
                f"buffer {b.name} has {what} {value}, not a multiple of {memory.align_bytes}",
                help=f"{memory.name} aligns buffers to {memory.align_bytes} bytes",
                id="alignment",
            )


def _check_loops(nodes: tuple[Node, ...], known: frozenset[str]) -> None:
    for node in nodes:
        if not isinstance(node, Loop):
            continue
        if node.step == 0:
            refuse(f"loop {node.var} has step 0", help="steps are positive or negative", id="loop")
        if node.var in known:
            refuse(f"loop variable {node.var} hides an outer name", help="rename it", id="names")
        for bound in (node.lower, node.upper):
            unknown = sorted(bound.variables() - known)
            if unknown:
                refuse(
                    f"a bound of loop {node.var} uses {unknown[0]}, which is not in scope",
                    help=f"in scope: {', '.join(sorted(known)) or 'nothing'}",
                    id="scope",
                )
        _check_loops(node.body, known | {node.var})


def _check_wait(
    program: Program,
    machine: Machine,
    instr: Instr,
    wait: Wait,
    order: Mapping[str, int],
    loops_of: Mapping[str, tuple[Loop, ...]],
) -> None:
    """A wait that names nothing, or only what never runs before, would never be satisfied or mean nothing."""
    queues = {*(e.name for e in machine.engines), *machine.transfer.queues}
    where = f"instruction {instr.site} waits for {wait.site!r}"
    if wait.site not in order and wait.site not in queues:
        refuse(f"{where}, which is no site and no queue{nearest(wait.site, [*order, *queues])}", help=_WAIT, id="wait")
    mine = loops_of[instr.site]
    if wait.loop is None:
        if wait.distance:
            refuse(f"{where} with distance {wait.distance} but no loop", help="name the loop", id="wait")
    elif wait.loop not in [loop.var for loop in mine]:
        refuse(
            f"{where} leaving out iterations of {wait.loop!r}, which does not enclose it",
            help=f"enclosing loops: {', '.join(loop.var for loop in mine) or 'none'}",
            id="wait",
        )
    elif wait.distance < 1:
        refuse(f"{where} leaving out {wait.distance} iterations", help="distance counts from 1", id="wait")
    if wait.site in order:
        common = any(a is b for a, b in zip(mine, loops_of[wait.site], strict=False))
        if not common and order[wait.site] >= order[instr.site]:
            refuse(f"{where}, which never runs before it: a deadlock", help=_WAIT, id="deadlock")


_WAIT = "waits name earlier instruction sites or whole queues"
