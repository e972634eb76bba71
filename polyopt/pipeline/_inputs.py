"""Arrays for a run: those given, checked, and the others generated."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy.typing as npt

from polyopt.errors import BudgetError, InputError, nearest
from polyopt.ir import Assign, Indirect, Scop, access_chain, accesses
from polyopt.pipeline._sizes import complete_sizes
from polyopt.reference import inputs as generate_inputs

__all__ = ["bind_inputs"]

Array = npt.NDArray[Any]

VALUE_COPIES = 5
"""Arrays that a run with values holds of each tensor, in float64: inputs, device memory, reference, bounds, outputs."""


def bind_inputs(
    scop: Scop, sizes: Mapping[str, int], given: Mapping[str, Array], seed: int, *, timing_only: bool = False
) -> tuple[dict[str, int], dict[str, Array]]:
    """All sizes, and an array of the right shape and element type for every input; missing ones are generated.

    timing_only: only arrays that subscript others are generated, since nothing else decides what is moved.
    Raises InputError on an unknown or misshapen array and on open sizes, BudgetError when the values need more than
    half of the free memory.
    """
    wanted = [t.name for t in scop.with_role("input", "inout")]
    for name in given:
        if name not in wanted:
            raise InputError(f"{scop.name} takes no input {name!r}{nearest(name, wanted)}", id="inputs")
    fixed = complete_sizes(scop, sizes, {n: a.shape for n, a in given.items()})
    needed = _subscripting(scop) if timing_only else {t.name for t in scop.tensors}
    _check_memory(scop, fixed, needed)
    arrays = generate_inputs(_without_inputs(scop, needed | set(given)), fixed, seed, given)
    return fixed, {n: a.astype(scop.tensor(n).element.numpy) for n, a in arrays.items()}


def _subscripting(scop: Scop) -> set[str]:
    """Tensors whose values choose a cell of another one."""
    bodies = [s.body for s in scop.statements if isinstance(s.body, Assign)]
    used = [a for b in bodies for a in (*access_chain(b.target), *accesses(b.value))]
    return {s.access.tensor for a in used for s in a.subscripts if isinstance(s, Indirect)}


def _without_inputs(scop: Scop, kept: set[str]) -> Scop:
    """The same program, for which nothing but `kept` is to be generated."""
    tensors = (t if t.name in kept or t.role == "output" else replace(t, role="temp") for t in scop.tensors)
    return replace(scop, tensors=tuple(tensors))


def _free_bytes() -> int:
    """Memory that is free now; 8 GiB where the system does not say."""
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return 2**33


def _check_memory(scop: Scop, sizes: Mapping[str, int], names: set[str]) -> None:
    needed = sum(8 * VALUE_COPIES * math.prod(t.sizes(sizes)) for t in scop.tensors if t.name in names)
    limit = _free_bytes() // 2
    if needed > limit:
        raise BudgetError(
            f"the values of {scop.name} take {needed / 2**30:.1f} GiB, more than half of the free memory "
            f"({limit / 2**30:.1f} GiB)",
            help="choose smaller sizes, or model the time alone: --timing-only, timing_only=True",
            id="memory",
        )
