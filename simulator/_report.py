"""From the log of a walk to a result: busy times, critical path, traffic, counts."""

from __future__ import annotations

import math
from collections.abc import Mapping

from polyopt.simulator._plan import Plan
from polyopt.simulator._result import Array, Event, PathStep, Race, SimResult
from polyopt.simulator._walk import Log

__all__ = ["build_result"]

TRANSFER = "transfer"
"""The name of the shared data movers among the candidates for the bottleneck."""


def build_result(
    plan: Plan, log: Log, outputs: Mapping[str, Array], races: tuple[Race, ...] | None, *, keep_events: bool
) -> SimResult:
    """Sum up a finished walk."""
    machine = plan.machine
    queues = (*(e.name for e in machine.engines), *machine.transfer.queues)
    busy = dict.fromkeys(queues, 0.0)
    adds = dict.fromkeys((e.name for e in machine.engines), 0)
    read: dict[str, int] = {t.name: 0 for t in plan.program.tensors}
    written = dict(read)
    executed: dict[str, int] = {}
    general_ns = 0.0
    for site, costs in zip(plan.sites, log.costs, strict=True):
        for c in costs:
            busy[site.instr.queue] += c.ns * c.count
            executed[site.instr.opcode] = executed.get(site.instr.opcode, 0) + c.count
            if c.multiply_adds:
                adds[site.instr.queue] += c.multiply_adds * c.count
            general_ns += c.ns * c.count if site.spec.kind == "general" else 0.0
            for total, moved in ((read, c.read_bytes), (written, c.written_bytes)):
                for name, size in moved:
                    total[name] += size * c.count
    candidates = {e.name: busy[e.name] for e in machine.engines} | {TRANSFER: log.pool.busy_ns}
    busiest = max(candidates, key=candidates.__getitem__)
    return SimResult(
        program=plan.program.name,
        machine=machine.name,
        sizes=dict(plan.sizes),
        outputs=dict(outputs),
        time_ns=max(log.ends, default=float(machine.startup_ns)),
        busy_ns=busy,
        transfer_ns=log.pool.busy_ns,
        critical_path=critical_path(plan, log),
        bottleneck=busiest if candidates[busiest] else "",
        hbm_read_bytes=sum(read.values()),
        hbm_written_bytes=sum(written.values()),
        tensor_read_bytes=read,
        tensor_written_bytes=written,
        peak_bytes=peak_bytes(plan),
        instructions=executed,
        multiply_adds=adds,
        general_ns=general_ns,
        races=races,
        events=events(plan, log) if keep_events else (),
        queues=queues,
    )


def critical_path(plan: Plan, log: Log) -> tuple[PathStep, ...]:
    """From the last completion back over whatever each instance waited for last, summed up per site.

    An instance adds the time between the completion of the one before on the path and its own; the first adds the
    start-up too, so the shares sum up to the whole time.
    """
    if not log.ends:
        return ()
    at = max(range(len(log.ends)), key=log.ends.__getitem__)
    shares: dict[int, list[float]] = {}
    while at >= 0:
        before = log.binding[at]
        share = shares.setdefault(log.sites[at], [0.0, 0])
        share[0] += log.ends[at] - (log.ends[before] if before >= 0 else 0.0)
        share[1] += 1
        at = before
    steps = [
        PathStep(plan.sites[n].name, plan.sites[n].instr.queue, ns, int(count)) for n, (ns, count) in shares.items()
    ]
    return tuple(sorted(steps, key=lambda s: (-s.ns, s.site)))


def peak_bytes(plan: Plan) -> dict[str, int]:
    """On-chip memory -> bytes up to the highest address that a buffer takes, in all partitions."""
    peak: dict[str, int] = {}
    for memory in plan.machine.memories:
        if memory.kind == "device":
            continue
        end = 0
        for array in plan.arrays.values():
            if array.is_tensor or array.memory.name != memory.name:
                continue
            inner = array.shape[1:] if array.has_partitions else array.shape
            size = math.prod(inner) * array.element_bytes
            end = max(end, array.offset_bytes + (array.copies - 1) * array.copy_bytes + size)
        peak[memory.name] = end * memory.partitions
    return peak


def events(plan: Plan, log: Log) -> tuple[Event, ...]:
    """Every executed instruction in program order."""
    found = []
    for number, start, end, at in zip(log.sites, log.starts, log.ends, log.at, strict=True):
        site = plan.sites[number]
        instr = site.instr
        place = tuple(zip(site.loops, at, strict=True))
        found.append(Event(instr.site, instr.opcode, instr.queue, start, end, place, instr.statement))
    return tuple(found)
