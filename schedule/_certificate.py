"""What a certificate of legality is about, in JSON's types: a program as far as its order matters, and a new order.

The format is that of the independent checker (`polyopt/verify/certificate.py`), which derives from it what is to be
shown.  Expressions: `[constant, [coefficient, atom], ...]`; atoms: names, `["floor", e, divisor]`, `["if", condition,
then, else]`; conditions: lists of `[">=", e]` or `["=", e]`; sets: lists of conditions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from polyopt.ir import (
    Access,
    Apply,
    Cast,
    Const,
    Expr,
    Index,
    OpaqueCall,
    Read,
    Scop,
    Statement,
    access_chain,
    accesses,
)
from polyopt.schedule._orders import NewOrder
from polyopt.schedule._reorder import TRUTH_OPS
from polyopt.schedule._touches import sizes_context
from polyopt.sets import Affine, Constraint, Extremum, Floor, Set, function_pieces

__all__ = ["CERTIFICATE_FORMAT", "certificate_statement"]

CERTIFICATE_FORMAT = "polyopt-certificate-1"

Json = dict[str, object]


def certificate_statement(scop: Scop, order: NewOrder) -> Json:
    """The entries `format`, `name`, `program` and `schedule` of a certificate that `order` is legal for `scop`.

    The same program and order give the same statement, so that a certificate can be compared with what it is to be for.
    """
    return {
        "format": CERTIFICATE_FORMAT,
        "name": scop.name,
        "program": {
            "params": list(scop.params),
            "context": _set(sizes_context(scop)),
            "tensors": {t.name: {"dtype": t.dtype, "rank": len(t.shape)} for t in scop.tensors},
            "reassociate": scop.reassociate,
            "statements": [_statement(scop, s) for s in scop.statements],
        },
        "schedule": {
            "orders": {s.name: _pieces(order, s) for s in scop.statements},
            "parallel": list(order.parallel),
            "unordered": [
                {"dim": dim, "among": {s.name: _among(scop, s) for s in instances}}
                for dim, instances in order.unordered
            ],
        },
    }


def _statement(scop: Scop, s: Statement) -> Json:
    return {
        "name": s.name,
        "iterators": list(s.iterators),
        "domain": _set(s.domain),
        "order": [_expression(e) for e in s.order],
        "accesses": list(_accesses(scop, s)),
        "value": _value(scop, s),
    }


def _accesses(scop: Scop, s: Statement) -> Iterator[Json]:
    """The target first, then each distinct read; null for what data or a call decides."""
    if isinstance(s.body, OpaqueCall):
        for name in dict.fromkeys((*s.body.may_write, *s.body.may_read)):
            kinds = {(True, True): "both", (True, False): "write", (False, True): "read"}
            kind = kinds[name in s.body.may_write, name in s.body.may_read]
            anything = [None] * len(scop.tensor(name).shape)
            yield {"tensor": name, "subscripts": anything, "kind": kind, "combine": None}
        return
    target, combine = s.body.target, s.body.combine
    yield _access(target, "write" if combine is None else "both", combine)
    for access in dict.fromkeys((*access_chain(target)[1:], *accesses(s.body.value))):
        yield _access(access, "read", None)


def _access(access: Access, kind: str, combine: str | None) -> Json:
    subscripts = [_expression(e) if isinstance(e, Affine) else None for e in access.subscripts]
    return {"tensor": access.tensor, "subscripts": subscripts, "kind": kind, "combine": combine}


def _value(scop: Scop, s: Statement) -> Json:
    """Operators and leaves of what is combined into a cell: it decides whether integers wrap on the way."""
    operators: set[str] = set()
    leaves: set[int | str] = set()
    if not isinstance(s.body, OpaqueCall) and s.body.combine is not None:
        _collect(scop, s.body.value, operators, leaves)
    return {"operators": sorted(operators), "leaves": sorted(leaves, key=lambda x: (isinstance(x, str), x))}


def _collect(scop: Scop, expr: Expr, operators: set[str], leaves: set[int | str]) -> None:
    """A truth value, a cast and an element are leaves: element types, integers, `index` for an iterator's value."""
    if isinstance(expr, Const):
        leaves.add(int(expr.value) if isinstance(expr.value, int) else "float64")
    elif isinstance(expr, Read):
        leaves.add(scop.tensor(expr.access.tensor).dtype)
    elif isinstance(expr, Cast):
        leaves.add(expr.dtype)
    elif isinstance(expr, Index):
        leaves.add("index")
    elif isinstance(expr, Apply) and expr.op in TRUTH_OPS:
        leaves.add("bool")
    else:
        operators.add(expr.op if isinstance(expr, Apply) else "call")
        args = expr.args[1:] if isinstance(expr, Apply) and expr.op == "select" else expr.args
        for arg in args:
            _collect(scop, arg, operators, leaves)


def _pieces(order: NewOrder, s: Statement) -> list[Json]:
    pieces = function_pieces(order.of(s.name), s.iterators)
    return [{"where": _condition(where), "vector": [_expression(e) for e in vector]} for where, vector in pieces]


def _among(scop: Scop, instances: Set) -> list[object]:
    s = scop.statement(instances.name)
    return _set(instances.rename(dims=dict(zip(instances.dims, s.iterators, strict=True))))


def _set(s: Set) -> list[object]:
    return [_condition(rows) for rows in s.basic()]


def _condition(rows: Iterable[Constraint]) -> list[object]:
    return [["=" if row.equality else ">=", _expression(row.expr)] for row in rows]


def _expression(e: Affine) -> list[object]:
    terms: list[object] = [e.const]
    for atom, c in e.terms:
        if isinstance(atom, Floor):
            terms.append([c, ["floor", _expression(atom.arg), atom.divisor]])
        elif isinstance(atom, Extremum):
            terms.append([c, _extremum(atom.kind, atom.args)])
        elif isinstance(atom, str):
            terms.append([c, atom])
        else:
            terms.append([c, ["if", _condition(atom.conditions), _expression(atom.then), _expression(atom.other)]])
    return terms


def _extremum(kind: str, args: tuple[Affine, ...]) -> list[object]:
    """min(a, b, ...) is a where a is not larger than any other, else min(b, ...)."""
    first, *others = args
    rest = _expression(others[0]) if len(others) == 1 else [0, [1, _extremum(kind, tuple(others))]]
    where = [Constraint((other - first) * (1 if kind == "min" else -1)) for other in others]
    return ["if", _condition(where), _expression(first), rest]
