"""Arrays for a run: those given, checked, and the others generated."""

from __future__ import annotations

import math
import os
import sys
import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from polyopt.errors import BudgetError, InputError, nearest
from polyopt.frontend.torch import plain_array
from polyopt.ir import Assign, Indirect, Scop, Tensor, access_chain, accesses
from polyopt.pipeline._sizes import complete_sizes
from polyopt.reference import index_range
from polyopt.reference import inputs as generate_inputs

__all__ = ["as_array", "bind_inputs", "refuse_far_indices"]

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
            raise InputError(
                f"{scop.name} takes no input {name!r}{nearest(name, wanted)}",
                help=f"inputs: {', '.join(wanted) or 'none'}",
                id="inputs",
            )
    fixed = complete_sizes(scop, sizes, {n: a.shape for n, a in given.items()})
    needed = _subscripting(scop) if timing_only else {t.name for t in scop.tensors}
    _check_memory(scop, fixed, needed)
    arrays = generate_inputs(_without_inputs(scop, needed | set(given)), fixed, seed, given)
    return fixed, {n: _as_element(scop.tensor(n), a) for n, a in arrays.items()}


def as_array(name: str, value: npt.ArrayLike) -> Array:
    """What a user gives for the tensor `name`, as an array; PyTorch tensors too.

    Raises InputError on None, text, rows of different lengths and masked cells.
    """
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        return plain_array(value)
    problem = ""
    if value is None or isinstance(value, str | bytes | dict | set):
        problem = f"is {value!r}"
    elif np.ma.is_masked(value):
        problem = "has masked cells, and a tensor has a value in every cell"
    else:
        try:
            return np.asarray(value)
        except (ValueError, TypeError) as error:
            problem = f"is no array: {error}"
    raise InputError(f"{name} {problem}", help=f"give {name} an array of numbers", id="inputs")


def _as_element(tensor: Tensor, values: Array) -> Array:
    """`values` in the element type of `tensor`.  Raises InputError on values that it does not hold."""
    element = tensor.element
    if values.dtype == element.numpy:
        return values
    if values.dtype.kind not in "biufV":
        raise InputError(
            f"{tensor.name} holds values of type {values.dtype}, expected numbers for {tensor.dtype}",
            help=f"convert them to {tensor.dtype} first",
            id="inputs",
        )
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        held = values.astype(element.numpy)
        wide = values.astype(np.float64) if values.dtype.kind in "fV" else values
        if element.is_float:
            lost = np.isfinite(wide) & ~np.isfinite(held.astype(np.float64))
        elif tensor.dtype == "bool":
            lost = (wide != 0) & (wide != 1)
        else:
            lost = np.asarray(held.astype(object) != wide.astype(object))
    if lost.any():
        place = [int(k) for k in np.argwhere(lost)[0]]
        raise InputError(
            f"{tensor.name}{place} is {wide[tuple(place)]}, which {tensor.dtype} does not hold",
            help=f"give values of {tensor.dtype}, or declare {tensor.name} with a wider type",
            id="inputs",
        )
    return held


def refuse_far_indices(scop: Scop, arrays: Mapping[str, Array], sizes: Mapping[str, int]) -> None:
    """Raise InputError when an index tensor holds a value with which some access would leave its tensor.

    For runs that were refused: where no instance uses the value it does no harm.
    """
    for name, values in arrays.items():
        allowed = index_range(scop, name, sizes)
        if allowed is None or values.dtype.kind not in "iu":
            continue
        far = np.argwhere((values < allowed[0]) | (values > allowed[1]))
        if len(far):
            place = [int(k) for k in far[0]]
            raise InputError(
                f"{name}{place} is {values[tuple(place)]}, but it subscripts tensors where only {allowed[0]} to "
                f"{allowed[1]} are inside",
                help=f"give {name} values in that range, or guard the accesses through it",
                id="inputs",
            )


def _subscripting(scop: Scop) -> set[str]:
    """Tensors whose values choose a cell of another one."""
    bodies = [s.body for s in scop.statements if isinstance(s.body, Assign)]
    used = [a for b in bodies for a in (*access_chain(b.target), *accesses(b.value))]
    return {s.access.tensor for a in used for s in a.subscripts if isinstance(s, Indirect)}


def _without_inputs(scop: Scop, kept: set[str]) -> Scop:
    """The same program, for which nothing but `kept` is to be generated."""
    tensors = (t if t.name in kept or t.role == "output" else replace(t, role="temp") for t in scop.tensors)
    return replace(scop, tensors=tuple(tensors))


def _free_bytes() -> tuple[int, str]:
    """Memory that is free now, and where the figure comes from."""
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"), "the free memory"
    except (AttributeError, ValueError, OSError):
        return 2**33, "8 GiB, since the system does not say how much is free"


def _check_memory(scop: Scop, sizes: Mapping[str, int], names: set[str]) -> None:
    needed = sum(8 * VALUE_COPIES * math.prod(t.sizes(sizes)) for t in scop.tensors if t.name in names)
    free, what = _free_bytes()
    if needed > free // 2:
        raise BudgetError(
            f"the values of {scop.name} take {needed / 2**30:.1f} GiB, more than {free / 2**31:.1f} GiB: half of "
            f"{what}",
            help="choose smaller sizes, or model the time alone: --timing-only, timing_only=True",
            id="memory",
        )
