"""Changes of a case after which every answer must be the same (metamorphic testing)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from polyopt.fuzz._case import Case
from polyopt.ir import (
    Access,
    Assign,
    Const,
    Expr,
    Indirect,
    OpaqueCall,
    Read,
    Statement,
    Subscript,
    Tensor,
    rewrite,
    substitute_access,
    substitute_expr,
)
from polyopt.sets import Affine, Constraint, affine, var

__all__ = ["VARIANTS", "Variant"]

Variant = Callable[[Case], Case]


def renamed(case: Case) -> Case:
    """Other names for statements, iterators and tensors; tensors in the reverse order, which no answer depends on but
    the choice of a witness's tensor.
    """
    scop = case.scop
    tensors = {t.name: f"{t.name}_renamed" for t in scop.tensors}
    made: list[Statement] = []
    vectors: dict[str, tuple[Affine, ...]] = {}
    for s in scop.statements:
        dims = {d: f"{d}{d}" for d in s.iterators}
        name = f"Z{s.name}"
        domain = s.domain.rename(name=name, dims=dims)
        order = tuple(e.substitute(dims) for e in s.order)
        made.append(Statement(name, domain, order, _renamed_body(s.body, dims, tensors)))
        vectors[name] = tuple(e.substitute(dims) for e in case.vectors[s.name])
    declared = tuple(replace(t, name=tensors[t.name]) for t in scop.tensors)
    return replace(case, scop=replace(scop, statements=tuple(made), tensors=declared), vectors=vectors)


def _renamed_body(
    body: Assign | OpaqueCall, dims: Mapping[str, str], tensors: Mapping[str, str]
) -> Assign | OpaqueCall:
    if isinstance(body, OpaqueCall):
        return OpaqueCall(tuple(tensors[n] for n in body.may_read), tuple(tensors[n] for n in body.may_write))
    value = substitute_expr(body.value, dims)
    target = _in_tensors(substitute_access(body.target, dims), tensors)
    return replace(body, target=target, value=rewrite(value, lambda e: _read_in(e, tensors)))


def _read_in(e: Expr, tensors: Mapping[str, str]) -> Expr:
    return Read(_in_tensors(e.access, tensors)) if isinstance(e, Read) else e


def _in_tensors(access: Access, tensors: Mapping[str, str]) -> Access:
    subscripts: list[Subscript] = [
        Indirect(_in_tensors(e.access, tensors), e.offset) if isinstance(e, Indirect) else e for e in access.subscripts
    ]
    return Access(tensors[access.tensor], tuple(subscripts))


def padded(case: Case) -> Case:
    """Two more cells in every dimension, which no access names; an index tensor's values stay as they are."""
    if any(s.is_opaque for s in case.scop.statements):
        return case  # a call's smallest common cell may be another one, but nothing else changes
    tensors = tuple(replace(t, shape=tuple(e + 2 for e in t.shape)) for t in case.scop.tensors)
    return replace(case, scop=replace(case.scop, tensors=tensors))


def with_dead_statement(case: Case) -> Case:
    """One more statement that writes a temporary which nothing reads."""
    scop = case.scop
    dead = Tensor("dead", (affine(3),), "float32", "temp")
    last = scop.statements[-1]
    domain = type(last.domain).from_constraints(
        "Dead", ("i",), [Constraint(var("i")), Constraint(affine(2) - var("i"))], scop.params
    )
    body = Assign(Access("dead", (var("i"),)), Const(1))
    statement = Statement("Dead", domain, (var("i"),), body)
    length = len(case.vectors[last.name])
    vector = (var("i"), *[affine(0)] * (length - 1)) if length else ()
    statements = (*scop.statements, statement)
    if not vector or case.any_order:
        return case
    changed = replace(scop, statements=statements, tensors=(*scop.tensors, dead))
    return replace(case, scop=changed, vectors={**case.vectors, "Dead": vector})


def split(case: Case) -> Case:
    """The first statement with iterators in two, by the first iterator; both parts in the order that they had."""
    for k, s in enumerate(case.scop.statements):
        if s.iterators and not s.is_opaque and not case.any_order:
            low = s.domain.constrain([Constraint(affine(1) - var(s.iterators[0]))])
            high = s.domain.subtract(low)
            name = f"{s.name}_rest"
            parts = (replace(s, domain=low), replace(s, name=name, domain=high.rename(name=name)))
            statements = (*case.scop.statements[:k], *parts, *case.scop.statements[k + 1 :])
            vectors = {**case.vectors, name: case.vectors[s.name]}
            return replace(case, scop=replace(case.scop, statements=statements), vectors=vectors)
    return case


VARIANTS: Mapping[str, Variant] = {
    "renamed": renamed,
    "padded": padded,
    "dead statement": with_dead_statement,
    "split": split,
}
"""What is changed -> the change.  A case that it cannot be made to comes back as it is."""
