"""Roles of a kernel's arguments, from exact dataflow: does any read see what the caller passed?"""

from __future__ import annotations

from dataclasses import replace

from polyopt.errors import BudgetError
from polyopt.ir import Access, Scop, Statement, access_chain, access_relation
from polyopt.sets import before, operation_budget

__all__ = ["with_roles"]

BUDGET = 2_000_000
"""Elementary operations spent on one tensor; after that it counts as inout, which is right for every program."""


def with_roles(scop: Scop) -> Scop:
    """`scop` with the role of every tensor that is no temporary.

    Never written: input; some instance reads a cell that no instance before it has written: inout; else output.
    """
    tensors = (t if t.role == "temp" else replace(t, role=_role(scop, t.name)) for t in scop.tensors)
    return replace(scop, tensors=tuple(tensors))


def _role(scop: Scop, tensor: str) -> str:
    writers = [s for s in scop.statements if s.assign.target.tensor == tensor]
    if not writers:
        return "input"
    reads = [(s, a) for s in scop.statements for a in dict.fromkeys(_reads(s)) if a.tensor == tensor]
    try:
        with operation_budget(f"the role of {tensor}", BUDGET):
            seen = any(_sees_caller(scop, s, a, writers) for s, a in reads)
    except BudgetError:
        seen = True
    return "inout" if seen else "output"


def _reads(s: Statement) -> tuple[Access, ...]:
    return (*access_chain(s.assign.target)[1:], *s.assign.reads())


def _sees_caller(scop: Scop, reader: Statement, access: Access, writers: list[Statement]) -> bool:
    """Whether some instance may read a cell that no earlier instance of the writers surely wrote."""
    tensor = scop.tensor(access.tensor)
    missing = access_relation(reader.domain, access, tensor, scop.params).intersect_params(scop.context)
    order = scop.schedule_map(reader)
    for writer in writers:
        target = writer.assign.target
        if missing.is_empty():
            return False
        if target.is_exact:
            written = access_relation(writer.domain, target, tensor, scop.params)
            earlier = before(scop.schedule_map(writer), order)
            missing = missing.subtract(earlier.reverse().apply_range(written))
    return not missing.is_empty()
