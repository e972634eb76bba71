"""Sizes of a program: those given, and those that the shapes of given arrays determine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from polyopt.errors import InputError, nearest
from polyopt.ir import Scop, Tensor, whole_size
from polyopt.sets import Affine, bound_below

__all__ = ["check_sizes", "complete_sizes"]

Shapes = Mapping[str, tuple[int, ...]]


def check_sizes(scop: Scop, sizes: Mapping[str, int]) -> dict[str, int]:
    """`sizes` in the order of the parameters.

    Raises InputError on a name that is no parameter, and on values outside the context whatever the missing ones are.
    """
    _check_names(scop, sizes)
    found = {p: whole_size(p, sizes[p]) for p in scop.params if p in sizes}
    if bound_below(scop.context, scop.params).fix(found).is_empty():
        given = ", ".join(f"{p}={v}" for p, v in found.items()) or "no sizes"
        context = scop.context.text().removeprefix("[]").strip().removeprefix(":").strip()
        raise InputError(
            f"{given} is outside the context of {scop.name}, which is {context}",
            help="choose sizes that fulfil the context, or change it",
            id="sizes",
        )
    return found


def _check_names(scop: Scop, sizes: Mapping[str, int]) -> None:
    for name in sizes:
        if name not in scop.params:
            known = nearest(name, scop.params) or "; it has none"
            help = f"its sizes: {', '.join(scop.params) or 'none'}"
            raise InputError(f"{scop.name} has no parameter {name!r}{known}", help=help, id="sizes")


def complete_sizes(scop: Scop, sizes: Mapping[str, int], shapes: Shapes | None = None) -> dict[str, int]:
    """A value for every parameter: `sizes`, completed from the shapes of arrays (tensor name -> shape).

    Each extent is affine in the parameters: `[2*H + 1]` and an array of 27 give H = 13.  Raises InputError naming the
    parameters that stay open, an array of a wrong rank, or an extent that no integer fits.
    """
    _check_names(scop, sizes)
    found = dict(sizes)
    extents = list(_extents(scop, shapes or {}))
    progress = True
    while progress:
        progress = False
        for tensor, axis, extent, size in extents:
            name, value = _solve(extent.substitute(found), size, tensor, axis)
            if name:
                found[name], progress = value, True
    missing = [p for p in scop.params if p not in found]
    if missing:
        given, at = ",".join(f"{p}=..." for p in missing), ", ".join(f"{p!r}: ..." for p in missing)
        raise InputError(
            f"no size for {', '.join(missing)} of {scop.name}",
            help=f"give it with --at {given}, at={{{at}}} or an array that shows it",
            id="sizes",
        )
    return check_sizes(scop, found)


def _extents(scop: Scop, shapes: Shapes) -> Iterator[tuple[Tensor, int, Affine, int]]:
    tensors = scop.tensor_map()
    for name, shape in shapes.items():
        if name not in tensors:
            raise InputError(
                f"{scop.name} has no tensor {name!r}{nearest(name, tensors)}",
                help=f"tensors: {', '.join(tensors)}",
                id="inputs",
            )
        wanted = tensors[name].shape
        if len(shape) != len(wanted):
            text = ", ".join(e.python() for e in wanted)
            raise InputError(
                f"{name} has shape {shape}, expected {len(wanted)} dimensions: [{text}]",
                help="give an array with one axis for each dimension",
                id="inputs",
            )
        for axis, (extent, size) in enumerate(zip(wanted, shape, strict=True)):
            yield tensors[name], axis, extent, size


def _solve(extent: Affine, size: int, tensor: Tensor, axis: int) -> tuple[str, int]:
    """(parameter, value) when `extent == size` has one open parameter, and nothing when it says nothing new."""
    if extent.is_constant:
        if extent.const != size:
            raise InputError(
                f"{tensor.name} has extent {size} in dimension {axis}, "
                f"expected {tensor.shape[axis].python()} = {extent.const}",
                help="give arrays whose shapes agree with each other and with the sizes",
                id="inputs",
            )
        return "", 0
    if len(extent.terms) != 1 or not extent.is_linear():
        return "", 0
    ((name, factor),) = extent.terms
    value, rest = divmod(size - extent.const, factor)
    if rest:
        raise InputError(
            f"{tensor.name} has extent {size} in dimension {axis}, which no integer {name} makes {extent.python()}",
            help="give an array of another extent, or pad it",
            id="inputs",
        )
    return str(name), value
