"""Do loops run the instances of a program, each once, in the order that a schedule says?

The loops are read back as the relation instance -> time and compared with the domains and the schedule, for all sizes
in the context.  Nothing is shared with the generator of loops but the nodes, the sets and the reader of schedules.
Source of the idea: Bastoul, "Code generation in the polyhedral model is easier than you think", PACT 2004 (scanning
each point once, in lexicographic order), turned around into a check.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from polyopt.errors import BudgetError, NotAffineError
from polyopt.ir import LoopProgram, Scop
from polyopt.schedule import (
    Dependence,
    Dependences,
    NewOrder,
    ScheduleLike,
    compute_dependences,
    fixed_scop,
    read_order,
)
from polyopt.sets import (
    Map,
    Set,
    before,
    bound_below,
    differ_first_at,
    not_before,
    operation_budget,
    restrict_range,
    smallest_pair,
    var,
)
from polyopt.sets import loops as all_loops
from polyopt.verify._loop_reading import (
    MalformedLoopsError,
    ParallelLoop,
    Site,
    read_sites,
    refuse_malformed,
    times_by_statement,
)
from polyopt.verify._loop_scan import LoopFault, scan_loops
from polyopt.verify._verdicts import PropertyVerdict

__all__ = ["VALIDATION_OPERATIONS", "validate_loops"]

VALIDATION_OPERATIONS = 20_000_000
"""Operation budget of validating the loops of one program."""


def validate_loops(
    scop: Scop,
    schedule: ScheduleLike,
    loops: LoopProgram,
    *,
    parallel: Sequence[int] = (),
    at: Mapping[str, int] | None = None,
    max_operations: int | None = VALIDATION_OPERATIONS,
) -> PropertyVerdict:
    """Whether `loops` run every instance of `scop` exactly once and none besides, in the order of `schedule` wherever
    that orders two instances, and whether their parallel loops carry no dependence; for all sizes or those of `at`.

    proved, or refuted with the smallest example (smallest sizes, then the first in: outside, missing, twice, order,
    parallel).  When that takes more than `max_operations` or meets numbers that are too large, and for schedules that
    repeat instances, the loops are run at some small sizes instead: tested, and the reason says so.  unknown: a
    data-dependent subscript decides whether a parallel loop carries a dependence, or no size is small enough to run.
    """
    program = fixed_scop(scop, at)
    context = bound_below(program.context, program.params)
    order = read_order(program, schedule, parallel=parallel)
    try:
        refuse_malformed(program, loops)
    except MalformedLoopsError as error:
        return PropertyVerdict("refuted", f"the loops are not those of {scop.name}: {error}", {"what": "malformed"})
    if not order.orders_once():
        return _tested(program, order, loops, "the schedule runs instances several times")
    try:
        with operation_budget("validating the loops", max_operations):
            sites = read_sites(program, loops, context)
            fault = _smallest_fault(program, order, sites, context)
    except (BudgetError, NotAffineError) as error:
        return _tested(program, order, loops, error.message)
    if fault is not None:
        return _refuted(fault)
    return _parallel_verdict(program, sites, max_operations)


def _refuted(fault: LoopFault) -> PropertyVerdict:
    return PropertyVerdict("refuted", str(fault), fault.to_json())


def _tested(scop: Scop, order: NewOrder, loops: LoopProgram, why: str) -> PropertyVerdict:
    """What running the loops at small sizes says."""
    sizes, fault = scan_loops(scop, order, loops)
    if fault is not None:
        return _refuted(fault)
    if not sizes:
        return PropertyVerdict("unknown", f"not proved ({why}), and the smallest sizes have too many instances to run")
    ran = "; ".join(", ".join(f"{n} = {v}" for n, v in at.items()) for at in sizes)
    at = f" at {ran}" if scop.params else ""
    marked = any(f.kind != "sequential" for f in all_loops(loops.root))
    left = "; whether its parallel loops carry dependences was not asked" if marked else ""
    return PropertyVerdict("tested", f"not proved ({why}); held when run{at}{left}")


def _smallest_fault(scop: Scop, order: NewOrder, sites: Sequence[Site], context: Set) -> LoopFault | None:
    times = times_by_statement(scop, sites)
    found = [*_instance_faults(scop, times, context)]
    found += _order_faults(scop, order, times)
    return min(found, key=LoopFault.rank, default=None)


def _instance_faults(scop: Scop, times: Mapping[str, Map | None], context: Set) -> Iterator[LoopFault]:
    """Of every statement the smallest instance outside, missing and twice."""
    for s in scop.statements:
        domain = s.domain.intersect_params(context)
        own = times[s.name]
        if own is None:
            yield from _fault(scop, "missing", domain)
            continue
        run = own.domain().coalesce()
        yield from _fault(scop, "outside", run.subtract(domain))
        yield from _fault(scop, "missing", domain.subtract(run))
        if not own.is_single_valued():
            yield from _fault(scop, "twice", _run_twice(own, run))


def _run_twice(times: Map, instances: Set) -> Set:
    """The instances that have two times."""
    itself = Map.from_exprs(instances, "", [var(d) for d in instances.dims])
    same = itself.apply_range(itself.reverse())
    return before(times, times).intersect(same).domain()


def _fault(scop: Scop, what: str, instances: Set) -> Iterator[LoopFault]:
    point = instances.smallest(scop.params)
    if point is not None:
        sizes = tuple(point[p] for p in scop.params)
        yield LoopFault(what, scop.params, sizes, instances.name, tuple(point[d] for d in instances.dims))


def _order_faults(scop: Scop, order: NewOrder, times: Mapping[str, Map | None]) -> Iterator[LoopFault]:
    """Of every two statements the smallest pair that the schedule orders and the loops do not."""
    for source in scop.statements:
        for sink in scop.statements:
            a, b = times[source.name], times[sink.name]
            if a is None or b is None:
                continue
            wrong = _ordered(order, source.name, sink.name).intersect(not_before(a, b))
            if wrong.is_empty():
                continue
            pair = smallest_pair(wrong, order.of(source.name), order.of(sink.name), scop.params)
            if pair is not None:
                yield LoopFault("order", scop.params, pair.params, source.name, pair.source, sink.name, pair.sink)


def _ordered(order: NewOrder, source: str, sink: str) -> Map:
    """{ x -> y : the schedule says x before y }."""
    a, b = order.of(source), order.of(sink)
    result = before(a, b)
    for dim in order.parallel:
        result = result.subtract(differ_first_at(a, b, dim))
    for dim, sets in order.unordered:
        by_name = {s.name: s for s in sets}
        if source in by_name and sink in by_name:
            free = differ_first_at(a, b, dim).intersect_domain(by_name[source])
            result = result.subtract(restrict_range(free, by_name[sink]))
    return result


def _parallel_verdict(scop: Scop, sites: Sequence[Site], max_operations: int | None) -> PropertyVerdict:
    """Proved, unless a loop that is marked parallel carries a dependence or perhaps does."""
    good = PropertyVerdict("proved", "every instance runs once, in the order of the schedule")
    marked = dict.fromkeys(p for site in sites for p in site.parallel)
    if not marked:
        return good
    try:
        dependences = compute_dependences(scop, max_operations=max_operations)
        with operation_budget("validating parallel loops", max_operations):
            found = [c for loop in marked for c in _carried(scop, dependences, sites, loop)]
    except BudgetError as error:
        return PropertyVerdict(
            "unknown", f"{good.reason}; whether its parallel loops are free is open: {error.message}"
        )
    ordered = [(f, d) for f, d in found if d.is_ordered]
    certain = [f for f, d in ordered if d.certain]
    if certain:
        return _refuted(min(certain, key=LoopFault.rank))
    if ordered:
        return PropertyVerdict("unknown", f"{ordered[0][0]}, if a data-dependent subscript makes it so")
    axioms = tuple(sorted({d.axiom for _, d in found if d.axiom}))
    return PropertyVerdict("proved", f"{good.reason}; no parallel loop carries a dependence", axioms=axioms)


def _carried(
    scop: Scop, dependences: Dependences, sites: Sequence[Site], loop: ParallelLoop
) -> Iterator[tuple[LoopFault, Dependence]]:
    """Dependences between iterations of a parallel loop, each with its smallest pair; those that need no axiom
    to be ignored are left out.
    """
    inside = times_by_statement(scop, [s for s in sites if loop in s.parallel])
    for d in dependences:
        if d.axiom == "":
            continue
        a, b = inside[d.source], inside[d.sink]
        if a is None or b is None:
            continue
        wrong = d.relation.intersect(differ_first_at(a, b, loop.entry))
        if wrong.is_empty():
            continue
        pair = smallest_pair(wrong, dependences.order(d.source), dependences.order(d.sink), scop.params)
        if pair is not None:
            note = f"the parallel loop {loop.iterator}"
            fault = LoopFault("parallel", scop.params, pair.params, d.source, pair.source, d.sink, pair.sink, note)
            yield fault, d
