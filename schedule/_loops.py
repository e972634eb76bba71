"""Loop code from a schedule, in any form that the judge reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from polyopt.errors import InputError, require_type
from polyopt.ir import LoopProgram, Scop
from polyopt.schedule._orders import NewOrder, ScheduleLike, fixed_scop, read_order, tree_text
from polyopt.schedule._touches import sizes_context
from polyopt.schedule._tree import PARALLEL, ScheduleTree, bands
from polyopt.schedule._tree_relations import CHANGING
from polyopt.schedule._tree_text import tree_yaml
from polyopt.sets import LoopMember, LoopNode, loops_of_orders, loops_of_tree, operation_budget, parse_tree

__all__ = ["LOOP_OPERATIONS", "generate_loops"]

LOOP_OPERATIONS = 20_000_000
"""Operation budget of generating the loops of one program."""


def generate_loops(
    scop: Scop,
    schedule: ScheduleLike,
    *,
    parallel: Sequence[int] = (),
    at: Mapping[str, int] | None = None,
    options: str = "",
    max_operations: int | None = LOOP_OPERATIONS,
) -> LoopProgram:
    """Loops that run every instance of `scop` once, in the order of `schedule`, for all sizes or for the sizes `at`.

    Rewrite, N >= 1:   { S[i] -> [floor(i/4), i] } on 0 <= i < N   ->   for c0 in range(0, (N - 1)//4 + 1):
                                                                            for c1 in range(4*c0, min(N, 4*c0 + 4)):
                                                                                S(c1)

    schedule, parallel: as `check` takes them; nobody asks here whether the order is legal.  Loops of the entries in
    `parallel`, of coincident loops of a tree's text and of parallel loops of a tree are marked parallel.  options:
    isl's AST options of an order vector by its dimensions, `{ [i, j] -> unroll[1] }`; a tree's text carries its own.
    Raises InputError on an unreadable schedule and unbounded loops, BudgetError when the operations do not suffice.
    """
    require_type(scop, Scop, "program", help="give a Scop: po.load(FILE), po.from_function(KERNEL)")
    program = fixed_scop(scop, at)
    with operation_budget("generating loops", max_operations):
        order = read_order(program, schedule, parallel=parallel)
        root = _root(program, schedule, order, options)
    return LoopProgram(scop.name, scop.params, root)


def _root(scop: Scop, schedule: ScheduleLike, order: NewOrder, options: str) -> LoopNode:
    """order: what was read from `schedule`; trees are given to isl as they are."""
    context = sizes_context(scop)
    taken = (*scop.params, *(t.name for t in scop.tensors), *(s.name for s in scop.statements))
    text = tree_text(schedule) if isinstance(schedule, str) else None
    if text is None and not isinstance(schedule, ScheduleTree):
        members = {k: LoopMember("", PARALLEL) for k in order.parallel}
        return loops_of_orders(order.orders, context, members=members, taken=taken, options=options)
    if options:
        raise InputError(
            "the schedule is a tree, which has the options of its loops in itself",
            help="write them into the tree: options: '{ unroll[0] }' in a band",
            id="loops",
        )
    domains = [s.domain.intersect_params(context) for s in scop.statements]
    if isinstance(schedule, ScheduleTree):
        kinds = [[LoopMember(m.name, m.kind) for m in band.members] for _, band in bands(schedule)]
        return loops_of_tree(tree_yaml(schedule), context, domains=domains, members=kinds, taken=taken)
    assert text is not None
    changes = parse_tree(text).has(*CHANGING)
    return loops_of_tree(text, context, domains=None if changes else domains, taken=taken)
