"""Tensors while a program runs: storage, what was written, and the checks at both ends.

float64 mode keeps float tensors in float64; exact mode keeps them as integers modulo a prime.  Integer tensors are
held in int64 and every store wraps to the element type (two's complement); a float stored to an integer tensor is cut
off towards zero, inf and nan become 0; a bool tensor stores `value != 0`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from polyopt.errors import InputError, UnsupportedError, nearest
from polyopt.ir import DType, Scop, Tensor
from polyopt.ir.standins import canonical
from polyopt.reference._node import dtype_kind

__all__ = [
    "MODES",
    "Array",
    "CellError",
    "Cells",
    "bind_inputs",
    "bind_sizes",
    "check_mode",
    "make_cells",
    "outputs_of",
    "refuse_opaque",
    "round_array",
    "truncate_array",
    "wrap_array",
    "wrap_int",
]

Array = npt.NDArray[Any]
MODES = ("float64", "exact")


class CellError(Exception):
    """A subscript outside its tensor or a cell that nothing has written; becomes an InputError with the instance."""

    def __init__(self, tensor: str, cell: tuple[int, ...], outside: bool) -> None:
        super().__init__(tensor, cell, outside)
        self.tensor, self.cell, self.outside = tensor, cell, outside

    def explain(self, statement: str, instance: Mapping[str, int], tensor: Tensor, shape: Sequence[int]) -> InputError:
        """The error for the user, naming statement, instance and cell."""
        at = ", ".join(f"{k}={v}" for k, v in instance.items())
        where = f"{statement}[{at}]"
        cell = f"{self.tensor}[{', '.join(map(str, self.cell)) or '()'}]"
        if self.outside:
            return InputError(
                f"{where} accesses {cell}, but {self.tensor} has shape {tuple(shape)}",
                id="out-of-bounds",
                help="shrink the domain or enlarge the tensor",
            )
        return InputError(
            f"{where} reads {cell}, which nothing has written before ({self.tensor} has role {tensor.role})",
            id="uninitialised",
            help=f"write the cell in an earlier instance, or give {self.tensor} the role input or inout",
        )


@dataclass(slots=True)
class Cells:
    """The cells of one tensor: `parts` are C-contiguous arrays of its shape, the values first.

    written: a bool array for tensors that begin without values, else None.
    """

    tensor: Tensor
    shape: tuple[int, ...]
    parts: list[Array]
    written: npt.NDArray[np.bool_] | None

    @property
    def kind(self) -> str:
        return dtype_kind(self.tensor.dtype)


def check_mode(mode: str) -> None:
    """Raises InputError for a mode that is not in MODES."""
    if mode not in MODES:
        raise InputError(f"unknown mode {mode!r}{nearest(mode, MODES)}", id="mode")


def bind_sizes(scop: Scop, sizes: Mapping[str, int]) -> dict[str, int]:
    """A value for every parameter; InputError when one is missing, unknown, no integer or outside the context."""
    for name in sizes:
        if name not in scop.params:
            raise InputError(
                f"{scop.name} has no parameter {name!r}{nearest(name, scop.params)}",
                help=f"sizes: {', '.join(scop.params) or 'none'}",
                id="sizes",
            )
    missing = [p for p in scop.params if p not in sizes]
    if missing:
        raise InputError(
            f"no size for {', '.join(missing)} of {scop.name}", id="sizes", help="give every parameter a value"
        )
    bound = {p: int(sizes[p]) for p in scop.params}
    if scop.context.fix(bound).is_empty() or any(n < 0 for t in scop.tensors for n in t.sizes(bound)):
        given = ", ".join(f"{p}={v}" for p, v in bound.items())
        raise InputError(
            f"the sizes {given} are outside the context of {scop.name}: {scop.context.text()}",
            help="choose sizes that fulfil the context",
            id="sizes",
        )
    return bound


def refuse_opaque(scop: Scop) -> None:
    """Raises UnsupportedError when a statement is an opaque call."""
    for s in scop.statements:
        if s.is_opaque:
            raise UnsupportedError(
                f"{s.name} is an opaque call: the program has no values to compute",
                help="replace the call by statements, or use only the analyses that do not run the program",
            )


def bind_inputs(scop: Scop, inputs: Mapping[str, Any], sizes: Mapping[str, int], mode: str) -> dict[str, Array]:
    """The arrays of all inputs and inouts, rounded to their element type and widened to the storage type of `mode`.

    Raises InputError on a missing or unknown tensor, a wrong shape, or values the element type or mode cannot hold.
    """
    wanted = {t.name: t for t in scop.with_role("input", "inout")}
    for name in inputs:
        if name not in wanted:
            raise InputError(
                f"{scop.name} takes no input {name!r}{nearest(name, wanted)}",
                help=f"inputs: {', '.join(wanted) or 'none'}",
                id="inputs",
            )
    missing = [n for n in wanted if n not in inputs]
    if missing:
        raise InputError(
            f"no array for {', '.join(missing)} of {scop.name}",
            help="give an array for every input and inout",
            id="inputs",
        )
    return {n: _widened(t, np.asarray(inputs[n]), t.sizes(sizes), mode) for n, t in wanted.items()}


def _widened(tensor: Tensor, given: Array, shape: tuple[int, ...], mode: str) -> Array:
    if given.shape != shape:
        raise InputError(
            f"{tensor.name} has shape {given.shape}, expected {shape}",
            help="give an array of the shape that the sizes ask for",
            id="inputs",
        )
    kind = dtype_kind(tensor.dtype)
    if kind == "float" and mode == "float64":
        return np.asarray(given.astype(tensor.element.numpy).astype(np.float64), order="C")
    if kind == "bool":
        return np.asarray(given != 0)
    wide = given if given.dtype == object else given.astype(np.float64) if given.dtype.kind == "V" else given
    whole = wide.astype(np.int64)
    if not np.array_equal(whole, wide):
        raise InputError(
            f"{tensor.name} holds values that are no 64-bit integers, expected integers ({mode} mode)",
            help="round the values, or declare a floating element type",
            id="inputs",
        )
    if kind == "int" and not np.array_equal(whole, wrap_array(whole, tensor.element)):
        raise InputError(
            f"{tensor.name} holds values outside {tensor.dtype}",
            help="choose values that the type holds, or a wider type",
            id="inputs",
        )
    return np.asarray(whole)


def make_cells(
    tensors: Iterable[Tensor], arrays: Mapping[str, Array], sizes: Mapping[str, int], mode: str
) -> dict[str, Cells]:
    """Storage for every tensor: copies of the inputs, zeros marked as not written for the rest."""
    storage = {"float": np.float64 if mode == "float64" else np.int64, "int": np.int64, "bool": np.bool_}
    cells: dict[str, Cells] = {}
    for t in tensors:
        shape = t.sizes(sizes)
        if t.name in arrays:
            values = arrays[t.name].copy(order="C")
            if mode == "exact" and dtype_kind(t.dtype) == "float":
                values = np.asarray(canonical(values))
            cells[t.name] = Cells(t, shape, [values], None)
        else:
            empty = np.zeros(shape, storage[dtype_kind(t.dtype)])
            cells[t.name] = Cells(t, shape, [empty], np.zeros(shape, np.bool_))
    return cells


def outputs_of(cells: Mapping[str, Cells], mode: str, round_outputs: bool, keep_temps: bool) -> dict[str, Array]:
    """Values of outputs and inouts (and temps); in float64 mode rounded to their element type if asked."""
    roles = ("output", "inout", "temp") if keep_temps else ("output", "inout")
    found: dict[str, Array] = {}
    for name, c in cells.items():
        if c.tensor.role in roles:
            exact_float = c.kind == "float" and (mode == "exact" or not round_outputs)
            found[name] = c.parts[0] if exact_float else round_array(c.parts[0], c.tensor.element)
    return found


def round_array(values: Array, element: DType) -> Array:
    """Values converted to the numpy type of an element type, round to nearest even."""
    with np.errstate(all="ignore"):
        return values.astype(element.numpy)


def wrap_int(value: int, element: DType) -> int:
    """An integer modulo the range of an integer element type."""
    bits = 8 * element.element_bytes
    value &= (1 << bits) - 1
    signed = element.name.startswith("int")
    return value - (1 << bits) if signed and value >> (bits - 1) else value


def wrap_array(values: Array, element: DType) -> npt.NDArray[np.int64]:
    """Integers modulo the range of an integer element type, as int64."""
    if values.dtype == object:
        return np.array([wrap_int(int(v), element) for v in values.ravel()], np.int64).reshape(values.shape)
    return values.astype(element.numpy).astype(np.int64)


def truncate_array(values: Array) -> Array:
    """Floats cut off towards zero as integers modulo 2**64; inf and nan become 0."""
    whole = np.trunc(np.where(np.isfinite(values), values, 0.0))
    if bool((np.abs(whole) < 2.0**63).all()):
        return whole.astype(np.int64)
    limit = 1 << 64
    wrapped = [(int(v) + limit // 2) % limit - limit // 2 for v in whole.ravel()]
    return np.array(wrapped, np.int64).reshape(whole.shape)
