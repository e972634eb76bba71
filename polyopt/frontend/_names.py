"""What a name means in a parsed expression, and how a refused part of it is shown to the user."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from polyopt.errors import InputError, Location, NotAffineError, UnsupportedError, nearest

__all__ = [
    "CALLABLE",
    "FUNCTIONS",
    "Names",
    "arguments",
    "did_you_mean",
    "function_name",
    "is_module_attribute",
    "not_affine",
    "show",
    "unknown_name",
    "why_not",
]

FUNCTIONS = frozenset(
    {
        *("abs", "exp", "log", "sin", "cos", "sqrt", "rsqrt", "tanh", "sigmoid", "erf"),
        *("gelu", "gelu_tanh", "silu", "relu", "floor"),
    }
)
"""Scalar functions of one argument; min, max, cast and call are read apart."""

CALLABLE = FUNCTIONS | {"min", "max", "cast", "call"}

AFFINE_HELP = (
    "quasi-affine is: iterators, params and integers, + and -, * by constants, // and % by positive constants, "
    "min, max, and 'a if affine condition else b'"
)


@dataclass(frozen=True, slots=True)
class Names:
    """What names mean in an expression, and where its nodes stand in the user's text.

    `ranks` maps a tensor to its number of subscripts.  With `bare_scalars` a name of rank 0 may be written without
    `[()]`; functions may be written as attributes of the modules named in `modules` (`math.exp`).
    `truths` are the tensors of truth values.  `unknown_help` says where unknown names could come from.
    """

    iterators: tuple[str, ...]
    params: tuple[str, ...]
    ranks: Mapping[str, int]
    locate: Callable[[ast.AST], Location]
    bare_scalars: bool = False
    modules: frozenset[str] = frozenset()
    unknown_help: str = ""
    truths: frozenset[str] = frozenset()

    def is_integer(self, name: str) -> bool:
        return name in self.iterators or name in self.params

    def is_bare_scalar(self, name: str) -> bool:
        return self.bare_scalars and self.ranks.get(name) == 0


def function_name(node: ast.Call, names: Names) -> str:
    function = node.func
    if isinstance(function, ast.Attribute) and is_module_attribute(function, names):
        name = function.attr
    elif isinstance(function, ast.Name):
        name = function.id
    else:
        raise UnsupportedError(
            f"cannot call {show(function)}",
            help="only the functions of the language are known",
            where=names.locate(node),
        )
    if name in CALLABLE:
        return name
    raise InputError(
        f"unknown function {name}{nearest(name, CALLABLE)}",
        id="unknown-function",
        help=f"for a scalar function that polyopt knows nothing about write call({name}, ...)",
        where=names.locate(function),
    )


def is_module_attribute(node: ast.Attribute, names: Names) -> bool:
    return isinstance(node.value, ast.Name) and node.value.id in names.modules


def arguments(
    node: ast.Call, names: Names, *, exactly: int | None = None, at_least: int | None = None
) -> list[ast.expr]:
    if node.keywords or any(isinstance(a, ast.Starred) for a in node.args):
        raise UnsupportedError(
            f"only plain arguments are known: {show(node)}", help="write f(x, y)", where=names.locate(node)
        )
    found = len(node.args)
    if (exactly is not None and found != exactly) or (at_least is not None and found < at_least):
        wanted = f"{exactly}" if exactly is not None else f"at least {at_least}"
        raise InputError(
            f"{show(node.func)} takes {wanted} argument{'' if wanted == '1' else 's'}, found {found}: {show(node)}",
            help=f"write {show(node.func)} with {wanted} argument{'' if wanted == '1' else 's'}",
            id="arguments",
            where=names.locate(node),
        )
    return node.args


def show(node: ast.AST) -> str:
    """The node as source text, the same under every version of Python."""
    return ast.unparse(node).replace("lambda :", "lambda:")


def not_affine(node: ast.expr, names: Names, why: str) -> NotAffineError:
    return NotAffineError(f"{show(node)} is not quasi-affine: {why}", help=AFFINE_HELP, where=names.locate(node))


def unknown_name(node: ast.Name, names: Names) -> InputError:
    known = [*names.iterators, *names.params, *names.ranks]
    listed = f"iterators here: {_listed(names.iterators)}; params: {_listed(names.params)}"
    tensors = f"; tensors: {_listed(names.ranks)}" if names.ranks else ""
    return InputError(
        f"unknown name {node.id}{did_you_mean(node.id, known)}",
        id="unknown-name",
        help="; ".join(p for p in (names.unknown_help, listed + tensors) if p),
        where=names.locate(node),
    )


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The nearest known name; nothing when none is near (the help lists them all)."""
    hint = nearest(name, known)
    return hint if hint.startswith("; did") else ""


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names) or "none"


def why_not(node: ast.expr, names: Names) -> str:
    if isinstance(node, ast.Subscript):
        plain = isinstance(node.value, ast.Name)
        return "it reads a tensor" if plain else "only tensors have subscripts; a size is written by its name"
    if isinstance(node, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
        return "comprehensions are not known; write a loop"
    if isinstance(node, ast.Attribute):
        return "attributes are not known"
    if isinstance(node, (ast.Compare, ast.BoolOp)):
        return "a truth value is not a number here"
    if isinstance(node, ast.NamedExpr):
        return "assign in a statement of its own"
    if isinstance(node, (ast.Tuple, ast.List)):
        return "one number is expected"
    return "this form is not known"
