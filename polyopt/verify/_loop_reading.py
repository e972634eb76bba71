"""Loop code read back as relations: which instance runs at which time, for all sizes.

The time of a call is the vector of what changes on the way down to it: its position among the children of each block
and the value of each loop's iterator.  Only the nodes and the sets are needed; how the loops were made is of no matter.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from polyopt.ir import LoopProgram, Scop
from polyopt.sets import (
    Affine,
    AllOf,
    Block,
    Call,
    Condition,
    Constraint,
    Extremum,
    For,
    If,
    LoopNode,
    Map,
    Set,
    affine,
    negation,
    pad_order,
    var,
    with_in_dims,
)

__all__ = ["MalformedLoopsError", "ParallelLoop", "Site", "read_sites", "refuse_malformed", "times_by_statement"]


_TIME = "__time"
"""Begins the names of the entries of a time vector that are iterators."""


class MalformedLoopsError(Exception):
    """The loops cannot be those of the program: a statement or a name that is not there."""


@dataclass(frozen=True, slots=True)
class ParallelLoop:
    """A loop whose iterations may run in any order: its name, and the entry of the time vector that is its iterator."""

    iterator: str
    entry: int
    path: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Site:
    """One call in the text.

    times: instance -> time vectors at which this call runs it, equally long for all sites.  parallel: the loops around
    it whose iterations may run in any order.
    """

    statement: str
    times: Map
    parallel: tuple[ParallelLoop, ...]


@dataclass(frozen=True, slots=True)
class _Place:
    """The way from the root to a node: names of the iterators so far (in the loops, here), conditions, time vector.

    prefix: begins the names here, which no size has.
    """

    prefix: str
    dims: tuple[str, ...] = ()
    names: tuple[tuple[str, str], ...] = ()
    conditions: tuple[Condition, ...] = ()
    time: tuple[Affine, ...] = ()
    path: tuple[int, ...] = ()
    parallel: tuple[ParallelLoop, ...] = ()

    def read(self, expr: Affine) -> Affine:
        return expr.substitute({old: var(new) for old, new in self.names})

    def at(self, position: int) -> _Place:
        return replace(self, time=(*self.time, affine(position)), path=(*self.path, position))


def refuse_malformed(scop: Scop, loops: LoopProgram) -> None:
    """Raises MalformedLoopsError when a statement, a number of arguments or a name is not what the program has."""
    for place, call in _places(scop, loops):
        statement = next((s for s in scop.statements if s.name == call.statement), None)
        if statement is None:
            raise MalformedLoopsError(f"they call {call.statement}, which {scop.name} does not have")
        if len(call.arguments) != len(statement.iterators):
            given, arity = len(call.arguments), len(statement.iterators)
            raise MalformedLoopsError(f"they call {call.statement} with {given} arguments, it has {arity} iterators")
        _refuse_unknown(scop, place, call)


def read_sites(scop: Scop, loops: LoopProgram, context: Set) -> tuple[Site, ...]:
    """Every call of the loops, which are not malformed, from top to bottom, for the sizes in `context`."""
    found = list(_places(scop, loops))
    length = max((len(place.time) for place, _ in found), default=0)
    return tuple(_site(scop, place, call, context, max(length, 1)) for place, call in found)


def _places(scop: Scop, loops: LoopProgram) -> Iterator[tuple[_Place, Call]]:
    prefix = _TIME
    while any(p.startswith(prefix) for p in scop.params):
        prefix += "_"
    return _walk(loops.root, _Place(prefix))


def _walk(node: LoopNode, place: _Place) -> Iterator[tuple[_Place, Call]]:
    if isinstance(node, Call):
        yield place, node
    elif isinstance(node, For):
        yield from _walk(node.body, _into_loop(node, place))
    elif isinstance(node, If):
        condition = _read(node.condition, place)
        yield from _walk(node.then, replace(place.at(0), conditions=(*place.conditions, condition)))
        yield from _walk(node.other, replace(place.at(1), conditions=(*place.conditions, negation(condition))))
    elif isinstance(node, Block):
        for k, child in enumerate(node.children):
            yield from _walk(child, place.at(k))


def _into_loop(node: For, place: _Place) -> _Place:
    """Values from lower to upper, both included, whose distance from lower is a multiple of the step."""
    new = f"{place.prefix}{len(place.dims)}"
    lower, upper = place.read(node.lower), place.read(node.upper)
    rows: tuple[Condition, ...] = (Constraint(var(new) - lower), Constraint(upper - new))
    if node.step > 1:
        rows = (*rows, Constraint((var(new) - lower) % node.step, True))
    names = (*((o, n) for o, n in place.names if o != node.iterator), (node.iterator, new))
    inside = replace(
        place, dims=(*place.dims, new), names=names, conditions=(*place.conditions, *rows), time=(*place.time, var(new))
    )
    if node.kind == "sequential":
        return inside
    own = ParallelLoop(node.iterator, len(place.time), place.path)
    return replace(inside, parallel=(*place.parallel, own))


def _read(condition: Condition, place: _Place) -> Condition:
    if isinstance(condition, Constraint):
        return Constraint(place.read(condition.expr), condition.equality)
    return replace(condition, parts=tuple(_read(c, place) for c in condition.parts))


def _site(scop: Scop, place: _Place, call: Call, context: Set, length: int) -> Site:
    inside = Set.universe("", place.dims, scop.params).intersect_params(context)
    for condition in place.conditions:
        inside = inside.intersect(_where(condition, place.dims, scop.params))
    times = Map.from_exprs(inside, "", place.time or (affine(0),))
    instances = Map.from_exprs(inside, call.statement, [place.read(a) for a in call.arguments]).reverse()
    relation = with_in_dims(instances.apply_range(times), scop.statement(call.statement).iterators)
    return Site(call.statement, pad_order(relation, length), place.parallel)


def _refuse_unknown(scop: Scop, place: _Place, call: Call) -> None:
    known = {*place.dims, *scop.params}
    used = [*map(place.read, call.arguments), *(e for c in place.conditions for e in _exprs(c))]
    for name in sorted({v for e in used for v in e.variables()} - known):
        raise MalformedLoopsError(f"they use {name} where it has no value")


def _exprs(condition: Condition) -> Iterator[Affine]:
    if isinstance(condition, Constraint):
        yield condition.expr
    else:
        for part in condition.parts:
            yield from _exprs(part)


def _where(condition: Condition, dims: Sequence[str], params: Sequence[str]) -> Set:
    """The points at which the condition holds."""
    if isinstance(condition, Constraint):
        return Set.from_constraints("", dims, _plain(condition), params)
    parts = [_where(c, dims, params) for c in condition.parts]
    if isinstance(condition, AllOf):
        total = Set.universe("", dims, params)
        for part in parts:
            total = total.intersect(part)
        return total
    total = Set.empty("", dims, params)
    for part in parts:
        total = total.union(part)
    return total


def _plain(row: Constraint) -> Iterator[Constraint]:
    """The same as a conjunction: `c*min(a, b) + r >= 0` is `c*a + r >= 0 and c*b + r >= 0` for c > 0, and so is max for
    c < 0.
    """
    for atom, c in row.expr.terms:
        if not row.equality and isinstance(atom, Extremum) and (c > 0) == (atom.kind == "min"):
            rest = row.expr - Affine(((atom, c),), 0)
            for a in atom.args:
                yield from _plain(Constraint(rest + a * c))
            return
    yield row


def times_by_statement(scop: Scop, sites: Sequence[Site]) -> Mapping[str, Map | None]:
    """All times of each statement together; None for a statement that is never called."""
    found: dict[str, Map | None] = dict.fromkeys(s.name for s in scop.statements)
    for site in sites:
        known = found[site.statement]
        found[site.statement] = site.times if known is None else known.union(site.times)
    return found
