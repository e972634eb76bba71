"""Schedulers: dependences in, a legal order out.  Plug-ins of the group `polyopt.schedulers`.

A scheduler never hangs and does not raise for being slow: under an operation budget it goes down a ladder of cheaper
problems, full -> component by component -> strongly connected components in sequence -> the original order, and says in
its remarks which rung it took and why.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

import networkx as nx

from polyopt.errors import BudgetError, Diagnostic, InputError, LegalityError, PluginError
from polyopt.ir import Scop
from polyopt.registry import OWN, Registry
from polyopt.schedule._components import components, dependence_graph
from polyopt.schedule._dependences import FLOW, Dependence, Dependences, reduced_dependences
from polyopt.schedule._legality import check
from polyopt.schedule._orders import read_order
from polyopt.schedule._touches import sizes_context
from polyopt.schedule._tree_build import read_tree
from polyopt.schedule._tree_order import tree_maps
from polyopt.schedule._verdict import ILLEGAL, Verdict
from polyopt.sets import (
    Affine,
    Map,
    SchedulerOptions,
    affine,
    compute_tree,
    function_exprs,
    sequence_trees,
    tree_of_orders,
)

__all__ = [
    "SCHEDULERS",
    "SCHEDULING_OPERATIONS",
    "ScheduleResult",
    "Scheduler",
    "compute_schedule",
    "schedule_feautrier",
    "schedule_given",
    "schedule_isl",
    "schedule_original",
]

SCHEDULING_OPERATIONS = 300_000
"""Operation budget of each rung of the ladder: a few seconds."""

SCHEDULING_CPU_S = 4
"""Seconds of processor time of each rung: for what isl does not count.  Far more than the operations take."""

MAX_UNKNOWNS = 200
"""A problem with more unknown coefficients is not tried: there a single operation may take milliseconds."""

SMALLEST_BUDGET = 20_000
"""No component gets less."""

SERIAL_OPERATIONS = 5_000
"""More operations for each statement when strongly connected components stay in sequence: many small problems."""

FULL, COMPONENTS, SERIAL, ORIGINAL = RUNGS = ("full", "components", "serial", "original")
"""A result has the lowest rung that any of its components needed."""

GIVEN = "given"
"""The rung of a user's own order."""


@dataclass(frozen=True, slots=True)
class ScheduleResult:
    """A legal order.

    vectors: for each statement, in textual order, its order vector, all equally long.  tree: isl schedule tree (YAML)
    that gives the same order, with isl's permutable and coincident marks where isl found it.  rung: how far down the
    ladder it was found.  remarks: why.  verdict: the judge's.
    """

    vectors: tuple[tuple[str, tuple[Affine, ...]], ...]
    tree: str
    rung: str
    remarks: tuple[Diagnostic, ...]
    verdict: Verdict

    def vector(self, statement: str) -> tuple[Affine, ...]:
        """The order vector of one statement; KeyError when there is none."""
        return self.mapping()[statement]

    def mapping(self) -> Mapping[str, tuple[Affine, ...]]:
        """Statement -> order vector, as `check` and `apply_schedule` take it."""
        return MappingProxyType(dict(self.vectors))


Scheduler = Callable[..., ScheduleResult]
"""`scheduler(scop, *, max_operations=...)`: the contract of an entry point."""

SCHEDULERS = Registry(
    "polyopt.schedulers",
    MappingProxyType(
        {
            "feautrier": "polyopt.schedule._schedulers:schedule_feautrier",
            "isl": "polyopt.schedule._schedulers:schedule_isl",
            "original": "polyopt.schedule._schedulers:schedule_original",
        }
    ),
)


def compute_schedule(
    scop: Scop, scheduler: str = "isl", *, max_operations: int | None = SCHEDULING_OPERATIONS
) -> ScheduleResult:
    """The order that the scheduler called `scheduler` gives, judged here when it comes from a plug-in or a user.

    A user's own order is given as `check` takes it: `@file` or text of a schedule tree, or union map text.  Raises
    PluginError when there is no such scheduler, LegalityError when a plug-in's or a user's order violates a dependence.
    """
    if scheduler.lstrip().startswith(("@", "{", "domain")):
        return schedule_given(scop, scheduler)
    part = SCHEDULERS.load(scheduler)
    if not callable(part):
        raise PluginError(
            f"the scheduler {scheduler!r} cannot be called: it is a {type(part).__name__}",
            help="register a function scheduler(scop, *, max_operations=...)",
        )
    result = part(scop, max_operations=max_operations)
    if not isinstance(result, ScheduleResult):
        raise PluginError(
            f"the scheduler {scheduler!r} gives a {type(result).__name__}, not a ScheduleResult",
            help="return a polyopt.schedule.ScheduleResult",
        )
    if SCHEDULERS.distribution(scheduler) == OWN:
        return result  # judged already
    verdict = check(scop, result.mapping())
    if verdict.verdict == ILLEGAL:
        raise LegalityError(
            f"the scheduler {scheduler!r} gives an illegal order: {verdict.reason}",
            help=f"use another scheduler, and report this to {SCHEDULERS.distribution(scheduler)}",
        )
    return replace(result, verdict=verdict)


def schedule_original(scop: Scop, *, max_operations: int | None = None) -> ScheduleResult:
    """The order in which the program is written, textual position last."""
    del max_operations  # nothing is searched
    return _result(scop, _original_vectors(scop), "", ORIGINAL, ())


def schedule_given(scop: Scop, schedule: str) -> ScheduleResult:
    """A user's own order: `@file` or text of a schedule tree, or union map text.

    Raises InputError when it cannot be read, LegalityError with the witness when it is not known to be legal.
    """
    verdict = check(scop, schedule)
    if not verdict:
        raise LegalityError(
            f"the given order is {verdict.verdict}: {verdict.reason}",
            help="keep the order of these two instances",
            verdict=verdict,
        )
    order = read_order(scop, schedule)
    vectors = {s.name: _vector_of(scop, order.of(s.name), s.name, order.length) for s in scop.statements}
    given = tuple(vectors.items())
    return ScheduleResult(given, tree_of_orders(order.orders) if given else "", GIVEN, (), verdict)


def _vector_of(scop: Scop, order: Map, name: str, length: int) -> tuple[Affine, ...]:
    return (affine(0),) * length if order.is_empty() else function_exprs(order, scop.statement(name).iterators)


def schedule_isl(scop: Scop, *, max_operations: int | None = SCHEDULING_OPERATIONS) -> ScheduleResult:
    """isl's scheduler (Pluto-like: short dependences, outer parallel and permutable loops).

    Source: Verdoolaege and Janssens, "Scheduling for PPCG", report CW 706, 2017; Bondhugula et al., PLDI 2008.
    """
    return _descend(scop, SchedulerOptions("isl"), max_operations)


def schedule_feautrier(scop: Scop, *, max_operations: int | None = SCHEDULING_OPERATIONS) -> ScheduleResult:
    """Feautrier's scheduler: as few sequential outer dimensions as possible, inner ones parallel.

    Source: Feautrier, "Some efficient solutions to the affine scheduling problem", parts I and II, 1992.
    """
    return _descend(scop, SchedulerOptions("feautrier"), max_operations)


def _descend(scop: Scop, options: SchedulerOptions, max_operations: int | None) -> ScheduleResult:
    if not scop.statements:
        return schedule_original(scop)
    try:
        dependences = reduced_dependences(scop)
    except BudgetError as error:
        return replace(schedule_original(scop), remarks=(_remark(error, ORIGINAL),))
    ladder = _Ladder(scop, dependences, options, [])
    names = tuple(s.name for s in scop.statements)
    groups = components(scop, dependences)
    found = ladder.climb(names, FULL, max_operations, COMPONENTS if len(groups) > 1 else SERIAL)
    if found is None:
        share = None if max_operations is None else max(max_operations // len(groups), SMALLEST_BUDGET)
        pieces = [ladder.component(g, share, tried=len(groups) == 1) for g in groups]
        rung = max((r for r, _ in pieces), key=RUNGS.index)
        found = rung, sequence_trees([t for _, t in pieces])
    rung, tree = found
    result = _result(scop, _vectors_of_tree(scop, tree), tree, rung, ladder.remarks)
    if result.verdict.verdict == ILLEGAL:
        refused = LegalityError(
            f"the order that was found is illegal: {result.verdict.reason}",
            help="report this order as a bug of polyopt",
        )
        return replace(schedule_original(scop), remarks=(*ladder.remarks, _remark(refused, ORIGINAL)))
    return result


@dataclass(frozen=True, slots=True)
class _Ladder:
    """One scheduling problem; `remarks` collects why a rung did not hold."""

    scop: Scop
    dependences: Dependences
    options: SchedulerOptions
    remarks: list[Diagnostic]

    def component(self, names: Sequence[str], max_operations: int | None, *, tried: bool) -> tuple[str, str]:
        """(rung, tree) of one component; `tried` when it is the whole program, which was tried already."""
        found = None if tried else self.climb(names, COMPONENTS, max_operations, SERIAL)
        if found is None:
            more = None if max_operations is None else max_operations + SERIAL_OPERATIONS * len(names)
            found = self.climb(names, SERIAL, more, ORIGINAL)
        if found is None:
            orders = {m.in_name: m for m in self.dependences.orders}
            found = ORIGINAL, tree_of_orders([orders[n] for n in names])
        return found

    def climb(
        self, names: Sequence[str], rung: str, max_operations: int | None, next_rung: str
    ) -> tuple[str, str] | None:
        """(rung, tree) for the statements `names`, or None and a remark that names the next rung."""
        unknowns = self.unknowns(names, rung)
        if unknowns > MAX_UNKNOWNS:
            size = f"{_listed(names)}: {unknowns} unknown coefficients are more than {MAX_UNKNOWNS}"
            self.remarks.append(_remark(BudgetError(size, help="schedule fewer statements at once"), next_rung))
            return None
        context = sizes_context(self.scop)
        own = [d for d in self.dependences if d.source in names]
        validity = [d.relation for d in own]
        options = self.options
        if rung == SERIAL:
            options = replace(options, serialize=True, max_coefficient=2, max_constant=4)
        domains = [self.scop.statement(n).domain.intersect_params(context) for n in names]
        try:
            tree = compute_tree(
                domains,
                context,
                validity=validity,
                proximity=[] if rung == SERIAL else _flows(own),
                coincidence=validity,
                options=options,
                phase=f"scheduling {_listed(names)}",
                max_operations=max_operations,
                max_cpu_s=None if max_operations is None else SCHEDULING_CPU_S,
            )
        except (BudgetError, InputError) as error:
            self.remarks.append(_remark(error, next_rung))
            return None
        return rung, tree

    def unknowns(self, names: Sequence[str], rung: str) -> int:
        """The number of unknowns of the largest linear problem: one for each iterator and size, and a constant."""
        graph = dependence_graph(self.scop, self.dependences).subgraph(names)
        parts = nx.strongly_connected_components(graph) if rung == SERIAL else [set(names)]
        per_statement = 1 + len(self.scop.params)
        return max(sum(len(self.scop.statement(n).iterators) + per_statement for n in part) for part in parts)


def _flows(dependences: Sequence[Dependence]) -> list[Map]:
    return [d.relation for d in dependences if FLOW in d.kinds]


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) if len(names) <= 4 else f"{', '.join(names[:3])} and {len(names) - 3} more"


_WAYS = {
    COMPONENTS: "each component is scheduled by itself",
    SERIAL: "strongly connected components are kept in sequence",
    ORIGINAL: "these statements keep their original order",
}


def _remark(error: BudgetError | InputError | LegalityError, next_rung: str) -> Diagnostic:
    return Diagnostic("remark", f"scheduler-{next_rung}", f"{error.message}: {_WAYS[next_rung]}")


def _original_vectors(scop: Scop) -> dict[str, tuple[Affine, ...]]:
    length = scop.order_length()
    return {
        s.name: (*s.order, *[affine(0)] * (length - len(s.order)), affine(position))
        for position, s in enumerate(scop.statements)
    }


def _vectors_of_tree(scop: Scop, tree: str) -> dict[str, tuple[Affine, ...]]:
    orders, _ = tree_maps(read_tree(scop, tree, coincident=False))
    maps = {m.in_name: m for m in orders}
    length = max((m.out_arity for m in orders), default=0)
    vectors: dict[str, tuple[Affine, ...]] = {}
    for s in scop.statements:
        if s.name in maps and not maps[s.name].is_empty():
            vectors[s.name] = function_exprs(maps[s.name], s.iterators)
        else:  # no instance at any size
            vectors[s.name] = (affine(0),) * length
    return vectors


def _result(
    scop: Scop, vectors: Mapping[str, tuple[Affine, ...]], tree: str, rung: str, remarks: Sequence[Diagnostic]
) -> ScheduleResult:
    given = tuple((s.name, vectors[s.name]) for s in scop.statements)
    text = tree or (tree_of_orders(read_order(scop, vectors).orders) if given else "")
    return ScheduleResult(given, text, rung, tuple(remarks), check(scop, vectors))
