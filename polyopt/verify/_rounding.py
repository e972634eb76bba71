"""Rounding-error bounds: a running error analysis beside the float64 values of the reference.

The bound of a cell covers every execution that computes each operation in `arithmetic` (float64 beside a float64
operand), sums in any order in `accumulate_dtype`, and stores to the tensors' element types with round to nearest:

- an operation adds |d op / d x| * error(x) and u * |result|, functions and divisions 4 u;
- a sum of n terms adds (n - 1) u sum|terms| over the whole chain of `+=` since the last plain store, whatever the
  order (Rump: the constant n - 1 needs no higher-order terms);
- a store adds the rounding to the element type.  A reduction into a narrow type is rounded at every step when the
  program does not grant `reassociate`, else when it is stored;
- a comparison whose operands are closer than their errors may go either way: a selection takes the union of both
  branches.

The reference value is float64 itself and rounded once at the end, which the bound includes.  Second-order terms are
kept where a rule has them; float64's own rounding is covered by slack.  Where the reference is not finite the bound is
inf.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from polyopt.ir import Scop, dtype
from polyopt.reference import Functions, run_program
from polyopt.verify._error_algebra import ErrorAlgebra
from polyopt.verify._error_rules import Array

__all__ = ["error_bounds", "values_and_bounds"]


def error_bounds(
    scop: Scop,
    inputs: Mapping[str, Any],
    sizes: Mapping[str, int],
    accumulate_dtype: str = "float32",
    *,
    arithmetic: str = "float32",
    functions: Functions | None = None,
) -> dict[str, Array]:
    """For every output and inout, a float64 array of bounds on |run - reference| per element.

    `reference` is `polyopt.reference.evaluate`, outputs rounded; `run` any execution that the module's text describes.
    Errors as `evaluate`.
    """
    return values_and_bounds(scop, inputs, sizes, accumulate_dtype, arithmetic=arithmetic, functions=functions)[1]


def values_and_bounds(
    scop: Scop,
    inputs: Mapping[str, Any],
    sizes: Mapping[str, int],
    accumulate_dtype: str = "float32",
    *,
    arithmetic: str = "float32",
    functions: Functions | None = None,
) -> tuple[dict[str, Array], dict[str, Array]]:
    """The reference's values, not rounded, and `error_bounds`, from one evaluation."""
    algebra = ErrorAlgebra(scop, dtype(accumulate_dtype), dtype(arithmetic), functions)
    cells = run_program(scop, inputs, sizes, algebra, functions=functions)
    found = {n: c for n, c in cells.items() if c.tensor.role in ("output", "inout")}
    with np.errstate(all="ignore"):
        return {n: c.parts[0] for n, c in found.items()}, {n: algebra.final_bound(c) for n, c in found.items()}
