"""What a schedule says about statements, checked against those that there are."""

from __future__ import annotations

from collections.abc import Collection

from polyopt.errors import InputError, nearest
from polyopt.ir import Scop, Statement

__all__ = ["check_arity", "named_statement", "refuse_missing"]


def named_statement(scop: Scop, name: str) -> Statement:
    """The statement called `name`.  Raises InputError naming the nearest known one."""
    known = [s.name for s in scop.statements]
    if name not in known:
        raise InputError(
            f"the schedule names {name!r}, which is no statement{nearest(name, known)}",
            help=f"statements: {', '.join(known)}",
            id="schedule",
        )
    return scop.statement(name)


def refuse_missing(scop: Scop, names: Collection[str]) -> None:
    """Raise InputError unless every statement that has an instance is in `names`."""
    missing = [s.name for s in scop.statements if s.name not in names and not s.domain.is_empty()]
    if missing:
        raise InputError(
            f"the schedule says nothing about {', '.join(missing)}", help="give every statement a vector", id="schedule"
        )


def check_arity(statement: Statement, found: int) -> None:
    """Raise InputError unless the schedule gives the statement as many iterators as it has."""
    dims = statement.iterators
    if found != len(dims):
        raise InputError(
            f"the schedule gives {statement.name} {found} iterators, it has {len(dims)}: "
            f"{statement.name}[{', '.join(dims)}]",
            help="give the statement the iterators that it has, in order",
            id="schedule",
        )
