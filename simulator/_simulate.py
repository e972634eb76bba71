"""Run a Program on a Machine: values and time in one walk."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from polyopt.errors import InputError, ProgramError, nearest
from polyopt.ir.program import Program
from polyopt.machine import Machine
from polyopt.simulator._checks import check_program
from polyopt.simulator._functions import Arithmetic
from polyopt.simulator._general import GeneralRunner
from polyopt.simulator._memory import Region, Store
from polyopt.simulator._order import Shuffler, wait_targets
from polyopt.simulator._plan import Plan, SitePlan, fail, make_plan
from polyopt.simulator._races import RaceDetector
from polyopt.simulator._report import build_result
from polyopt.simulator._result import Array, SimResult
from polyopt.simulator._values import Runner
from polyopt.simulator._walk import Log, walk_program

__all__ = ["simulate"]

Numbers = tuple[int, ...]


def simulate(
    program: Program,
    machine: Machine,
    inputs: Mapping[str, Array] | None,
    sizes: Mapping[str, int],
    *,
    timing_only: bool = False,
    detect_races: bool | None = None,
    mode: str = "float",
    keep_events: bool = False,
    raise_on_error: bool = False,
    dma_out_of_order: bool = False,
    order_seed: int | None = None,
    functions: Mapping[str, Callable[..., Any]] | None = None,
) -> SimResult:
    """Values and modelled time of one run at `sizes`.

    inputs: an array per tensor with role input or inout, rounded to its element type; not looked at with timing_only.
    detect_races: None means when values are computed in program order.  mode: 'float' (the machine's element types and
    rounding) or 'exact' (integers, stand-ins of `polyopt.ir.standins`, no rounding, int64 outputs).  keep_events: keep
    every executed instruction for `chrome_trace`.  raise_on_error: a race raises ProgramError.  dma_out_of_order:
    transfers of one queue may complete in any order.  order_seed: execute the values in an order drawn at random from
    all that waits and queues allow, so that a missing wait shows as a wrong or uninitialised value.  functions: what
    uninterpreted functions are.

    Raises InputError on sizes or inputs that do not fit, ProgramError on anything that breaks a rule of the machine:
    see `check_program`, and out-of-bounds views, lane limits, partition starts, banks, uninitialised cells, operands
    that overlap the output, two writes to one cell.
    """
    if mode not in ("float", "exact"):
        raise InputError(f"unknown mode {mode!r}{nearest(mode, ('float', 'exact'))}", id="mode")
    check_program(program, machine)
    plan = make_plan(program, machine, sizes)
    if detect_races is None:
        detect_races = not timing_only and order_seed is None
    run = _Run(plan, detect_races, dma_out_of_order, order_seed, keep_events)
    with np.errstate(all="ignore"):
        if timing_only:
            log, detector, outputs = run.walk(None, Arithmetic(exact=False))
        elif mode == "float":
            log, detector, outputs = run.walk(inputs or {}, Arithmetic(exact=False, functions=functions))
        else:
            log, detector, outputs = _walk_exact(run, inputs or {})
    races = tuple(detector.races) if detector is not None else () if detect_races else None
    if races and raise_on_error:
        raise ProgramError(str(races[0]), help="add a wait that orders the two", id="race")
    return build_result(plan, log, outputs, races, keep_events=keep_events)


@dataclass(frozen=True, slots=True, eq=False)
class _Run:
    """What is the same for every walk of one simulation."""

    plan: Plan
    detect_races: bool
    out_of_order: bool
    order_seed: int | None
    keep_events: bool

    def walk(
        self, inputs: Mapping[str, Array] | None, arithmetic: Arithmetic
    ) -> tuple[Log, RaceDetector | None, dict[str, Array]]:
        """The log, the races and the outputs; without inputs only time."""
        plan = self.plan
        detector = RaceDetector(plan, out_of_order=self.out_of_order) if self.detect_races and plan.sites else None
        store = None if inputs is None else _load(plan, inputs, arithmetic)
        if store is None and detector is None:
            return walk_program(plan, keep_events=self.keep_events), None, {}
        executor = _Executor(plan, store, arithmetic, detector, self.order_seed, self.out_of_order)
        log = walk_program(plan, handler=executor.handle, keep_events=self.keep_events)
        executor.finish()
        results = [t.name for t in plan.program.tensors if t.role in ("output", "inout")]
        return log, detector, {} if store is None else {n: store.tensor(n) for n in results}


def _walk_exact(run: _Run, inputs: Mapping[str, Array]) -> tuple[Log, RaceDetector | None, dict[str, Array]]:
    """Exact mode in float64, or with unbounded integers when float64 is too narrow; int64 outputs if they fit."""
    try:
        log, detector, outputs = run.walk(inputs, Arithmetic(exact=True))
    except ProgramError as error:
        if error.diagnostic.id != "exact-range":
            raise
        log, detector, outputs = run.walk(inputs, Arithmetic(exact=True, unbounded=True))
    narrow = {n: v if v.dtype == object and not _fits(v) else v.astype(np.int64) for n, v in outputs.items()}
    return log, detector, narrow


def _fits(values: Array) -> bool:
    return all(-(2**63) <= v < 2**63 for v in values.reshape(-1))


def _load(plan: Plan, inputs: Mapping[str, Array], arithmetic: Arithmetic) -> Store:
    """Memory with all inputs in place."""
    wanted = [t.name for t in plan.program.tensors if t.role in ("input", "inout")]
    for name in inputs:
        if name not in wanted:
            raise InputError(
                f"{plan.program.name} takes no input {name!r}{nearest(name, wanted)}",
                help=f"inputs: {', '.join(wanted) or 'none'}",
                id="inputs",
            )
    missing = [n for n in wanted if n not in inputs]
    if missing:
        raise InputError(
            f"no array for {', '.join(missing)} of {plan.program.name}", help="give every input and inout", id="inputs"
        )
    store = Store(plan, arithmetic.element_type)
    for name in wanted:
        store.load(name, arithmetic.given(np.asarray(inputs[name]), plan.arrays[name].dtype))
    return store


class _Executor:
    """Executes instances as the walk reaches them, or in another order, and tells the race detector."""

    def __init__(
        self,
        plan: Plan,
        store: Store | None,
        arithmetic: Arithmetic,
        detector: RaceDetector | None,
        order_seed: int | None,
        out_of_order: bool,
    ) -> None:
        self.plan = plan
        self.has_values = store is not None
        self.detector = detector
        self.runners: list[Runner | GeneralRunner] = [
            (GeneralRunner if s.spec.kind == "general" else Runner)(s, store, arithmetic) for s in plan.sites
        ]
        self.targets = wait_targets(plan)
        self.shuffler: Shuffler | None = None
        if order_seed is not None and store is not None:
            queues = list(dict.fromkeys(s.instr.queue for s in plan.sites))
            loose = {k for k, q in enumerate(queues) if q in plan.machine.transfer.queues} if out_of_order else set()
            self.shuffler = Shuffler(plan, self.run, order_seed, frozenset(loose))

    def handle(self, site: SitePlan, extents: Numbers, numbers: Numbers, at: Numbers, reaches: Numbers) -> None:
        """One instance, in program order."""
        targets = self.targets[site.number] if self.detector or self.shuffler else ()
        waits = [(*t, n) for t, n in zip(targets, reaches, strict=False) if t is not None]
        if self.detector is not None:
            self.detector.begin(site, at, waits)
        if self.has_values and self.shuffler is None:
            self.run(site, extents, numbers, at, self.detector.access if self.detector else None)
            return
        if self.detector is not None:
            self.touch(site, extents, numbers, at, self.detector.access)
        if self.shuffler is not None:
            self.shuffler.take(site, extents, numbers, at, waits)

    def run(
        self,
        site: SitePlan,
        extents: Numbers,
        numbers: Numbers,
        at: Numbers,
        record: Callable[[Region, bool], None] | None = None,
    ) -> None:
        env = dict(zip(site.loops, at, strict=True))
        runner = self.runners[site.number]
        try:
            if isinstance(runner, GeneralRunner):
                runner.run(extents, env, record)
            else:
                runner.run(extents, numbers, env, record)
        except ProgramError as error:
            if error.diagnostic.id != "uninterpreted":
                raise
            fail(site, env, error.message, help=error.diagnostic.help, id=error.diagnostic.id)

    def touch(
        self, site: SitePlan, extents: Numbers, numbers: Numbers, at: Numbers, record: Callable[[Region, bool], None]
    ) -> None:
        env = dict(zip(site.loops, at, strict=True))
        runner = self.runners[site.number]
        if isinstance(runner, GeneralRunner):
            runner.touch(extents, env, record)
        else:
            runner.touch(extents, numbers, env, record)

    def finish(self) -> None:
        """Execute what was held back."""
        if self.shuffler is not None:
            self.shuffler.drain()
