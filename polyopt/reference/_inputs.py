"""Input arrays that follow each tensor's `init`, the same for the same seed and tensor name."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from polyopt.errors import InputError, nearest
from polyopt.ir import Access, Assign, Indirect, Initial, Scop, Statement, Tensor, accesses, parse_initial
from polyopt.reference._cells import Array, bind_sizes, check_mode, wrap_array
from polyopt.reference._node import dtype_kind
from polyopt.sets import Affine, Interval, interval

__all__ = ["index_range", "inputs"]

_EXACT_CHOICES = (-3, -2, -1, 1, 2, 3)


def inputs(
    scop: Scop,
    sizes: Mapping[str, int],
    seed: int = 0,
    overrides: Mapping[str, Any] | None = None,
    *,
    mode: str = "float64",
) -> dict[str, Array]:
    """An array for every input and inout tensor, in its element type (floats in exact mode: int64).

    Without an `init`: uniform(-1, 1) for floats; integers(-8, 8) for integers, upper end excluded (0..7 for uint8);
    both values for bool; for an integer tensor that subscripts others, values that keep every such access inside.
    `diagonally_dominant` makes the last two axes symmetric with every diagonal element above the sum of its row.
    exact mode: floats are non-zero integers from -3 to 3 whatever their `init`.
    overrides: arrays taken instead, after a check of name and shape.
    """
    check_mode(mode)
    sizes = bind_sizes(scop, sizes)
    given = dict(overrides or {})
    wanted = {t.name: t for t in scop.with_role("input", "inout")}
    for name in given:
        if name not in wanted:
            raise InputError(
                f"{scop.name} takes no input {name!r}{nearest(name, wanted)}",
                help=f"inputs: {', '.join(wanted) or 'none'}",
                id="inputs",
            )
    made: dict[str, Array] = {}
    for name, tensor in wanted.items():
        shape = tensor.sizes(sizes)
        if name in given:
            made[name] = np.asarray(given[name])
            if made[name].shape != shape:
                raise InputError(
                    f"{name} has shape {made[name].shape}, expected {shape}",
                    help="give an array of the shape that the sizes ask for",
                    id="inputs",
                )
        else:
            rng = np.random.default_rng([seed, zlib.crc32(name.encode())])
            made[name] = _fill(scop, tensor, shape, sizes, rng, mode)
    return made


def _fill(
    scop: Scop, tensor: Tensor, shape: tuple[int, ...], sizes: Mapping[str, int], rng: np.random.Generator, mode: str
) -> Array:
    kind = dtype_kind(tensor.dtype)
    if kind == "float" and mode == "exact":
        return rng.choice(np.array(_EXACT_CHOICES, np.int64), size=shape)
    if tensor.init is None:
        values = _default(scop, tensor, shape, sizes, rng)
    else:
        values = _from_init(scop, tensor, parse_initial(tensor.init), shape, sizes, rng)
    if kind == "int":
        values = wrap_array(np.trunc(values), tensor.element)
    return values.astype(tensor.element.numpy)


def _default(
    scop: Scop, tensor: Tensor, shape: tuple[int, ...], sizes: Mapping[str, int], rng: np.random.Generator
) -> Array:
    kind = dtype_kind(tensor.dtype)
    if kind == "float":
        return rng.uniform(-1.0, 1.0, shape)
    if kind == "bool":
        return rng.integers(0, 2, shape)
    uses = list(_index_uses(scop, tensor.name))
    if not uses:
        return rng.integers(0 if tensor.dtype == "uint8" else -8, 8, shape)
    low, high = _inside(scop, uses, sizes)
    if low > high and 0 not in shape:
        raise InputError(
            f"no value of {tensor.name} keeps all accesses through it inside their tensors",
            help="give the tensor an init or values of your own, or choose larger sizes",
            id="inputs",
        )
    return rng.integers(low, max(low, high) + 1, shape)


def _from_init(
    scop: Scop,
    tensor: Tensor,
    init: Any,
    shape: tuple[int, ...],
    sizes: Mapping[str, int],
    rng: np.random.Generator,
) -> Array:
    if init.kind == "uniform":
        return rng.uniform(init.lo, init.hi, shape)
    if init.kind == "integers":
        return rng.integers(int(init.lo), int(init.hi), shape)
    if init.kind == "index":
        return rng.integers(0, max(1, _extent(scop, tensor, init, sizes)), shape)
    return _dominant(tensor, shape, rng)


def _extent(scop: Scop, tensor: Tensor, init: Initial, sizes: Mapping[str, int]) -> int:
    known = scop.tensor_map()
    if init.tensor not in known or init.axis >= len(known[init.tensor].shape):
        raise InputError(
            f"{tensor.name} has init {init}, but there is no such axis{nearest(init.tensor, known)}",
            help="write index(T, axis) with a tensor of the program and one of its axes",
            id="init",
        )
    return known[init.tensor].sizes(sizes)[init.axis]


def _dominant(tensor: Tensor, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    if len(shape) < 2 or shape[-1] != shape[-2]:
        raise InputError(
            f"{tensor.name} has shape {shape}, but init diagonally_dominant needs a square one",
            help="make the last two dimensions equal, or choose another init",
            id="init",
        )
    values = rng.uniform(-1.0, 1.0, shape)
    values = (values + np.swapaxes(values, -1, -2)) / 2
    diagonal = np.arange(shape[-1])
    values[..., diagonal, diagonal] = 0.0
    values[..., diagonal, diagonal] = np.abs(values).sum(-1) + 1.0
    return values


def _index_uses(scop: Scop, name: str) -> Iterator[tuple[Statement, str, int, Affine]]:
    """(statement, tensor, axis, offset) for every access that `name` subscripts."""
    for s in scop.statements:
        if isinstance(s.body, Assign):
            for access in (*_chain(s.body.target), *accesses(s.body.value)):
                for axis, subscript in enumerate(access.subscripts):
                    if isinstance(subscript, Indirect) and subscript.access.tensor == name:
                        yield s, access.tensor, axis, subscript.offset


def _chain(access: Access) -> Iterator[Access]:
    yield access
    for subscript in access.subscripts:
        if isinstance(subscript, Indirect):
            yield from _chain(subscript.access)


def index_range(scop: Scop, name: str, sizes: Mapping[str, int]) -> tuple[int, int] | None:
    """The values of an index tensor with which every access through it stays inside; None when it subscripts none."""
    uses = list(_index_uses(scop, name))
    return _inside(scop, uses, sizes) if uses else None


def _inside(scop: Scop, uses: list[tuple[Statement, str, int, Affine]], sizes: Mapping[str, int]) -> tuple[int, int]:
    """The largest range of values for which value + offset stays inside for every use."""
    low, high = 0, 2**31
    for k, (statement, name, axis, offset) in enumerate(uses):
        extent = scop.tensor(name).sizes(sizes)[axis]
        smallest, largest = _offset_range(statement, offset, sizes)
        low = -smallest if k == 0 else max(low, -smallest)
        high = min(high, extent - 1 - largest)
    return low, high


def _offset_range(statement: Statement, offset: Affine, sizes: Mapping[str, int]) -> tuple[int, int]:
    domain = statement.domain.fix(sizes)
    if offset.is_constant or domain.is_empty():
        return offset.const, offset.const
    ranges: dict[str, Interval] = {p: (v, v) for p, v in sizes.items()}
    for d in domain.dims:
        if d in offset.variables():
            lower, upper = domain.bounds(d)
            ranges[d] = (lower.evaluate(sizes), upper.evaluate(sizes))
    smallest, largest = interval(offset, ranges)
    if smallest is None or largest is None:
        raise InputError(
            f"{statement.name}: the offset {offset} of a data-dependent subscript is unbounded",
            help="bound the iterators that stand beside the data-dependent subscript",
            id="inputs",
        )
    return smallest, largest
