"""An adversarial order of values: any order that program order per queue and the waits allow, drawn at random."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from polyopt.simulator._plan import Plan, SitePlan

__all__ = ["Shuffler", "wait_targets"]

WINDOW = 96
"""How many instances are held back at most."""

PATIENCE = 48
"""After how many steps, on average, the queues are ranked anew: until then one may be far behind the others."""

Run = Callable[[SitePlan, tuple[int, ...], tuple[int, ...], tuple[int, ...]], None]
Waits = list[tuple[str, int, int]]
"""('site' or 'queue', its number, how many of its instances must have completed)."""


def wait_targets(plan: Plan) -> list[tuple[tuple[str, int] | None, ...]]:
    """Per site and wait: ('site' or 'queue', its number), or None for a queue that runs nothing."""
    known: dict[str, tuple[str, int]] = {s.name: ("site", s.number) for s in plan.sites}
    queues = dict.fromkeys(s.instr.queue for s in plan.sites)
    known.update({q: ("queue", k) for k, q in enumerate(queues)})
    return [tuple(known.get(w.site) for w in s.instr.waits) for s in plan.sites]


@dataclass(frozen=True, slots=True, eq=False)
class _Held:
    """An instance that waits for its turn.  keys: (stream, number in it) for its queue and its site."""

    site: SitePlan
    extents: tuple[int, ...]
    numbers: tuple[int, ...]
    at: tuple[int, ...]
    waits: Waits
    keys: tuple[tuple[tuple[str, int], int], ...]


class Shuffler:
    """Takes instances in program order and runs them in another order.

    loose: numbers of queues whose instructions may complete in any order once all earlier ones of the queue may start.
    """

    def __init__(self, plan: Plan, run: Run, seed: int, loose: frozenset[int]) -> None:
        self.plan = plan
        self.run = run
        self.random = random.Random(seed)
        self.loose = loose
        self.queues = list(dict.fromkeys(s.instr.queue for s in plan.sites))
        self.held: dict[int, list[_Held]] = {k: [] for k in range(len(self.queues))}
        self.issued: dict[tuple[str, int], int] = {}
        self.prefix: dict[tuple[str, int], int] = {}
        self.beyond: dict[tuple[str, int], set[int]] = {}
        self.count = 0
        self.ahead: list[int] = []

    def take(
        self,
        site: SitePlan,
        extents: tuple[int, ...],
        numbers: tuple[int, ...],
        at: tuple[int, ...],
        waits: Waits,
    ) -> None:
        queue = self.queues.index(site.instr.queue)
        keys = []
        for stream in (("queue", queue), ("site", site.number)):
            self.issued[stream] = self.issued.get(stream, 0) + 1
            keys.append((stream, self.issued[stream]))
        self.held[queue].append(_Held(site, extents, numbers, at, waits, tuple(keys)))
        self.count += 1
        if self.count > WINDOW:
            self.step()

    def drain(self) -> None:
        """Run everything that is still held."""
        while self.count:
            self.step()

    def step(self) -> None:
        """Run one instance that may run, of the queue that is ahead now; which one is ahead changes at times."""
        if not self.ahead or self.random.randrange(PATIENCE) == 0:
            self.ahead = sorted(self.held)
            self.random.shuffle(self.ahead)
        queue = next(q for q in self.ahead if self.startable(q))
        position = self.random.choice(self.startable(queue))
        held = self.held[queue].pop(position)
        self.count -= 1
        self.run(held.site, held.extents, held.numbers, held.at)
        for stream, number in held.keys:
            self.complete(stream, number)

    def startable(self, queue: int) -> list[int]:
        """Positions in a queue's list of instances that may run next."""
        found = []
        for k, held in enumerate(self.held[queue]):
            if not all(self.prefix.get((kind, n), 0) >= count for kind, n, count in held.waits):
                break
            found.append(k)
            if queue not in self.loose:
                break
        return found

    def complete(self, stream: tuple[str, int], number: int) -> None:
        done = self.beyond.setdefault(stream, set())
        done.add(number)
        reached = self.prefix.get(stream, 0)
        while reached + 1 in done:
            reached += 1
            done.remove(reached)
        self.prefix[stream] = reached
