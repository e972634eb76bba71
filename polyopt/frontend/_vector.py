"""Order vectors as text."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from polyopt.errors import InputError, Location
from polyopt.frontend._affine import parse_affine
from polyopt.frontend._names import Names
from polyopt.sets import Affine

__all__ = ["read_vector"]


def read_vector(text: str, iterators: Sequence[str], params: Sequence[str]) -> tuple[Affine, ...]:
    """`[t, i//2 + N]` as expressions of iterators and sizes.  Raises InputError at the offending part."""
    where = Location("<vector>", 1, 1, text, max(1, len(text)))
    try:
        node = ast.parse(text, mode="eval").body
    except SyntaxError as error:
        raise InputError(
            f"cannot read the vector {text!r}: {error.msg}", help="write [t, i + 1]", where=where
        ) from error
    if not isinstance(node, ast.List):
        raise InputError(f"{text!r} is no vector", help='write it in brackets: "[t, i]"', where=where)

    def locate(part: ast.AST) -> Location:
        return Location("<vector>", 1, getattr(part, "col_offset", 0) + 1, text)

    names = Names(tuple(iterators), tuple(params), {}, locate)
    return tuple(parse_affine(e, names) for e in node.elts)
