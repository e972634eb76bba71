"""Which order of the loops the program runs in, and what the other orders were expected to take."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from polyopt.backend import estimate_time_ns
from polyopt.errors import BudgetError, NotAffineError, UnsupportedError
from polyopt.explain._finding import ORDER, Finding
from polyopt.ir.mapping import Mapping as ProgramMapping
from polyopt.passes import Pass, Unit, run_passes
from polyopt.pipeline import Compiled, LoopSchedule, Reschedule
from polyopt.schedule import SCHEDULERS, SequentialLoop
from polyopt.tiling import DEFAULT_SIZE

__all__ = ["explain_order"]

REFUSED = (NotAffineError, UnsupportedError, BudgetError)
"""What may keep a scheduler's order from becoming a program."""


def explain_order(compiled: Compiled, *, changed: bool) -> Finding:
    """changed: whether the program runs in another order than the one that was written."""
    step = next((p for p in compiled.passes if isinstance(p, Reschedule)), None)
    what = "another order of the loops" if changed else "the order of the loops as written"
    subject = "another order of the loops than the one written"
    if step is None:
        return Finding(ORDER, subject, changed, f"{what}: the pipeline has no pass reschedule", True)
    if step.algorithm != "auto":
        reason = f"{what}: the pass reschedule was told to take {step.algorithm}"
        return Finding(ORDER, subject, changed, reason, True)
    sequential = [n for n in compiled.schedule.tree if isinstance(n, SequentialLoop)]
    if not changed and not sequential:
        reason = f"{what}: none of them has to run in sequence, so that no other was tried"
        return Finding(ORDER, subject, False, reason, True)
    told = "; ".join(_estimates(compiled, step))
    best = "which the cost model expects to be fastest" if changed else "which the cost model expects no other to beat"
    return Finding(ORDER, subject, changed, f"{what}, {best}: {told}", True)


def _estimates(compiled: Compiled, step: Reschedule) -> Iterator[str]:
    """The expected time of every scheduler's order, found anew by the same passes."""
    for name in SCHEDULERS.names():
        passes = [replace(p, algorithm=name) if p is step else p for p in compiled.passes]
        label = "as written" if name == "original" else name
        try:
            yield f"{label} {_expected(compiled, passes)}"
        except REFUSED as error:
            yield f"{label} not possible ({error.message})"


def _expected(compiled: Compiled, passes: Sequence[Pass]) -> str:
    unit = Unit(compiled.source, compiled.machine, compiled.at)
    for p in passes:
        if "mapping" in unit.products:
            break
        unit = run_passes(unit, [p])
    mapping = unit.products.get("mapping")
    if not isinstance(mapping, ProgramMapping):
        return "without an estimate (the pipeline makes no mapping)"
    general = [r for r in unit.remarks if r.id == "general-engine"]
    if general:
        return f"not considered ({general[0].message})"
    scop = unit.product("schedule", LoopSchedule).scop
    time_ns = estimate_time_ns(mapping, {**dict.fromkeys(scop.params, DEFAULT_SIZE), **compiled.at})
    return f"{time_ns / 1000:.1f} us"
