"""Synchronisation derived from dependences between instruction sites.

Two sites on different queues that touch the same array, one of them writing, must be ordered.  A later site waits for
every earlier instance of the other; where the array rotates over copies, a site that comes round again waits only for
the uses of the copy that it takes over.  Buffers that share bytes count as the same array.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from polyopt.backend._owners import successions
from polyopt.ir import Instr, Loop, Node, Program, View, Wait, instructions

__all__ = ["add_waits"]


FOREVER = 1 << 30
"""More iterations than any loop has: leaves out the whole present run of a loop."""


@dataclass(frozen=True, slots=True)
class _Use:
    """One site's use of one array."""

    position: int
    instr: Instr
    loops: tuple[Loop, ...]
    view: View
    writes: bool


def add_waits(program: Program, sequential: frozenset[str]) -> Program:
    """The same program with the waits that its dependences need.

    sequential: variables of loops whose iterations depend on each other; inside the other loops around one statement no
    instance depends on another one, so that copies of different tiles touch different cells of device memory.
    """
    uses = _uses(program)
    arrays: dict[str, list[_Use]] = {}
    for use in uses:
        arrays.setdefault(use.view.array, []).append(use)
    waits: dict[str, dict[Wait, None]] = {}
    copies = {b.name: b.copies for b in program.buffers}
    for name, own in arrays.items():
        for y in own:
            for x in own:
                wait = _needed(x, y, copies.get(name), sequential)
                if wait is not None:
                    waits.setdefault(y.instr.site, {})[wait] = None
    _add_successions(program, arrays, sequential, waits)
    return replace(program, body=_rewritten(program.body, waits))


def _uses(program: Program) -> list[_Use]:
    found: list[_Use] = []
    for position, (instr, loops) in enumerate(instructions(program.body)):
        for k, (_, view) in enumerate(instr.operands):
            found.append(_Use(position, instr, loops, view, k == 0))
            found += [_Use(position, instr, loops, inner, False) for inner in view.chain[1:]]
        if _accumulates(instr):
            found.append(_Use(position, instr, loops, instr.operands[0][1], True))
    return found


def _accumulates(instr: Instr) -> bool:
    return bool(instr.attr("accumulate", False))


def _needed(x: _Use, y: _Use, copies: int | None, sequential: frozenset[str]) -> Wait | None:
    """What y waits for because of x, or None.  copies: of an on-chip buffer, None for device memory."""
    if x.instr.queue == y.instr.queue or not (x.writes or y.writes):
        return None
    common = _common(x.loops, y.loops)
    ahead = x.position < y.position
    if copies is None:
        return Wait(x.instr.site) if ahead else _between_runs(x, y, common, sequential)
    if not ahead and not common:
        return None
    rotation = _rotation(x, y, common, copies)
    if rotation is None:
        return Wait(x.instr.site)
    loop, lead = rotation
    return _latest_use(x.instr.site, loop.var, lead, copies, ahead=ahead)


def _latest_use(site: str, loop: str, lead: int, copies: int, *, ahead: bool) -> Wait:
    """Wait for the latest earlier use of the same copy.

    lead: how many copies y is ahead of x in one iteration of the loop.  x has used copies up to -lead (one less when it
    stands behind y), counted from y's; the latest of them that is y's own copy lies a multiple of `copies` back.
    """
    last = -lead if ahead else -lead - 1
    same = last // copies * copies
    distance = -lead - same
    return Wait(site, loop, distance) if distance > 0 else Wait(site)


def _between_runs(x: _Use, y: _Use, common: tuple[Loop, ...], sequential: frozenset[str]) -> Wait | None:
    """Device memory, x behind y: earlier iterations of sequential loops count, other tiles of one statement do not."""
    if not common:
        return None
    free = [loop for loop in common if loop.var not in sequential]
    if x.instr.statement != y.instr.statement or not free:
        return Wait(x.instr.site)
    return Wait(x.instr.site, free[0].var, FOREVER) if len(free) < len(common) else None


def _common(a: Sequence[Loop], b: Sequence[Loop]) -> tuple[Loop, ...]:
    n = 0
    while n < min(len(a), len(b)) and a[n] is b[n]:
        n += 1
    return tuple(a[:n])


def _rotation(x: _Use, y: _Use, common: tuple[Loop, ...], copies: int) -> tuple[Loop, int] | None:
    """The loop around both uses over which the copies rotate, one copy an iteration, and how many copies y is ahead."""
    lead = y.view.copy - x.view.copy
    if copies < 2 or not lead.is_constant:
        return None
    variables = x.view.copy.variables()
    for loop in reversed(common):
        if loop.var in variables:
            return loop, lead.const
    return None


def _add_successions(
    program: Program, arrays: Mapping[str, list[_Use]], sequential: frozenset[str], waits: dict[str, dict[Wait, None]]
) -> None:
    """Writers of a buffer wait for every use of the buffers whose bytes it takes over."""
    for earlier, later in successions(program, sequential):
        for y in arrays.get(later, []):
            if not y.writes:
                continue
            for x in arrays.get(earlier, []):
                if x.instr.queue != y.instr.queue and (x.position < y.position or _common(x.loops, y.loops)):
                    waits.setdefault(y.instr.site, {})[Wait(x.instr.site)] = None


def _rewritten(nodes: tuple[Node, ...], waits: dict[str, dict[Wait, None]]) -> tuple[Node, ...]:
    out: list[Node] = []
    for n in nodes:
        if isinstance(n, Loop):
            out.append(replace(n, body=_rewritten(n.body, waits)))
        else:
            own = waits.get(n.site)
            out.append(replace(n, waits=(*n.waits, *own)) if own else n)
    return tuple(out)
