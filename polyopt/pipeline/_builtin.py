"""polyopt's own passes, and the table in which every pass is found."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import cast

from polyopt.backend import emit_program, estimate_time_ns
from polyopt.errors import InputError, nearest
from polyopt.ir.mapping import Mapping as ProgramMapping
from polyopt.passes import Pass, Unit
from polyopt.pipeline._reschedule import Reschedule
from polyopt.pipeline._schedule import LoopSchedule
from polyopt.registry import Registry
from polyopt.schedule import (
    Absorbed,
    Dependences,
    absorb,
    compute_dependences,
    distribute,
    normalise,
    substitute_forward,
)
from polyopt.tiling import parse_limits, plan_mapping

__all__ = [
    "PASSES",
    "Absorb",
    "Deps",
    "FixSizes",
    "GenerateProgram",
    "Kernels",
    "Map",
    "Normalise",
    "Schedule",
    "Substitute",
    "default_pipeline",
    "find_pass",
    "loop_pipeline",
]


def default_pipeline() -> tuple[Pass, ...]:
    """Every pass of a compilation, in order."""
    return (
        Substitute(),
        Normalise(),
        Reschedule(),
        FixSizes(),
        Deps(),
        Schedule(),
        Absorb(),
        Map(),
        GenerateProgram(),
    )


def loop_pipeline(*, costed: bool) -> tuple[Pass, ...]:
    """The passes up to the order of the loops.  costed: whether the cost model of the machine chooses among orders."""
    choice: tuple[Pass, ...] = (Reschedule(),) if costed else ()
    return (Substitute(), Normalise(), *choice, FixSizes(), Deps(), Schedule())


PASSES = Registry(
    "polyopt.passes",
    {
        "fix-sizes": "polyopt.pipeline._builtin:FixSizes",
        "substitute": "polyopt.pipeline._builtin:Substitute",
        "normalise": "polyopt.pipeline._builtin:Normalise",
        "reschedule": "polyopt.pipeline._reschedule:Reschedule",
        "deps": "polyopt.pipeline._builtin:Deps",
        "schedule": "polyopt.pipeline._builtin:Schedule",
        "absorb": "polyopt.pipeline._builtin:Absorb",
        "map": "polyopt.pipeline._builtin:Map",
        "program": "polyopt.pipeline._builtin:GenerateProgram",
    },
)
"""Name in a pipeline text -> the dataclass."""


def find_pass(name: str) -> Callable[..., Pass]:
    """The dataclass of the pass called `name`.

    Raises InputError naming the nearest known one, PluginError when an installed one does not load.
    """
    known = PASSES.names()
    if name not in known:
        help = f"known: {', '.join(known)}"
        raise InputError(f"unknown pass {name!r}{nearest(name, known)}", help=help, id="pipeline")
    return cast("Callable[..., Pass]", PASSES.load(name))


@dataclass(frozen=True, slots=True)
class FixSizes:
    """Write the sizes that are given into the context, for all later passes to use."""

    @property
    def name(self) -> str:
        return "fix-sizes"

    def run(self, unit: Unit) -> Unit:
        return unit.with_scop(unit.scop.at(unit.at))


@dataclass(frozen=True, slots=True)
class Substitute:
    """Put temporaries that are read by one statement only into that statement."""

    @property
    def name(self) -> str:
        return "substitute"

    def run(self, unit: Unit) -> Unit:
        return unit.with_scop(substitute_forward(unit.scop))


@dataclass(frozen=True, slots=True)
class Normalise:
    """Make every entry of the order vectors a constant or an iterator."""

    @property
    def name(self) -> str:
        return "normalise"

    def run(self, unit: Unit) -> Unit:
        return unit.with_scop(normalise(unit.scop))


@dataclass(frozen=True, slots=True)
class Deps:
    """Compute the dependences (product `deps`).  max_operations: isl operations that they may take."""

    max_operations: int = 20_000_000

    @property
    def name(self) -> str:
        return "deps"

    def run(self, unit: Unit) -> Unit:
        found = compute_dependences(unit.scop, max_operations=self.max_operations)
        return unit.with_product("deps", found)


@dataclass(frozen=True, slots=True)
class Schedule:
    """Distribute into sequential loops around parallel statements (product `schedule`)."""

    @property
    def name(self) -> str:
        return "schedule"

    def run(self, unit: Unit) -> Unit:
        distributed, tree = distribute(unit.scop, unit.product("deps", Dependences))
        made = unit.with_scop(distributed).with_product("schedule", LoopSchedule(distributed, tree))
        return made.with_product("kernels", Kernels(LoopSchedule(distributed, tree).without_empty(), {}))


@dataclass(frozen=True, slots=True)
class Kernels:
    """What is left to be mapped, and what each reduction's kernel took over."""

    schedule: LoopSchedule
    absorbed: Mapping[str, Absorbed]


@dataclass(frozen=True, slots=True)
class Absorb:
    """Drop leaves without instances; let a reduction's kernel take over the initialisation before it and the use behind
    it (product `kernels`).
    """

    @property
    def name(self) -> str:
        return "absorb"

    def run(self, unit: Unit) -> Unit:
        schedule = unit.product("schedule", LoopSchedule).without_empty()
        tree, absorbed = absorb(unit.scop, schedule.tree)
        return unit.with_product("kernels", Kernels(LoopSchedule(unit.scop, tree), absorbed))


@dataclass(frozen=True, slots=True)
class Map:
    """Choose instructions, layouts, tiles and buffers (product `mapping`).

    tiles: upper limits of tile sizes, `map{tiles=i:128,S1.k:64}`, by the dimensions that `--emit mapping` shows.
    """

    tiles: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return "map"

    def run(self, unit: Unit) -> Unit:
        kernels = unit.product("kernels", Kernels)
        at = unit.at or None
        limits = parse_limits(self.tiles)
        mapping, remarks = plan_mapping(unit.scop, kernels.schedule.tree, unit.machine, at, kernels.absorbed, limits)
        unit = unit.with_product("mapping", mapping).with_remarks(remarks)
        return unit.with_product("estimated_time_ns", estimate_time_ns(mapping, unit.at))


@dataclass(frozen=True, slots=True)
class GenerateProgram:
    """Generate the program: code, addresses, waits."""

    @property
    def name(self) -> str:
        return "program"

    def run(self, unit: Unit) -> Unit:
        return replace(unit, program=emit_program(unit.scop, unit.product("mapping", ProgramMapping), unit.machine))
