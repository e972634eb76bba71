"""What must hold of a Scop's names, context and tensors."""

from __future__ import annotations

import keyword
from collections.abc import Callable, Collection, Iterable, Sequence

from polyopt.errors import InputError, InternalError, Location, nearest
from polyopt.ir._initial import parse_initial
from polyopt.ir._whole import LARGEST_SIZE
from polyopt.ir.dtypes import dtype
from polyopt.ir.expr import Access
from polyopt.ir.scop import ROLES, Scop, Tensor
from polyopt.sets import Affine, Constraint, Set

__all__ = ["Places", "check_context", "check_name", "check_names", "check_tensor", "shape_text"]

Places = Callable[[str, "Access | str"], Location | None]
"""Where a part of the program stands in the user's text.  Called with a statement's name and an access of it, 'domain',
'order' or 'body'; or with a tensor's name and 'shape', 'dtype', 'role' or 'init'; or with '' and 'context'."""

RESERVED = frozenset(
    {
        *("and", "or", "not", "exists", "implies", "true", "false", "mod", "min", "max", "floor", "floord"),
        *("ceil", "ceild", "rat", "infty", "infinity", "nan", "inf"),
    }
)
"""Words of the set language (in any case) and of expressions."""


def check_name(name: str, what: str, where: Location | None = None) -> None:
    """Raise InputError unless `name` can name a param, tensor, statement or iterator everywhere."""
    if name.isidentifier() and name.isascii() and not keyword.iskeyword(name) and name.lower() not in RESERVED:
        return
    why = "is a reserved word" if name.isidentifier() and name.isascii() else "is not an identifier"
    raise InputError(
        f"{name!r} cannot name a {what}: it {why}",
        id="name",
        help="use letters, digits and _, beginning with a letter",
        where=where,
    )


def check_names(scop: Scop, places: Places) -> None:
    for what, found in (
        ("param", scop.params),
        ("tensor", [t.name for t in scop.tensors]),
        ("statement", [s.name for s in scop.statements]),
    ):
        _check_unique(found, what)
        for name in found:
            check_name(name, what)
    tensors = scop.tensor_map()
    for name in scop.params:
        _check_apart((name,), "param", tensors, "tensor", places(name, "shape"))
    for s in scop.statements:
        where = places(s.name, "domain")
        for name in s.iterators:
            check_name(name, f"iterator of {s.name}", where)
        _check_apart(s.iterators, f"iterator of {s.name}", scop.params, "param", where)
        _check_apart(s.iterators, f"iterator of {s.name}", tensors, "tensor", where)


def check_context(scop: Scop, places: Places) -> None:
    context = scop.context
    if context.dims or not set(context.params) <= set(scop.params):
        raise InternalError(f"the context {context} is no set of values of {list(scop.params)}")
    if context.is_empty():
        raise InputError(
            "no sizes satisfy the context",
            id="context",
            help="make the constraints on the params compatible",
            where=places("", "context"),
        )


def check_tensor(scop: Scop, tensor: Tensor, places: Places) -> None:
    name = tensor.name
    try:
        dtype(tensor.dtype)
    except InputError as error:
        message = f"tensor {name}: {error.message}"
        raise InputError(
            message,
            help=error.diagnostic.help,
            id="dtype",
            where=places(name, "dtype"),
        ) from error
    if tensor.role not in ROLES:
        raise InputError(
            f"tensor {name}: unknown role {tensor.role!r}{nearest(tensor.role, ROLES)}",
            id="role",
            help=f"a role is one of {', '.join(ROLES)}",
            where=places(name, "role"),
        )
    for extent in tensor.shape:
        _extent(scop, places, tensor, extent)
    _initial(scop, places, tensor)


def _extent(scop: Scop, places: Places, tensor: Tensor, extent: Affine) -> None:
    where = places(tensor.name, "shape")
    unknown = sorted(extent.variables() - set(scop.params))
    if unknown:
        raise InputError(
            f"tensor {tensor.name}: unknown name {unknown[0]} in its shape{nearest(unknown[0], scop.params)}",
            id="unknown-name",
            help="declare it in params",
            where=where,
        )
    if extent.is_constant and 0 <= extent.const < LARGEST_SIZE:
        return
    if extent.is_constant and extent.const >= LARGEST_SIZE:
        raise InputError(
            f"tensor {tensor.name}: the size {extent.const} is too large",
            id="shape",
            help="use sizes below 2**31",
            where=where,
        )
    if extent.is_constant and extent.const < 0:
        raise InputError(
            f"tensor {tensor.name}: the size {extent.const} is negative",
            id="shape",
            help="write how many cells there are in that dimension, 0 or more",
            where=where,
        )
    negative = _sizes_set(scop).constrain([Constraint(-extent - 1)])
    if negative.is_empty():
        return
    at = _smallest_sizes(negative, scop.params)
    raise InputError(
        f"tensor {tensor.name}: the size {extent.python()} is negative{at}",
        id="shape",
        help=f"bound the params in context, for example {extent.python()} >= 0",
        where=where,
    )


def _sizes_set(scop: Scop) -> Set:
    return Set.universe("", (), scop.params).intersect_params(scop.context)


def _initial(scop: Scop, places: Places, tensor: Tensor) -> None:
    if tensor.init is None:
        return
    where = places(tensor.name, "init")
    try:
        init = parse_initial(tensor.init)
    except InputError as error:
        message = f"tensor {tensor.name}: {error.message}"
        raise InputError(message, id="init", help=error.diagnostic.help, where=where) from error
    if init.kind == "diagonally_dominant" and len(tensor.shape) < 2:
        raise InputError(
            f"tensor {tensor.name}: diagonally_dominant wants a matrix, its shape is {shape_text(tensor)}",
            help="give the tensor two equal last dimensions, or another init",
            id="init",
            where=where,
        )
    if init.kind != "index":
        return
    other = scop.tensor_map().get(init.tensor)
    if other is None:
        message = f"tensor {tensor.name}: init {tensor.init!r} names no tensor{nearest(init.tensor, scop.tensor_map())}"
        raise InputError(message, help="write index(T, axis) with an axis of a declared tensor", id="init", where=where)
    if init.axis >= len(other.shape):
        raise InputError(
            f"tensor {tensor.name}: init {tensor.init!r}, but {other.name} has shape {shape_text(other)}",
            help="name an axis that the other tensor has",
            id="init",
            where=where,
        )


def _check_unique(names: Sequence[str], what: str) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise InputError(f"two {what}s are called {name}", id="duplicate", help="rename one of them")
        seen.add(name)


def _check_apart(
    names: Iterable[str], what: str, others: Collection[str], other_what: str, where: Location | None = None
) -> None:
    for name in names:
        if name in others:
            article = "an" if what[0] in "aeiou" else "a"
            raise InputError(
                f"{name} is the name of both a {other_what} and {article} {what}",
                id="duplicate",
                help="rename one of them",
                where=where,
            )


def shape_text(tensor: Tensor) -> str:
    return f"[{', '.join(e.python() for e in tensor.shape)}]"


def _smallest_sizes(sizes: Set, params: Sequence[str]) -> str:
    try:
        at = sizes.smallest(params)
    except InputError:
        return ""
    return f" at {', '.join(f'{p}={at[p]}' for p in params)}" if at else ""
