"""A compiled program: what was generated, and how to run it."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy.typing as npt

from polyopt.backend import general_kernels
from polyopt.errors import Diagnostic, InputError, ProgramError
from polyopt.ir import Program, Scop
from polyopt.ir.mapping import Mapping as ProgramMapping
from polyopt.ir.mapping import Sequential
from polyopt.machine import Machine
from polyopt.passes import Pass, Unit, pipeline_text
from polyopt.pipeline._emit import emit
from polyopt.pipeline._inputs import as_array, bind_inputs
from polyopt.pipeline._outcome import Outcome, Request, run_request, simulate_source
from polyopt.pipeline._schedule import LoopSchedule, judge_schedule
from polyopt.pipeline._verdicts import legality_verdict
from polyopt.report import RunReport
from polyopt.verify import PropertyVerdict

__all__ = ["Arguments", "Compiled"]

Array = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class Arguments:
    """How positional arguments of `run` become arrays by tensor name; `bound`: arrays that the program brings along."""

    bound: Mapping[str, Array]
    by_position: Any = None


@dataclass(frozen=True, eq=False)
class Compiled:
    """A program for one machine.  `source` is the program as written, `unit` what the passes made of it.

    latest: sizes and arrays of the latest `run`, which `report` and `verdicts` are about (none: generated inputs).
    """

    source: Scop
    unit: Unit
    passes: tuple[Pass, ...]
    compile_s: float
    arguments: Arguments
    latest: list[tuple[Mapping[str, int], Mapping[str, Array]]] = field(default_factory=list, repr=False)

    @property
    def program(self) -> Program:
        """The generated program; InputError when the pipeline ends before one is made."""
        if self.unit.program is None:
            text = pipeline_text(self.passes)
            raise InputError(f"the pipeline {text!r} makes no program", help="end it with 'program'", id="pipeline")
        return self.unit.program

    @property
    def machine(self) -> Machine:
        return self.unit.machine

    @property
    def at(self) -> Mapping[str, int]:
        """The sizes that the program was made for."""
        return self.unit.at

    @property
    def schedule(self) -> LoopSchedule:
        """The order of the program; InputError when the pipeline makes none."""
        return self.unit.product("schedule", LoopSchedule)

    @property
    def mapping(self) -> ProgramMapping:
        """Instructions, layouts, tiles and buffers; InputError when the pipeline makes none."""
        return self.unit.product("mapping", ProgramMapping)

    @property
    def estimated_time_ns(self) -> float | None:
        """What the cost model expects, at the sizes of `at`."""
        found = self.unit.products.get("estimated_time_ns")
        return found if isinstance(found, float) else None

    @property
    def remarks(self) -> tuple[Diagnostic, ...]:
        return self.unit.remarks

    @functools.cached_property
    def legal(self) -> PropertyVerdict:
        """The judge's answer on the schedule, for the sizes that the program was made for."""
        return legality_verdict(judge_schedule(self.schedule, self.at), self._substituted())

    @functools.cached_property
    def outcome(self) -> Outcome:
        """The latest run once more, compared with the reference; before any run, one at the sizes of `at` on generated
        inputs (seed 0).  Raises InputError naming a missing size.
        """
        sizes, arrays = self.latest[-1] if self.latest else ({}, {})
        return self.execute(sizes, inputs=arrays)

    @property
    def report(self) -> dict[str, object]:
        """The fields of `run --json`."""
        return self.outcome.report.to_json()

    @property
    def verdicts(self) -> Mapping[str, PropertyVerdict]:
        """Property -> verdict, of the same run as `report`."""
        return self.outcome.verdicts

    def emit(self, what: str) -> str:
        """One level of the way as text: scop, deps, schedule, mapping, program, c, dot or json."""
        return emit(self, what)

    def run(self, *args: object, **arrays: npt.ArrayLike) -> dict[str, Array]:
        """Output arrays by name, from the simulator.

        arrays: one for every input and inout, by tensor name; sizes that `at` left out follow from their shapes.
        args: only for programs that know the order of their arguments (models); tensors or arrays.
        Raises InputError on a missing, unknown or misshapen array, and ProgramError when the run breaks a rule.
        """
        given = self._given(args, arrays)
        missing = [t.name for t in self.source.with_role("input", "inout") if t.name not in given]
        if missing:
            raise InputError(
                f"no array for {', '.join(missing)} of {self.source.name}", help=f"run({missing[0]}=...)", id="inputs"
            )
        sizes, values = bind_inputs(self.source, self.at, given, 0)
        self.latest[:] = [(sizes, values)]
        self.__dict__.pop("outcome", None)
        result = simulate_source(self.source, self.program, self.machine, values, sizes)
        certain = [r for r in result.races or () if r.certain]
        if certain:
            raise ProgramError(
                str(certain[0]),
                help="report the program: waits that polyopt derives should order these accesses",
                id="race",
            )
        return dict(result.outputs)

    def run_report(
        self,
        sizes: Mapping[str, int] | None = None,
        *,
        inputs: Mapping[str, npt.ArrayLike] | None = None,
        seed: int = 0,
        timing_only: bool = False,
    ) -> RunReport:
        """The report of one run; arrays that `inputs` lacks are generated from `seed`."""
        return self.execute(sizes, inputs=inputs, seed=seed, timing_only=timing_only).report

    def execute(
        self,
        sizes: Mapping[str, int] | None = None,
        *,
        inputs: Mapping[str, npt.ArrayLike] | None = None,
        seed: int = 0,
        timing_only: bool = False,
        keep_events: bool = False,
    ) -> Outcome:
        """Run once.  sizes: added to those of `at`; then those that the shapes of `inputs` determine."""
        given = {**self.arguments.bound, **{n: as_array(n, a) for n, a in (inputs or {}).items()}}
        wanted = {**self.at, **(sizes or {})}
        fixed, arrays = bind_inputs(self.source, wanted, given, seed, timing_only=timing_only)
        request = Request(
            source=self.source,
            program=self.program,
            machine=self.machine,
            sizes=fixed,
            arrays=arrays,
            legal=self.legal,
            seed=seed,
            timing_only=timing_only,
            keep_events=keep_events,
            estimated_time_ns=self.estimated_time_ns,
            compile_s=self.compile_s,
            rounds_every_step=self._rounds_every_step(),
        )
        return run_request(request)

    def _rounds_every_step(self) -> bool:
        """Whether some statement runs in sequential loops or point by point, storing each partial result."""
        nodes = self.mapping.nodes
        return any(isinstance(n, Sequential) for n in nodes) or bool(general_kernels(self.mapping))

    def _substituted(self) -> tuple[str, ...]:
        """Temporaries of the source that the passes in front of the schedule made unnecessary."""
        left = {t.name for t in self.schedule.scop.tensors}
        return tuple(t.name for t in self.source.tensors if t.name not in left)

    def _given(self, args: tuple[object, ...], arrays: Mapping[str, npt.ArrayLike]) -> dict[str, Array]:
        found = {**self.arguments.bound, **{n: as_array(n, a) for n, a in arrays.items()}}
        if not args:
            return found
        if self.arguments.by_position is None:
            raise InputError(
                f"{self.source.name} takes its arrays by name, found {len(args)} positional arguments",
                help="run(A=..., B=...)",
                id="inputs",
            )
        return {**self.arguments.by_position(*args), **found}
