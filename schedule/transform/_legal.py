"""What every transformation does at its end: ask the judge."""

from __future__ import annotations

from polyopt.errors import BudgetError, LegalityError
from polyopt.ir import Scop
from polyopt.schedule._legality import check
from polyopt.schedule._tree import ScheduleTree
from polyopt.schedule._verdict import ILLEGAL, LEGAL

__all__ = ["require_legal"]


def require_legal(scop: Scop, tree: ScheduleTree, what: str) -> ScheduleTree:
    """`tree`, when the judge finds it legal for `scop`.

    what: the transformation, for the message.  Raises LegalityError, with the verdict and its witness, when the tree is
    illegal or when a data-dependent subscript hides whether it is, and BudgetError when the judge's budget is spent.
    """
    verdict = check(scop, tree)
    if verdict.verdict == LEGAL:
        return tree
    if verdict.verdict == ILLEGAL:
        raise LegalityError(
            f"{what} is illegal: {verdict.reason}",
            help="keep the order of these two instances: transform another loop, or skew, shift or distribute first",
            verdict=verdict,
        )
    if verdict.spent:
        raise BudgetError(f"{what} was not judged: {verdict.reason}", help="transform fewer statements at once")
    raise LegalityError(
        f"{what} may be illegal: {verdict.reason}",
        help="only an order that keeps these accesses in place is known to be legal",
        id="unknown",
        verdict=verdict,
    )
