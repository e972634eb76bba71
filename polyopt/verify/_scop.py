"""The verifier of the first level: a Scop that every later part may rely on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from polyopt.errors import InternalError
from polyopt.ir import (
    COMBINES,
    ROLES,
    Access,
    Apply,
    Assign,
    Expr,
    Read,
    Scop,
    Statement,
    access_chain,
    access_relation,
    access_variables,
    accesses,
    children,
    expr_iterators,
)
from polyopt.ir.dtypes import DTYPES

__all__ = ["scop_faults", "verify_scop"]


def verify_scop(scop: Scop, after: str = "") -> None:
    """Raise InternalError listing every fault of `scop`; `after` names the pass that made it."""
    faults = scop_faults(scop)
    if faults:
        where = f" after pass {after}" if after else ""
        raise InternalError(f"{scop.name} is not well formed{where}: " + "; ".join(faults))


def scop_faults(scop: Scop) -> tuple[str, ...]:
    """What is wrong with names, ranks, variables, roles and bounds.  Bounds hold for all sizes in the context.

    A read that stands below a selection is not checked against the bounds: it may happen only where it is inside.
    """
    return (*_name_faults(scop), *_tensor_faults(scop), *(f for s in scop.statements for f in _faults(s, scop)))


def _name_faults(scop: Scop) -> Iterator[str]:
    groups: tuple[tuple[str, Iterable[str]], ...] = (
        ("parameter", scop.params),
        ("tensor", (t.name for t in scop.tensors)),
        ("statement", (s.name for s in scop.statements)),
    )
    for what, names in groups:
        for name, times in Counter(names).items():
            if times > 1:
                yield f"{what} {name} is declared {times} times"


def _tensor_faults(scop: Scop) -> Iterator[str]:
    for t in scop.tensors:
        if t.role not in ROLES:
            yield f"tensor {t.name} has the role {t.role!r}"
        if t.dtype not in DTYPES:
            yield f"tensor {t.name} has the dtype {t.dtype!r}"
        for extent in t.shape:
            unknown = extent.variables() - set(scop.params)
            if unknown:
                yield f"the shape of {t.name} uses {', '.join(sorted(unknown))}"


def _faults(statement: Statement, scop: Scop) -> Iterator[str]:
    known = {*statement.iterators, *scop.params}
    if statement.domain.name != statement.name:
        yield f"the domain of {statement.name} is called {statement.domain.name!r}"
    if set(statement.domain.params) - set(scop.params):
        yield f"the domain of {statement.name} uses an undeclared parameter"
    for entry in statement.order:
        if entry.variables() - known:
            yield f"the order of {statement.name} uses {', '.join(sorted(entry.variables() - known))}"
    if isinstance(statement.body, Assign):
        yield from _assign_faults(statement, statement.body, scop, known)
        return
    names = {t.name for t in scop.tensors}
    for name in (*statement.body.may_read, *statement.body.may_write):
        if name not in names:
            yield f"{statement.name} calls on the unknown tensor {name}"


def _assign_faults(statement: Statement, body: Assign, scop: Scop, known: set[str]) -> Iterator[str]:
    if body.combine is not None and body.combine not in COMBINES:
        yield f"{statement.name} combines with {body.combine!r}"
    if expr_iterators(body.value) - known:
        yield f"{statement.name} uses {', '.join(sorted(expr_iterators(body.value) - known))}"
    sound = True
    for access in (*access_chain(body.target), *accesses(body.value)):
        for fault in _access_faults(statement, access, scop, known):
            sound = False
            yield fault
    if not sound:
        return
    if scop.tensor(body.target.tensor).role == "input":
        yield f"{statement.name} writes the input {body.target.tensor}"
    for access in (body.target, *_certain_reads(body.value)):
        yield from _bound_faults(statement, access, scop)


def _access_faults(statement: Statement, access: Access, scop: Scop, known: set[str]) -> Iterator[str]:
    tensors = scop.tensor_map()
    if access.tensor not in tensors:
        yield f"{statement.name} uses the unknown tensor {access.tensor}"
    elif len(access.subscripts) != len(tensors[access.tensor].shape):
        rank = len(tensors[access.tensor].shape)
        yield f"{statement.name}: {access} has {len(access.subscripts)} subscripts instead of {rank}"
    if access_variables(access) - known:
        yield f"{statement.name}: {access} uses {', '.join(sorted(access_variables(access) - known))}"


def _certain_reads(expr: Expr) -> Iterator[Access]:
    """Reads that happen at every instance."""
    if isinstance(expr, Read):
        yield expr.access
    parts = children(expr)
    for child in parts[:1] if isinstance(expr, Apply) and expr.op in ("select", "and", "or") else parts:
        yield from _certain_reads(child)


def _bound_faults(statement: Statement, access: Access, scop: Scop) -> Iterator[str]:
    tensor = scop.tensor(access.tensor)
    domain = statement.domain.intersect_params(scop.context)
    dims = [f"a{k}" for k in range(len(tensor.shape))]
    touched = access_relation(domain, access, tensor, scop.params).range(dims)
    if not touched.is_subset(tensor.cells(dims, scop.params)):
        yield f"{statement.name}: {access} leaves the bounds of {tensor.name}"
