"""The arguments of a kernel and its local declarations: names -> element types and shapes."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from polyopt.errors import InputError, Location, UnsupportedError, nearest
from polyopt.frontend._affine import parse_affine
from polyopt.frontend._annotations import ANNOTATIONS
from polyopt.frontend._names import Names, show
from polyopt.sets import Affine

__all__ = ["Declared", "Signature", "read_annotation", "read_signature"]

EXAMPLE = 'annotate it as po.float32["M", "N"], po.float32 (a scalar) or int (a size)'


@dataclass(frozen=True, slots=True)
class Declared:
    """A tensor before its role is known.  `dtype` is None where it follows from what is assigned."""

    name: str
    dtype: str | None
    shape: tuple[Affine, ...]
    node: ast.AST


@dataclass(frozen=True, slots=True)
class Signature:
    """Sizes in order of their first appearance, and the tensors in order."""

    params: tuple[str, ...]
    tensors: tuple[Declared, ...]


def read_signature(function: ast.FunctionDef, locate: Callable[[ast.AST], Location]) -> Signature:
    """The sizes and tensors that the annotations of `function` declare.  Raises InputError."""
    args = function.args
    for stars, extra in (("*", args.vararg), ("**", args.kwarg)):
        if extra is not None:
            raise UnsupportedError(f"{stars}{extra.arg} is not known", help="name every argument", where=locate(extra))
    for default in (*args.defaults, *(d for d in args.kw_defaults if d is not None)):
        raise UnsupportedError(
            f"the default {show(default)} is not known", help="leave it out; pass every array", where=locate(default)
        )
    plain = (*args.posonlyargs, *args.args, *args.kwonlyargs)
    params = tuple(dict.fromkeys(name for a in plain for name in _size_names(a, locate)))
    tensors = tuple(_argument(a, params, locate) for a in plain if not _is_size(a))
    for tensor in tensors:
        if tensor.name in params:
            message = f"{tensor.name} is the name of both a tensor and a size"
            raise InputError(message, id="duplicate", help="rename one of them", where=locate(tensor.node))
    return Signature(params, tensors)


def read_annotation(
    node: ast.expr, name: str, params: tuple[str, ...], locate: Callable[[ast.AST], Location]
) -> tuple[str, tuple[Affine, ...]]:
    """(dtype, shape) that an annotation says, its size names among `params`.  Raises InputError."""
    names = Names((), params, {}, locate, unknown_help=_LOCAL_HELP)
    return _element(node, name, locate), tuple(parse_affine(s, names) for s in _sizes(node, locate))


_LOCAL_HELP = "sizes come from the annotations of the arguments"


def _argument(arg: ast.arg, params: tuple[str, ...], locate: Callable[[ast.AST], Location]) -> Declared:
    assert arg.annotation is not None  # _size_names has refused the others
    dtype, shape = read_annotation(arg.annotation, arg.arg, params, locate)
    return Declared(arg.arg, dtype, shape, arg)


def _is_size(arg: ast.arg) -> bool:
    return isinstance(arg.annotation, ast.Name) and arg.annotation.id == "int"


def _size_names(arg: ast.arg, locate: Callable[[ast.AST], Location]) -> Iterator[str]:
    if arg.annotation is None:
        raise InputError(f"argument {arg.arg} has no annotation", id="annotation", help=EXAMPLE, where=locate(arg))
    if _is_size(arg):
        yield arg.arg
        return
    for size in _sizes(arg.annotation, locate):
        yield from _free_names(size)


def _free_names(node: ast.expr) -> Iterator[str]:
    """Names from left to right, those of called functions left out."""
    if isinstance(node, ast.Name):
        yield node.id
        return
    children: Iterable[ast.AST] = node.args if isinstance(node, ast.Call) else ast.iter_child_nodes(node)
    for child in children:
        if isinstance(child, ast.expr):
            yield from _free_names(child)


def _unquoted(node: ast.expr, locate: Callable[[ast.AST], Location]) -> ast.expr:
    """`node`, or the expression in its quotes, placed where the quotes stand."""
    if not (isinstance(node, ast.Constant) and isinstance(node.value, str)):
        return node
    try:
        inner = ast.parse(node.value.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise InputError(f"cannot read {node.value!r}", id="annotation", help=EXAMPLE, where=locate(node)) from error
    for part in ast.walk(inner):
        ast.copy_location(part, node)
    return inner


def _sizes(annotation: ast.expr, locate: Callable[[ast.AST], Location]) -> list[ast.expr]:
    annotation = _unquoted(annotation, locate)
    if not isinstance(annotation, ast.Subscript):
        return []
    index = annotation.slice
    return [_unquoted(e, locate) for e in (index.elts if isinstance(index, ast.Tuple) else [index])]


def _element(annotation: ast.expr, argument: str, locate: Callable[[ast.AST], Location]) -> str:
    node = _unquoted(annotation, locate)
    base = node.value if isinstance(node, ast.Subscript) else node
    name = base.attr if isinstance(base, ast.Attribute) else base.id if isinstance(base, ast.Name) else ""
    if name in ANNOTATIONS:
        return ANNOTATIONS[name].dtype
    hint = nearest(name, ANNOTATIONS) if name else ""
    raise InputError(
        f"cannot read the annotation {show(node)} of {argument}{hint}",
        id="annotation",
        help=EXAMPLE,
        where=locate(annotation),
    )
