"""Integer-exact comparison: the generated program and the source agree bit for bit, or they do different things."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from polyopt.ir import Program, Scop
from polyopt.machine import Machine
from polyopt.reference import evaluate, inputs
from polyopt.simulator import simulate
from polyopt.verify._compare import Comparison, compare_values

__all__ = ["HasProgram", "compare_exact"]


class HasProgram(Protocol):
    """What a compiled program offers."""

    @property
    def program(self) -> Program: ...

    @property
    def machine(self) -> Machine: ...


def compare_exact(
    scop: Scop,
    compiled: HasProgram,
    sizes: Mapping[str, int],
    seed: int = 0,
    *,
    arrays: Mapping[str, npt.NDArray[Any]] | None = None,
    order_seed: int | None = None,
) -> Comparison:
    """Run `compiled` and its source `scop` on small non-zero integers, with integer stand-ins for inexact operations.

    Every bound of the comparison is 0, so it is within only when all values are equal.  arrays: integers to take for
    some tensors.  order_seed: execute the program in a random order that its waits allow.  Raises ProgramError
    (`exact-range`) when a value needs more than 53 bits: choose smaller sizes or values.
    """
    given = inputs(scop, sizes, seed, arrays, mode="exact")
    expected = evaluate(scop, given, sizes, "exact")
    result = simulate(compiled.program, compiled.machine, given, sizes, mode="exact", order_seed=order_seed)
    return compare_values(result.outputs, expected, {name: np.zeros(()) for name in expected})
