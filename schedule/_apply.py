"""Change of basis: a program whose iterators are the dimensions of its schedule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from polyopt.errors import InputError, UnsupportedError
from polyopt.ir import Assign, OpaqueCall, Scop, Statement, substitute_access, substitute_expr
from polyopt.schedule._touches import sizes_context
from polyopt.sets import Affine, AffineLike, Map, Set, affine, function_exprs, var

__all__ = ["apply_schedule", "normalise"]


def apply_schedule(scop: Scop, vectors: Mapping[str, Sequence[AffineLike]]) -> Scop:
    """An equal program, executed in the order of `vectors` (statement -> order vector), which the caller judged legal.

    Rewrite, vector (t, t + i):   S[t, i], order [t, t + i], A[i]   ->   S[t, c1], order [t, c1], A[c1 - t]

    Every entry of the new order vectors is a constant or an iterator that occurs once.  An entry that is an old
    iterator keeps its name, another one is called `c<position>`.  Raises UnsupportedError when an instance cannot be
    told from its vector by quasi-affine expressions.
    """
    context = sizes_context(scop)
    changed = [_change_basis(s, [affine(e) for e in vectors[s.name]], context, scop.params) for s in scop.statements]
    return replace(scop, statements=tuple(changed))


def normalise(scop: Scop) -> Scop:
    """The same program in the same order, every entry of an order vector a constant or an iterator that occurs once."""
    return apply_schedule(scop, {s.name: s.order for s in scop.statements})


def _change_basis(s: Statement, vector: Sequence[Affine], context: Set, params: Sequence[str]) -> Statement:
    names = _new_names(s, vector, params)
    order = tuple(e if e.is_constant else var(names[k]) for k, e in enumerate(vector))
    iterators = [names[k] for k in sorted(names)]
    if iterators == [str(vector[k]) for k in sorted(names)] and sorted(iterators) == sorted(s.iterators):
        return replace(s, domain=s.domain.project_onto(iterators), order=order)
    entries = [vector[k] for k in sorted(names)]
    domain = Map.from_exprs(s.domain, "", entries).range(iterators).rename(name=s.name).coalesce()
    values = {**_inverse(s, entries, iterators, context), **{d: var(d) for d in s.iterators if d in iterators}}
    return replace(s, domain=domain, order=order, body=_rewritten(s.body, values))


def _new_names(s: Statement, vector: Sequence[Affine], params: Sequence[str]) -> dict[int, str]:
    """Position of each entry that is no constant -> name of its iterator."""
    kept: dict[int, str] = {}
    for k, e in enumerate(vector):
        name = next((d for d in s.iterators if e == var(d)), None)
        if name is not None and name not in kept.values():
            kept[k] = name
    taken = {*s.iterators, *params}
    names: dict[int, str] = {}
    for k, e in enumerate(vector):
        if k in kept:
            names[k] = kept[k]
        elif not e.is_constant:
            name = f"c{k}"
            while name in taken:
                name += "_"
            names[k] = name
            taken.add(name)
    return names


def _inverse(s: Statement, entries: Sequence[Affine], iterators: Sequence[str], context: Set) -> dict[str, Affine]:
    """Old iterator -> expression of the new ones."""
    instances = s.domain.intersect_params(context)
    if instances.is_empty():
        return {d: affine(0) for d in s.iterators}
    try:
        values = function_exprs(Map.from_exprs(instances, "", entries).reverse(), iterators)
    except InputError as error:
        raise UnsupportedError(
            f"the order vector [{', '.join(map(str, entries))}] does not tell the instances of {s.name} apart",
            help="add an entry that does, for example one of its iterators",
            id="not-invertible",
        ) from error
    return dict(zip(s.iterators, values, strict=True))


def _rewritten(body: Assign | OpaqueCall, values: Mapping[str, Affine]) -> Assign | OpaqueCall:
    if isinstance(body, OpaqueCall):
        return body
    return Assign(substitute_access(body.target, values), substitute_expr(body.value, values), body.combine)
