"""The one judge of schedules, whoever made them.

A schedule is read as an order.  It is legal when every two dependent instances are strictly increasing in it, and no
dependence is carried by a dimension that is to run in parallel.  The witness is found with the parameters moved in
front of the instances and a lexicographic minimum (idea: isl manual, "Lexicographic optimization").
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from polyopt.errors import BudgetError, InternalError, require_type
from polyopt.ir import Scop
from polyopt.schedule._dependences import FLOW, KINDS, Dependence, Dependences, compute_dependences
from polyopt.schedule._orders import NewOrder, ScheduleLike, fixed_scop, read_order
from polyopt.schedule._touches import EXACT, MAY, Touch, touches, written_tensors
from polyopt.schedule._verdict import ILLEGAL, LEGAL, UNKNOWN, Instance, Verdict, Witness
from polyopt.sets import Map, PairPoint, Set, operation_budget, repeated, smallest_pair

__all__ = ["LEGALITY_OPERATIONS", "check", "judge"]

LEGALITY_OPERATIONS = 20_000_000
"""Operation budget of one judgement."""

PROVED = "proved"


def check(
    scop: Scop,
    schedule: ScheduleLike,
    *,
    parallel: Sequence[int] = (),
    at: Mapping[str, int] | None = None,
    max_operations: int | None = LEGALITY_OPERATIONS,
) -> Verdict:
    """Judge `schedule` for all sizes in the context, or for the sizes `at`.

    schedule: isl union map text (`{ S[t, i] -> [t, t + i] }`, sizes implied), `@file` or text of an isl schedule tree,
    or a mapping from statement to order vector; shorter vectors are padded with 0.  parallel: dimensions, counted from
    0, that may not carry a dependence.  Spent budgets give the verdict unknown.  Raises InputError on an unreadable or
    incomplete schedule, an unknown size or dimension, and an ambiguous original order.
    """
    require_type(scop, Scop, "program", help="give a Scop: po.load(FILE), po.from_function(KERNEL)")
    program = fixed_scop(scop, at)
    try:
        with operation_budget("reading the schedule", max_operations):
            order = read_order(program, schedule, parallel=parallel)
        dependences = compute_dependences(program, max_operations=max_operations)
        with operation_budget("the legality check", max_operations):
            return judge(program, dependences, order)
    except BudgetError as error:
        return Verdict(UNKNOWN, PROVED, error.message, spent=True)


def judge(scop: Scop, dependences: Dependences, order: NewOrder) -> Verdict:
    """The verdict on an order that was read for the same program and sizes as the dependences."""
    violated = _violations(scop, dependences, order)
    certain = [v for v in violated if v.dependence.is_ordered and v.dependence.certain]
    if certain:
        witness = _witness(scop, dependences, certain)
        return Verdict(ILLEGAL, PROVED, _why_illegal(order, witness), (), witness)
    axioms = tuple(sorted({v.dependence.axiom for v in violated if v.dependence.axiom}))
    uncertain = [v for v in violated if v.dependence.is_ordered]
    if uncertain:
        return Verdict(UNKNOWN, PROVED, _why_unknown(uncertain[0].dependence), axioms)
    return Verdict(LEGAL, PROVED, _why_legal(dependences, axioms), axioms)


@dataclass(frozen=True, slots=True)
class _Violation:
    """The pairs of a dependence that the new order does not keep."""

    dependence: Dependence
    pairs: Map


def _violations(scop: Scop, dependences: Dependences, order: NewOrder) -> list[_Violation]:
    """Dependences that need no axiom to be ignored are left out."""
    wrong: dict[tuple[str, str, bool], tuple[Map, ...]] = {}
    found = list(_repeated(scop, order))
    for d in dependences:
        if d.axiom == "":
            continue
        key = (d.source, d.sink, d.kinds == (FLOW,))
        if key not in wrong:
            wrong[key] = order.violated(d.source, d.sink, flow=key[2])
        for w in wrong[key]:
            pairs = d.relation.intersect(w)
            if not pairs.is_empty():
                found.append(_Violation(d, pairs))
    return found


def _repeated(scop: Scop, order: NewOrder) -> Iterator[_Violation]:
    """Instances that run more than once and read what they wrote: the second time they find another value.

    A minimum or maximum is the same the second time; of a call nothing is known.
    """
    for statement in scop.statements:
        if order.of(statement.name).is_single_valued():
            continue
        own = list(touches(scop, statement, written_tensors(scop)))
        again = repeated(order.of(statement.name))
        for a, b in ((a, b) for a in own if a.writes for b in own if b.tensor == a.tensor):
            if not b.reads and b.access is not None:
                continue
            if a is b and a.combine in ("min", "max"):
                continue
            pairs = a.relation.apply_range(b.relation.reverse()).intersect(again)
            if not pairs.is_empty():
                certain = MAY not in (a.access_class, b.access_class)
                name = statement.name
                yield _Violation(Dependence(name, name, (FLOW,), a.tensor, pairs, certain, None, a, b), pairs)


def _witness(scop: Scop, dependences: Dependences, violated: Sequence[_Violation]) -> Witness:
    found: list[tuple[PairPoint, Dependence]] = []
    for v in violated:
        d = v.dependence
        pair = smallest_pair(v.pairs, dependences.order(d.source), dependences.order(d.sink), scop.params)
        if pair is not None:
            found.append((pair, d))
    best = min(pair for pair, _ in found)
    candidates = [d for pair, d in found if pair == best]
    kind = next(k for k in KINDS if any(k in d.kinds for d in candidates))
    tensor = next(d.tensor for d in candidates if kind in d.kinds)
    sizes = dict(zip(scop.params, best.params, strict=True))
    cells = [_cell(scop, d, sizes, best) for d in candidates if d.tensor == tensor and kind in d.kinds]
    source = _instance(scop, candidates[0].source, best.source)
    sink = _instance(scop, candidates[0].sink, best.sink)
    return Witness(tuple(sizes.items()), kind, tensor, min(cells), source, sink)


def _instance(scop: Scop, statement: str, values: tuple[int, ...]) -> Instance:
    return Instance(statement, tuple(zip(scop.statement(statement).iterators, values, strict=True)))


def _cell(scop: Scop, d: Dependence, sizes: Mapping[str, int], pair: PairPoint) -> tuple[int, ...]:
    """The smallest cell that both instances touch."""
    for touch, values in ((d.source_touch, pair.source), (d.sink_touch, pair.sink)):
        if touch.access is not None and touch.access_class == EXACT:
            env = {**sizes, **dict(zip(scop.statement(touch.statement).iterators, values, strict=True))}
            return tuple(s.evaluate(env) for s in touch.access.affine_subscripts)
    a, b = _cells(d.source_touch, sizes, pair.source), _cells(d.sink_touch, sizes, pair.sink)
    smallest = a.intersect(b).smallest()
    if smallest is None:
        raise InternalError(f"no common cell of {d.source_touch} and {d.sink_touch}")
    return tuple(smallest.values())


def _cells(touch: Touch, sizes: Mapping[str, int], values: tuple[int, ...]) -> Set:
    relation = touch.relation.fix_params(sizes)
    at = Set.universe(touch.statement, relation.in_dims).fix(dict(zip(relation.in_dims, values, strict=True)))
    return relation.intersect_domain(at).range([f"d{k}" for k in range(relation.out_arity)])


def _why_illegal(order: NewOrder, witness: Witness) -> str:
    sizes = dict(witness.params)
    a, b = (_vector(order, i, sizes) for i in (witness.source, witness.sink))
    if witness.source == witness.sink:
        how = f"it runs at {list(a)} and again later, and reads what it wrote"
    elif a == b:
        how = f"both come at {list(a)}"
    elif a > b:
        how = f"{list(a)} comes after {list(b)}"
    else:
        if not order.orders_once():
            return f"{witness}: some run of the first comes after a run of the second"
        dim = next(k for k in range(order.length) if a[k] != b[k])
        what = f"parallel dimension {dim}" if dim in order.parallel else f"the unordered dimension {dim} of a set node"
        how = f"{list(a)} and {list(b)} differ first in {what}"
    return f"{witness}: {how}"


def _vector(order: NewOrder, instance: Instance, sizes: Mapping[str, int]) -> tuple[int, ...]:
    relation = order.of(instance.statement).fix_params(sizes)
    at = Set.universe(instance.statement, relation.in_dims).fix(dict(instance.at))
    image = relation.intersect_domain(at).range([f"d{k}" for k in range(order.length)])
    return tuple((image.smallest() or {}).values())


def _why_unknown(d: Dependence) -> str:
    blocking = next(t for t in (d.source_touch, d.sink_touch) if t.access_class == MAY)
    return f"{blocking} has a data-dependent subscript: {d.source} and {d.sink} may touch the same cell of {d.tensor}"


def _why_legal(dependences: Dependences, axioms: tuple[str, ...]) -> str:
    given = f", given {' and '.join(axioms)}" if axioms else ""
    return f"every dependence is kept{given}" if len(dependences) else "no two instances depend on each other"
