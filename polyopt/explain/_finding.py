"""What an explanation consists of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from polyopt.schedule import Witness

__all__ = ["COPY", "FUSION", "KINDS", "ORDER", "PARALLEL", "TILING", "Explanation", "Finding", "distance"]

ORDER, FUSION, TILING, PARALLEL, COPY = "order", "fusion", "tiling", "parallel", "copy"
KINDS = (ORDER, FUSION, TILING, PARALLEL, COPY)
"""Kinds of decisions, in the order in which they are reported."""

Loops = tuple[tuple[str, tuple[str, ...]], ...]
"""(statement, iterators of the loops in question, outermost first)."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One decision: whether something was done, and why or why not.

    done: whether the generated program has it.  allowed: whether the dependences permit it (None: not their business,
    or not decided).  witness: the smallest pair of instances that forbids it, or forbids more of it than was done.
    loops: for `fusion` the loops that the statements may share, for `tiling` the band, for `parallel` the loop.
    outer: how many loops around those are taken as fixed.  order: `written` or `chosen`, whose loops they are.
    """

    kind: str
    subject: str
    done: bool
    reason: str
    allowed: bool | None = None
    witness: Witness | None = None
    loops: Loops = ()
    outer: int = 0
    order: str = "chosen"

    @property
    def statements(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.loops)

    def to_json(self) -> dict[str, object]:
        """One entry of `findings` of `polyopt explain --json`."""
        return {
            "kind": self.kind,
            "subject": self.subject,
            "done": self.done,
            "reason": self.reason,
            "allowed": self.allowed,
            "witness": None if self.witness is None else self.witness.to_json(),
            "loops": {name: list(iterators) for name, iterators in self.loops},
            "order": self.order,
        }


@dataclass(frozen=True, slots=True)
class Explanation:
    """Every finding about one compiled program, by kind as in KINDS.  at: the sizes that it was compiled for."""

    scop: str
    target: str
    at: tuple[tuple[str, int], ...]
    findings: tuple[Finding, ...]

    def of(self, kind: str) -> tuple[Finding, ...]:
        return tuple(f for f in self.findings if f.kind == kind)

    def to_json(self, pictures: Mapping[Finding, Path] | None = None) -> dict[str, object]:
        """The object that `polyopt explain --json` prints.  pictures: files to be named with their findings."""
        drawn = pictures or {}
        found = [f.to_json() | ({"picture": str(drawn[f])} if f in drawn else {}) for f in self.findings]
        return {"scop": self.scop, "target": self.target, "params": dict(self.at), "findings": found}


def distance(witness: Witness, source: tuple[str, ...], sink: tuple[str, ...]) -> tuple[int, ...]:
    """Sink minus source in the loops `source` of the one and `sink` of the other, as far as both have some."""
    a, b = dict(witness.source.at), dict(witness.sink.at)
    return tuple(b[y] - a[x] for x, y in zip(source, sink, strict=False))
