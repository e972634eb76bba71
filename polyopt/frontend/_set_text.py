"""Checks of the user's isl set texts that isl itself would only call a syntax error."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from polyopt.errors import InputError, NotAffineError
from polyopt.frontend._document import Scalar
from polyopt.frontend._names import did_you_mean
from polyopt.sets import Constraint, Set, affine

__all__ = ["context_set", "read_context", "read_domain"]

WORDS = frozenset(
    {
        *("and", "or", "not", "exists", "implies", "true", "false", "mod", "min", "max"),
        *("floor", "floord", "ceil", "ceild"),
    }
)
NAME = re.compile(r"[A-Za-z_]\w*")
EXISTS = re.compile(r"\bexists\b\s*\(?\s*([^:]*):", re.IGNORECASE)
PRODUCT = re.compile(r"[A-Za-z_]\w*\s*\*\s*[A-Za-z_]\w*|/\s*[A-Za-z_]\w*|%\s*[A-Za-z_]\w*")
HELP = "write isl set text, for example '[i, j] : 0 <= i < N and 0 <= j <= i'"


def read_domain(scalar: Scalar, statement: str, params: Sequence[str]) -> Set:
    """`[i, j] : constraints` as a set called `statement`.  Raises InputError at the offending part."""
    text = scalar.text
    _forbid_braces(scalar)
    tuple_part = re.match(r"\[([^\]]*)\]", text)
    if tuple_part is None:
        raise InputError(
            f"the domain {text!r} does not begin with its iterators in brackets",
            id="domain",
            help=HELP,
            where=scalar.where,
        )
    iterators = _iterators(scalar, tuple_part[1], params)
    _check_words(scalar, iterators, params)
    return _located(scalar, f"domain of {statement}", lambda: Set.parse(text, name=statement, params=params))


def read_context(scalar: Scalar, params: Sequence[str]) -> Set:
    """Constraints on the params as a set without dimensions.  Raises InputError at the offending part."""
    help = f"write constraints on the params ({', '.join(params) or 'none'}), for example 'N >= 1 and M = 2*N'"
    _forbid_braces(scalar)
    _check_words(scalar, (), params)
    return _located(scalar, "context", lambda: context_set(scalar.text, params), help)


def context_set(text: str, params: Sequence[str]) -> Set:
    """The sizes that satisfy `text`, isl constraints or nothing; a param that it does not bound below is at least 0."""
    constraints = text.strip().removeprefix(":").strip() or "true"
    sizes = Set.parse(f"[{', '.join(params)}] : {constraints}")
    context = Set.parse(f"[] : {constraints}", params=params)
    return context.constrain([Constraint(affine(p)) for p in params if not _is_bounded_below(sizes, p)])


def _is_bounded_below(sizes: Set, param: str) -> bool:
    below = sizes.project_onto([param]).constrain([Constraint(-affine(param))])
    return below.is_empty() or below.is_bounded(param)


def _forbid_braces(scalar: Scalar) -> None:
    column = min((scalar.text.find(c) for c in "{}" if c in scalar.text), default=-1)
    if column >= 0:
        raise InputError(
            f"{scalar.text!r} holds a brace",
            id="domain",
            help=f"leave out braces; {HELP}",
            where=scalar.part(0, column),
        )


def _iterators(scalar: Scalar, inside: str, params: Sequence[str]) -> tuple[str, ...]:
    names: list[str] = []
    for piece in inside.split(",") if inside.strip() else []:
        name = piece.split("=")[0].strip()
        if not NAME.fullmatch(name):
            raise InputError(
                f"{piece.strip()!r} cannot name an iterator in the domain {scalar.text!r}",
                id="domain",
                help=HELP,
                where=scalar.where,
            )
        if name in names:
            raise InputError(
                f"two iterators are called {name} in {scalar.text!r}",
                help="give every iterator its own name",
                id="duplicate",
                where=scalar.where,
            )
        if name in params:
            raise InputError(
                f"{name} is the name of both a param and an iterator in {scalar.text!r}",
                id="duplicate",
                help="rename the iterator",
                where=scalar.where,
            )
        names.append(name)
    return tuple(names)


def _check_words(scalar: Scalar, iterators: Sequence[str], params: Sequence[str]) -> None:
    bound = {n for group in EXISTS.findall(scalar.text) for n in NAME.findall(group)}
    known = {*iterators, *params, *bound}
    for line, text in enumerate(scalar.text.splitlines()):
        for word in NAME.finditer(text):
            if word[0] not in known and word[0].lower() not in WORDS:
                raise InputError(
                    f"unknown name {word[0]} in {scalar.text!r}{did_you_mean(word[0], known)}",
                    id="unknown-name",
                    help=f"iterators: {', '.join(iterators) or 'none'}; params: {', '.join(params) or 'none'}",
                    where=scalar.part(line, word.start(), len(word[0])),
                )


def _located(scalar: Scalar, what: str, parse: Callable[[], Set], help: str = HELP) -> Set:
    try:
        return parse()
    except InputError as error:
        product = PRODUCT.search(scalar.text)
        if product is None:
            raise InputError(
                f"cannot read the {what} {scalar.text!r}", id="domain", help=help, where=scalar.where
            ) from error
        raise NotAffineError(
            f"{product[0]} in the {what} is not affine",
            help="multiply, divide and take remainders by constants only",
            where=scalar.part(0, product.start(), len(product[0])),
        ) from error
