"""The oracle: every statement instance in original order, one after the other."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from polyopt.errors import InputError
from polyopt.ir import Scop, Statement
from polyopt.reference._affine import Env, compile_affine
from polyopt.reference._cells import (
    Array,
    CellError,
    Cells,
    bind_inputs,
    bind_sizes,
    check_mode,
    make_cells,
    outputs_of,
    refuse_opaque,
)
from polyopt.reference._scalar import Flat, Functions, compile_assign

__all__ = ["instances_in_order", "interpret"]

Run = Callable[[Env], None]


def interpret(
    scop: Scop,
    inputs: Mapping[str, Any],
    sizes: Mapping[str, int],
    mode: str = "float64",
    *,
    round_outputs: bool = True,
    keep_temps: bool = False,
    functions: Functions | None = None,
) -> dict[str, Array]:
    """Values of all outputs and inouts (temps too with `keep_temps`) after the program has run in original order.

    inputs: an array for every input and inout; float arrays are rounded to the tensor's element type first.
    mode `float64`: floats computed and kept in float64, outputs rounded to their element type unless `round_outputs` is
    false; `exact`: floats are integers modulo a prime with the stand-ins of `polyopt.ir.standins`, and come back as
    int64.
    An output cell that no instance writes is 0.  functions: values of uninterpreted calls in float64 mode.

    Raises InputError when sizes or inputs do not fit, when a subscript leaves its tensor, or when an instance reads a
    cell of a temp or output that nothing has written; UnsupportedError for opaque calls.
    """
    check_mode(mode)
    refuse_opaque(scop)
    sizes = bind_sizes(scop, sizes)
    cells = make_cells(scop.tensors, bind_inputs(scop, inputs, sizes, mode), sizes, mode)
    flats = {n: _flat(c) for n, c in cells.items()}
    runs = [compile_assign(s.assign, flats, mode, functions) for s in scop.statements]
    for position, point in instances_in_order(scop, sizes):
        statement = scop.statements[position]
        _run_one(statement, dict(zip(statement.iterators, point, strict=True)), sizes, runs[position], flats)
    for n, f in flats.items():
        cells[n].parts[0] = _array(f, cells[n].parts[0].dtype)
    return outputs_of(cells, mode, round_outputs, keep_temps)


def _run_one(statement: Statement, instance: Env, sizes: Env, run: Run, flats: Mapping[str, Flat]) -> None:
    try:
        run({**sizes, **instance})
    except CellError as error:
        flat = flats[error.tensor]
        raise error.explain(statement.name, instance, flat.tensor, flat.shape) from None


def instances_in_order(scop: Scop, sizes: Mapping[str, int]) -> list[tuple[int, tuple[int, ...]]]:
    """(position of the statement, instance) for every instance, in original order.

    Lexicographic by order vector, padded with 0, then textual.  Raises InputError when two instances of one statement
    have the same order vector.
    """
    rows: list[tuple[tuple[int, ...], int, tuple[int, ...]]] = []
    for position, s in enumerate(scop.statements):
        order = [compile_affine(e) for e in s.order]
        padding = (0,) * (scop.order_length() - len(order))
        for point in s.domain.points(sizes):
            env = {**sizes, **dict(zip(s.iterators, point, strict=True))}
            rows.append((tuple(f(env) for f in order) + padding, position, point))
    rows.sort()
    for (a, p, x), (b, q, y) in itertools.pairwise(rows):
        if a == b and p == q:
            raise ambiguous_order(scop.statements[p].name, x, y)
    return [(position, point) for _, position, point in rows]


def ambiguous_order(name: str, x: tuple[int, ...], y: tuple[int, ...]) -> InputError:
    """The error for two instances of one statement that the order vector does not tell apart."""
    return InputError(
        f"the order of {name} does not say which comes first: {name}{list(x)} or {name}{list(y)}",
        id="order",
        help="add the missing iterators to its order vector",
    )


def _flat(cells: Cells) -> Flat:
    written = None if cells.written is None else bytearray(cells.written.size)
    return Flat(cells.tensor, cells.shape, cells.parts[0].ravel().tolist(), written)


def _array(flat: Flat, storage: Any) -> Array:
    return np.array(flat.buf, storage).reshape(flat.shape)
