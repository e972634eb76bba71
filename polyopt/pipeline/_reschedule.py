"""Another order of the loops where the cost model likes it better than the one that was written."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from polyopt.backend import estimate_time_ns
from polyopt.errors import BudgetError, Diagnostic, NotAffineError, UnsupportedError
from polyopt.ir import Scop
from polyopt.passes import Unit
from polyopt.schedule import (
    SCHEDULERS,
    LoopTree,
    SequentialLoop,
    absorb,
    apply_schedule,
    compute_dependences,
    compute_schedule,
    distribute,
)
from polyopt.tiling import DEFAULT_SIZE, plan_mapping

__all__ = ["Reschedule"]

ORIGINAL = "original"


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A scheduler's order as a program of its own, and what distribution makes of it."""

    scheduler: str
    scop: Scop
    distributed: Scop
    tree: tuple[LoopTree, ...]
    remarks: tuple[Diagnostic, ...] = ()

    @property
    def is_parallel(self) -> bool:
        """Whether no loop is sequential."""
        return not any(isinstance(n, SequentialLoop) for n in self.tree)


@dataclass(frozen=True, slots=True)
class Reschedule:
    """Choose the order of the instances.

    algorithm: a scheduler's name, or `auto`: the order as written when no loop of it is sequential, otherwise the one
    of the installed schedulers whose mapping the cost model expects to be fastest.  Orders are found for all sizes,
    which is easier than for given ones, and ranked at the given ones.  max_operations: isl operations for each
    scheduler; what it does not manage falls back to the order as written, with a remark.
    """

    algorithm: str = "auto"
    max_operations: int = 300_000

    @property
    def name(self) -> str:
        return "reschedule"

    def run(self, unit: Unit) -> Unit:
        if self.algorithm == ORIGINAL:
            return unit
        if self.algorithm != "auto":
            chosen = self._candidate(unit, self.algorithm)
            return unit.with_scop(chosen.scop).with_remarks(chosen.remarks)
        written = self._candidate(unit, ORIGINAL)
        if written.is_parallel:
            return unit
        best, best_ns = written, _expected_ns(unit, written)
        refused: list[Diagnostic] = []
        for candidate in self._others(unit, refused):
            expected_ns = _expected_ns(unit, candidate)
            if expected_ns < best_ns:
                best, best_ns = candidate, expected_ns
        unit = unit.with_remarks(refused)
        if best is written:
            return unit
        remark = f"order of {best.scheduler}: expected to take {best_ns / 1000:.1f} us"
        return unit.with_scop(best.scop).with_remarks((*best.remarks, Diagnostic("remark", "schedule", remark)))

    def _others(self, unit: Unit, refused: list[Diagnostic]) -> Iterator[_Candidate]:
        """Every other scheduler's order that can be written as a program; a remark for each that cannot."""
        for name in SCHEDULERS.names():
            if name == ORIGINAL:
                continue
            try:
                candidate = self._candidate(unit, name)
            except (NotAffineError, UnsupportedError, BudgetError) as error:
                refused.append(Diagnostic("remark", "schedule", f"order of {name} not tried: {error.message}"))
                continue
            yield candidate

    def _candidate(self, unit: Unit, scheduler: str) -> _Candidate:
        scop = unit.scop
        remarks: tuple[Diagnostic, ...] = ()
        if scheduler != ORIGINAL:
            result = compute_schedule(scop, scheduler, max_operations=self.max_operations)
            scop, remarks = apply_schedule(scop, result.mapping()), result.remarks
        fixed = scop.at(unit.at)
        distributed, tree = distribute(fixed, compute_dependences(fixed))
        return _Candidate(scheduler, scop, distributed, tree, remarks)


def _expected_ns(unit: Unit, candidate: _Candidate) -> float:
    """The cost model's time for a candidate; infinite when some of it would run on the general engine."""
    tree, absorbed = absorb(candidate.distributed, candidate.tree)
    mapping, remarks = plan_mapping(candidate.distributed, tree, unit.machine, unit.at or None, absorbed)
    if any(r.id == "general-engine" for r in remarks):
        return float("inf")
    return estimate_time_ns(mapping, {**dict.fromkeys(candidate.scop.params, DEFAULT_SIZE), **unit.at})
