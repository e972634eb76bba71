"""polyopt's own passes, and the table in which every pass is found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import cast

from polyopt.errors import InputError, nearest
from polyopt.passes import Pass, Unit
from polyopt.registry import Registry

__all__ = ["PASSES", "Deps", "GenerateProgram", "find_pass"]

PASSES = Registry(
    "polyopt.passes",
    {"deps": "polyopt.pipeline._builtin:Deps", "program": "polyopt.pipeline._builtin:GenerateProgram"},
)
"""Name in a pipeline text -> the dataclass."""


def find_pass(name: str) -> Callable[..., Pass]:
    """The dataclass of the pass called `name`.

    Raises InputError naming the nearest known one, PluginError when an installed one does not load.
    """
    known = PASSES.names()
    if name not in known:
        raise InputError(
            f"unknown pass {name!r}{nearest(name, known)}", help=f"known: {', '.join(known)}", id="pipeline"
        )
    return cast("Callable[..., Pass]", PASSES.load(name))


@dataclass(frozen=True, slots=True)
class Deps:
    """Compute the dependences (product `deps`).  max_operations: isl operations that they may take."""

    max_operations: int = 20_000_000

    @property
    def name(self) -> str:
        return "deps"

    def run(self, unit: Unit) -> Unit:
        from polyopt.schedule import compute_dependences

        found = compute_dependences(unit.scop.at(unit.at), max_operations=self.max_operations)
        return unit.with_product("deps", found)


@dataclass(frozen=True, slots=True)
class GenerateProgram:
    """Generate the program (products `generated`, `schedule`, `mapping`)."""

    @property
    def name(self) -> str:
        return "program"

    def run(self, unit: Unit) -> Unit:
        from polyopt.backend import generate

        generated = generate(unit.scop, unit.machine, unit.at or None)
        unit = unit.with_product("generated", generated).with_remarks(generated.remarks)
        return replace(unit, program=generated.program)
