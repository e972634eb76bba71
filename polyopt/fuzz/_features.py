"""What a case contains: the histogram that a campaign prints."""

from __future__ import annotations

from collections.abc import Iterator

from polyopt.fuzz._case import TREE, Case
from polyopt.ir import Apply, Assign, Statement, accesses, walk
from polyopt.sets import Affine, Extremum, Floor, Select

__all__ = ["FEATURES", "features"]

FEATURES = (
    *(
        "statements >= 2",
        "depth >= 2",
        "depth >= 3",
        "non-trivial",
        "sizes",
        "two sizes",
        "strides",
        "floor",
        "triangular",
    ),
    *(
        "non-convex",
        "empty domain",
        "negative step",
        "skewed order",
        "interleaved",
        "reduction",
        "reassociation",
        "gather",
    ),
    *("opaque call", "guard", "min or max", "choice", "integers", "tree", "set node", "parallel", "same order"),
)
"""Every kind that is counted; those that the judge's answer decides (`legal`, `illegal`) are added by the campaign."""


def features(case: Case) -> frozenset[str]:
    """The kinds that a case has."""
    return frozenset(_found(case))


def _found(case: Case) -> Iterator[str]:
    scop = case.scop
    many, depth = len(scop.statements) >= 2, max(len(s.iterators) for s in scop.statements)
    present = {
        "statements >= 2": many,
        "depth >= 2": depth >= 2,
        "depth >= 3": depth >= 3,
        "non-trivial": many or depth >= 2,
        "sizes": bool(scop.params),
        "two sizes": len(scop.params) == 2,
        "reassociation": scop.reassociate,
        "integers": any(t.dtype != "float32" and t.name != "p" for t in scop.tensors),
        "tree": case.form == TREE,
        "set node": bool(case.form == TREE and case.meant()[1]),
        "parallel": bool(case.parallel),
        "same order": all(tuple(case.vectors[s.name][: len(s.order)]) == s.order for s in scop.statements),
        "interleaved": many and len({s.order[0] for s in scop.statements if s.order}) == 1,
    }
    yield from (name for name, holds in present.items() if holds)
    for s in scop.statements:
        yield from _of_statement(s)


def _of_statement(s: Statement) -> Iterator[str]:
    rows = [row.expr for part in s.domain.basic() for row in part]
    if s.domain.is_empty():
        yield "empty domain"
    if len(s.domain.basic()) > 1:
        yield "non-convex"
    if any(isinstance(a, Floor) for e in rows for a, _ in e.terms):
        yield "strides"
    if any(len(e.variables() & set(s.iterators)) >= 2 for e in rows):
        yield "triangular"
    if any(c < 0 for e in s.order for _, c in e.terms):
        yield "negative step"
    if any(len(e.variables()) >= 2 for e in s.order):
        yield "skewed order"
    if not isinstance(s.body, Assign):
        yield "opaque call"
        return
    if s.body.combine is not None:
        yield "reduction"
    if any(isinstance(e, Apply) and e.op == "select" for e in walk(s.body.value)):
        yield "guard"
    for access in (s.body.target, *accesses(s.body.value)):
        if not access.is_exact:
            yield "gather"
        for e in access.subscripts:
            if isinstance(e, Affine):
                yield from _of_subscript(e)


def _of_subscript(e: Affine) -> Iterator[str]:
    names = {Floor: "floor", Extremum: "min or max", Select: "choice"}
    for atom, _ in e.terms:
        for kind, name in names.items():
            if isinstance(atom, kind):
                yield name
