"""One run of a compiled program: simulate, compare with the reference, report."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy.typing as npt

from polyopt import __version__
from polyopt.errors import BudgetError, InternalError, ProgramError
from polyopt.ir import Program, Scop
from polyopt.machine import Machine
from polyopt.pipeline._inputs import refuse_far_indices
from polyopt.pipeline._verdicts import PROPERTY_OF, is_refuted, run_verdicts
from polyopt.report import RooflinePoint, RunReport, Span, Work, compute_work
from polyopt.simulator import SimResult, chrome_trace, expected_instructions, simulate
from polyopt.verify import Comparison, PropertyVerdict, bounds_that_say_something, compare_values

__all__ = ["Outcome", "Request", "run_request", "simulate_source"]

Arrays = Mapping[str, npt.NDArray[Any]]


@dataclass(frozen=True, slots=True, eq=False)
class Request:
    """What to run and what to judge it by.

    source: the program as written; program: what was generated for `machine`.  arrays: a value for every input, in its
    element type.  legal: the judge's answer on the schedule.  rounds_every_step: whether reductions may be stored
    between their steps, so that nothing is accumulated in a wider type for sure.
    """

    source: Scop
    program: Program
    machine: Machine
    sizes: Mapping[str, int]
    arrays: Arrays
    legal: PropertyVerdict
    seed: int = 0
    timing_only: bool = False
    keep_events: bool = False
    estimated_time_ns: float | None = None
    compile_s: float = 0.0
    rounds_every_step: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """The report of one run and what it was made from; `result` is None when the simulator stopped the program."""

    report: RunReport
    verdicts: Mapping[str, PropertyVerdict]
    result: SimResult | None

    @property
    def outputs(self) -> Arrays:
        """Tensor name -> values, empty when none were computed."""
        return self.result.outputs if self.result is not None else {}

    def spans(self) -> list[Span]:
        """What every engine and queue did when; the run must have kept its events."""
        events = self.result.events if self.result is not None else ()
        return [Span(e.queue, e.site, e.start_ns, e.end_ns) for e in events]

    def roofline_point(self) -> RooflinePoint:
        r = self.report
        return RooflinePoint(r.name, r.flops, r.hbm_bytes, r.time_us * 1e3, r.dtype)

    def trace(self) -> object:
        """The run in the form that trace viewers read (Chrome trace JSON)."""
        if self.result is None:
            raise InternalError("a program that was stopped has no trace")
        return chrome_trace(self.result)


MOST_INSTRUCTIONS = 50_000_000
"""A few minutes of simulated time alone."""

MOST_INSTRUCTIONS_WITH_VALUES = 5_000_000
"""A few minutes of simulation that computes."""

MOST_REFERENCE_S = 60
"""The bounds of rounding errors take several times as long as the reference alone."""


def run_request(request: Request) -> Outcome:
    """Simulate, compare and report.

    Raises BudgetError when the program or the reference would run for too long, ProgramError when the simulator refuses
    the program for a reason that no property of the report names.
    """
    length = expected_instructions(request.program, request.sizes)
    most = MOST_INSTRUCTIONS if request.timing_only else MOST_INSTRUCTIONS_WITH_VALUES
    if length > most:
        help = "choose smaller sizes" + ("" if request.timing_only else ", or model the time alone: --timing-only")
        raise BudgetError(
            f"{request.source.name} would run about {length:.1e} instructions, more than {most:.0e}", help=help
        )
    if not request.timing_only:
        _refuse_long_reference(request.source, request.sizes)
    begin = time.perf_counter()
    result, broken = _simulate(request)
    simulate_s = time.perf_counter() - begin
    comparison = None if result is None or request.timing_only else _compare(request, result)
    verdicts = run_verdicts(request.legal, result, broken, comparison)
    report = _report(request, result, comparison, verdicts, simulate_s)
    return Outcome(report, verdicts, result)


def _refuse_long_reference(source: Scop, sizes: Mapping[str, int]) -> None:
    from polyopt.reference import expected_seconds, most_instances

    expected_s = expected_seconds(source, sizes)
    if expected_s > MOST_REFERENCE_S:
        raise BudgetError(
            f"{source.name} has up to {most_instances(source, sizes):.1e} instances here: its reference would run for "
            f"about {expected_s:.1e} s, more than {MOST_REFERENCE_S} s",
            help="choose smaller sizes, or model the time alone: --timing-only, timing_only=True",
            id="reference-budget",
        )


def simulate_source(
    source: Scop,
    program: Program,
    machine: Machine,
    arrays: Arrays,
    sizes: Mapping[str, int],
    *,
    timing_only: bool = False,
    keep_events: bool = False,
) -> SimResult:
    """`simulate`; a cell out of bounds is an InputError where an index value of the user's led there."""
    try:
        return simulate(program, machine, arrays, sizes, timing_only=timing_only, keep_events=keep_events)
    except ProgramError as error:
        if error.diagnostic.id == "out-of-bounds":
            refuse_far_indices(source, arrays, sizes)
        raise


def _simulate(request: Request) -> tuple[SimResult | None, ProgramError | None]:
    try:
        result = simulate_source(
            request.source,
            request.program,
            request.machine,
            request.arrays,
            request.sizes,
            timing_only=request.timing_only,
            keep_events=request.keep_events,
        )
    except ProgramError as error:
        if error.diagnostic.id not in PROPERTY_OF:
            raise
        return None, error
    return result, None


def _compare(request: Request, result: SimResult) -> Comparison:
    from polyopt.reference import evaluate

    expected = evaluate(request.source, request.arrays, request.sizes)
    source = replace(request.source, reassociate=False) if request.rounds_every_step else request.source
    bounds, num_sampled = bounds_that_say_something(source, request.arrays, request.sizes, request.seed)
    return replace(compare_values(result.outputs, expected, bounds), num_sampled=num_sampled)


def _report(
    request: Request,
    result: SimResult | None,
    comparison: Comparison | None,
    verdicts: Mapping[str, PropertyVerdict],
    simulate_s: float,
) -> RunReport:
    work = compute_work(request.source, request.machine, request.sizes, request.arrays)
    within = request.timing_only if comparison is None else comparison.is_within
    estimated = request.estimated_time_ns
    return RunReport(
        name=request.source.name,
        target=request.machine.name,
        params=dict(request.sizes),
        ok=bool(result is not None and within and not is_refuted(verdicts)),
        verdicts={name: v.level for name, v in verdicts.items()},
        reasons={name: v.reason for name, v in verdicts.items()},
        witnesses={n: dict(v.witness) or {"reason": v.reason} for n, v in verdicts.items() if v.is_refuted},
        axioms=tuple(sorted({a for v in verdicts.values() for a in v.axioms})),
        max_abs_error=comparison.max_abs_error if comparison else None,
        error_bound=comparison.error_bound if comparison else None,
        error_bound_kind=_bound_kind(comparison),
        error_ratio=comparison.error_ratio if comparison else None,
        estimated_time_us=estimated / 1e3 if estimated is not None else None,
        flops=work.flops,
        dtype=work.dtype,
        hbm_compulsory_bytes=work.compulsory_bytes,
        hbm_lower_bound_bytes=work.compulsory_bytes,
        seed=request.seed,
        compile_s=request.compile_s,
        simulate_s=simulate_s,
        version=__version__,
        **_measured(request.machine, work, result),
    )


def _bound_kind(comparison: Comparison | None) -> str | None:
    if comparison is None:
        return None
    return "sampled" if comparison.num_sampled else "rigorous"


def _measured(machine: Machine, work: Work, result: SimResult | None) -> dict[str, Any]:
    """The fields that come from the simulator; zeros for a program that was stopped."""
    if result is None:
        zeros = dict.fromkeys(("cycles", "hbm_bytes", "scratchpad_peak_bytes"), 0)
        fractions = (
            "time_us",
            "peak_fraction",
            "roofline_fraction",
            "general_engine_fraction",
            "tensor_engine_fraction",
        )
        return {**zeros, **dict.fromkeys(fractions, 0.0), "engine_busy": {}, "bottleneck": ""}
    time_ns = result.time_ns
    compute_ns = work.flops / machine.peaks[work.dtype]
    bandwidth = sum(m.bytes_per_ns for m in machine.memories if m.kind == "device")
    roof_ns = max(compute_ns, work.compulsory_bytes / bandwidth)
    scratchpads = [m.name for m in machine.memories if m.kind == "scratchpad"]
    return {
        "cycles": round(time_ns * max(e.clock_ghz for e in machine.engines)),
        "time_us": time_ns / 1e3,
        "peak_fraction": compute_ns / time_ns if time_ns else 0.0,
        "roofline_fraction": roof_ns / time_ns if time_ns else 0.0,
        "hbm_bytes": result.hbm_bytes,
        "scratchpad_peak_bytes": sum(result.peak_bytes.get(n, 0) for n in scratchpads),
        "engine_busy": result.busy_fraction(),
        "bottleneck": result.bottleneck,
        "general_engine_fraction": result.general_ns / time_ns if time_ns else 0.0,
        "tensor_engine_fraction": sum(result.tensor_engine_fraction(e) for e in _contraction_engines(machine)),
    }


def _contraction_engines(machine: Machine) -> list[str]:
    """Engines that sum up products in one instruction."""
    found = [
        e
        for spec in machine.instructions
        if spec.accumulate == "flag" and any(body.combine == ("+",) for body in spec.forms)
        for e in spec.engines
    ]
    return list(dict.fromkeys(found))
