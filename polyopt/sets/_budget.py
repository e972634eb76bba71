"""Operation budgets: isl never hangs, it stops after a counted number of elementary operations.

The count does not depend on the machine or the clock, so the same problem ends in the same way everywhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import islpy as isl

from polyopt.errors import BudgetError

__all__ = ["operation_budget"]


@contextmanager
def operation_budget(phase: str, max_operations: int | None) -> Iterator[None]:
    """Run the body with at most `max_operations` isl operations (None: no limit); BudgetError when they are spent.

    Budgets nest: the inner one counts for itself, afterwards the outer one starts to count anew.
    """
    context = isl.DEFAULT_CONTEXT
    outer = context.get_max_operations()
    context.reset_operations()
    context.set_max_operations(max_operations or 0)
    try:
        yield
    except Exception as error:
        if not max_operations or not _is_spent(context):
            raise
        raise BudgetError(
            f"{phase} took more than {max_operations} operations",
            help="fix sizes, split the program, or allow more operations",
        ) from error
    finally:
        context.reset_operations()
        context.set_max_operations(outer)


def _is_spent(context: isl.Context) -> bool:
    """Whether the quota is used up.  isl does not say; its errors are no guide either: its reader then reports a syntax
    error.  But the next operation fails."""
    try:
        isl.Val.int_from_si(context, 0)
    except isl.Error:
        return True
    return False
