"""Dynamic race detection: vector clocks over queues, access boxes per array, exact cells where boxes meet.

Happens-before is made of program order within a queue and of waits alone, so its answer does not depend on how fast any
engine is.  A queue's instructions complete in order; with `out_of_order`, transfers of one queue start in order but may
complete in any order, so that only a wait on the site or on the whole queue says that one has completed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from polyopt.simulator._hazards import may_meet
from polyopt.simulator._memory import Region, cell_of_index, common_cells
from polyopt.simulator._plan import ArrayPlan, Plan, SitePlan
from polyopt.simulator._result import Access, Race

__all__ = ["RaceDetector"]

MAX_RACES = 100
FAR = 2000
"""How many earlier accesses of one queue to one array are looked at once a race is known."""

Clock = tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class _Use:
    """One access of one instance."""

    number: int
    site_number: int
    site: SitePlan
    at: tuple[int, ...]
    region: Region


@dataclass(slots=True, eq=False)
class _History:
    """Accesses to one array, per queue in program order."""

    reads: dict[int, list[_Use]] = field(default_factory=dict)
    writes: dict[int, list[_Use]] = field(default_factory=dict)


class RaceDetector:
    """Follows a walk in program order and keeps the races that it finds."""

    def __init__(self, plan: Plan, *, out_of_order: bool = False) -> None:
        self.plan = plan
        self.queues = list(dict.fromkeys(s.instr.queue for s in plan.sites))
        self.queue_of = [self.queues.index(s.instr.queue) for s in plan.sites]
        transfers = {self.queues.index(q) for q in plan.machine.transfer.queues if q in self.queues}
        self.loose = transfers if out_of_order else set()
        self.site_component = [-1] * len(plan.sites)
        components = len(self.queues)
        for s in plan.sites:
            if self.queue_of[s.number] in self.loose:
                self.site_component[s.number] = components
                components += 1
        self.now: list[Clock] = [(0,) * components for _ in self.queues]
        self.clocks: list[list[Clock]] = [[] for _ in self.queues]
        self.numbers: list[list[int]] = [[] for _ in plan.sites]
        self.histories = {n: _History() for n in plan.arrays}
        self.near = _near(plan, {self.queues[k] for k in self.loose})
        self.seen: set[tuple[object, ...]] = set()
        self.races: list[Race] = []
        self.site: SitePlan = plan.sites[0]
        self.at: tuple[int, ...] = ()

    def begin(self, site: SitePlan, at: tuple[int, ...], waits: Sequence[tuple[str, int, int]]) -> None:
        """The next instance.  waits: ('site' or 'queue', its number, how many of its instances have completed)."""
        queue = self.queue_of[site.number]
        clock = self.now[queue]
        for kind, number, count in waits:
            if count:
                clock = self.after(clock, kind, number, count)
        self.now[queue] = clock
        self.clocks[queue].append(clock)
        self.numbers[site.number].append(len(self.clocks[queue]))
        self.site, self.at = site, at

    def after(self, clock: Clock, kind: str, number: int, count: int) -> Clock:
        """`clock` joined with what the first `count` instances of a site or queue had known, and their completion."""
        if kind == "queue":
            queue, component, reached, last = number, number, count, count
        else:
            queue = self.queue_of[number]
            last = self.numbers[number][count - 1]
            loose = queue in self.loose
            component, reached = (self.site_component[number], count) if loose else (queue, last)
        if clock[component] >= reached:
            return clock
        joined = list(map(max, clock, self.clocks[queue][last - 1]))
        joined[component] = max(joined[component], reached)
        return tuple(joined)

    def access(self, region: Region, writes: bool) -> None:
        """The present instance touches a region."""
        array = region.view.plan.array
        near = self.near.get(array.name)
        if near is None:
            return
        queue = self.queue_of[self.site.number]
        number = len(self.clocks[queue])
        use = _Use(number, len(self.numbers[self.site.number]), self.site, self.at, region)
        for name in near:
            history = self.histories[name]
            self.compare(use, writes, history.writes, earlier_writes=True)
            if writes:
                self.compare(use, writes, history.reads, earlier_writes=False)
        kept = self.histories[array.name].writes if writes else self.histories[array.name].reads
        kept.setdefault(queue, []).append(use)

    def compare(self, use: _Use, writes: bool, uses: dict[int, list[_Use]], *, earlier_writes: bool) -> None:
        own = self.queue_of[use.site.number]
        clock = self.now[own]
        for queue, earlier in uses.items():
            if queue == own and queue not in self.loose:
                continue
            for other in self.unknown(clock, queue, earlier):
                if other.site is use.site and other.at == use.at and other.number == use.number:
                    continue
                self.meet(other, use, earlier_writes, writes)

    def unknown(self, clock: Clock, queue: int, earlier: list[_Use]) -> Iterable[_Use]:
        """Uses of a queue that need not have completed, latest first."""
        looked = 0
        for other in reversed(earlier):
            if other.number <= clock[queue]:
                return
            looked += 1
            if self.races and looked > FAR:
                return
            if queue in self.loose and other.site_number <= clock[self.site_component[other.site.number]]:
                continue
            yield other

    def meet(self, first: _Use, second: _Use, first_writes: bool, second_writes: bool) -> None:
        """Report a race when the two regions have a cell in common."""
        a, b = first.region, second.region
        same = a.view.plan.array.name == b.view.plan.array.name
        if same and any(h < v or g < u for u, h, v, g in zip(a.low, a.high, b.low, b.high, strict=True)):
            return
        names = {True: "write", False: "read"}
        kind = f"{names[second_writes]} after {names[first_writes]}"
        key = (first.site.number, second.site.number, a.view.plan.name, b.view.plan.name, kind)
        if key in self.seen or len(self.races) >= MAX_RACES:
            return
        cell: tuple[int, ...] | None = None
        certain = a.certain and b.certain
        array = b.view.plan.array
        if certain:
            found = first_common(a, b) if not (same and a.dense and b.dense) else corner(a, b, array)
            if found is None:
                return
            cell = found
        self.seen.add(key)
        accesses = (self.side(first, first_writes), self.side(second, second_writes))
        self.races.append(Race(kind, array.name, cell, *accesses, certain))

    def side(self, use: _Use, writes: bool) -> Access:
        instr = use.site.instr
        at = tuple(zip(use.site.loops, use.at, strict=True))
        kind = "write" if writes else "read"
        return Access(instr.site, use.region.view.plan.name, kind, instr.queue, at, instr.statement)


def corner(a: Region, b: Region, array: ArrayPlan) -> tuple[int, ...]:
    """The first common cell of two boxes of one array."""
    return tuple(max(u, v) for u, v in zip(a.low[1:], b.low[1:], strict=True))[: len(array.shape)]


def first_common(a: Region, b: Region) -> tuple[int, ...] | None:
    """The first cell that both regions touch, as coordinates in b's array."""
    common = common_cells(a, b)
    return cell_of_index(b.view.plan.array, int(common[0])) if common.size else None


def _near(plan: Plan, loose: set[str]) -> dict[str, tuple[str, ...]]:
    """Array -> arrays that share bytes with it, itself included, for arrays where a race is possible at all."""
    views = [(s, v) for s in plan.sites for v in s.all_views]
    first_view = {v.array.name: v for _, v in views}
    near: dict[str, tuple[str, ...]] = {}
    for name, view in first_view.items():
        group = tuple(other for other, v in first_view.items() if may_meet(view, v))
        users = [(s.instr.queue, v.writes) for s, v in views if v.array.name in group]
        queues = {q for q, _ in users}
        if any(w for _, w in users) and (len(queues) > 1 or queues & loose):
            near[name] = group
    return near
