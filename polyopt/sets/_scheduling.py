"""isl's scheduler and schedule trees as text; relations as quasi-affine functions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import islpy as isl

from polyopt.errors import InputError
from polyopt.sets._budget import operation_budget
from polyopt.sets._child import run_in_child
from polyopt.sets._convert import aff_to_affine, constraint_to_affine, pw_aff_to_affine
from polyopt.sets._flow import union_of
from polyopt.sets._map import Map
from polyopt.sets._set import Set
from polyopt.sets.affine import Affine, Constraint

__all__ = ["SchedulerOptions", "compute_tree", "function_exprs", "function_pieces", "sequence_trees", "tree_of_orders"]

_IN, _OUT = isl.dim_type.in_, isl.dim_type.out


@dataclass(frozen=True, slots=True)
class SchedulerOptions:
    """Options of isl's scheduler (isl manual, "Scheduling").

    algorithm: `isl` (Pluto-like, the default) or `feautrier`.  serialize: strongly connected components in sequence.
    max_coefficient, max_constant: bound the coefficients that are searched for (-1: no bound).
    """

    algorithm: str = "isl"
    serialize: bool = False
    outer_coincidence: bool = False
    max_coefficient: int = -1
    max_constant: int = -1


@contextmanager
def _options(options: SchedulerOptions) -> Iterator[None]:
    context = isl.DEFAULT_CONTEXT
    feautrier = options.algorithm == "feautrier"
    wanted = {
        "algorithm": int(isl.schedule_algorithm.FEAUTRIER if feautrier else isl.schedule_algorithm.ISL),
        "serialize_sccs": int(options.serialize),
        "outer_coincidence": int(options.outer_coincidence),
        "max_coefficient": options.max_coefficient,
        "max_constant_term": options.max_constant,
    }
    former = {name: getattr(context, f"get_schedule_{name}")() for name in wanted}
    try:
        for name, value in wanted.items():
            getattr(context, f"set_schedule_{name}")(value)
        yield
    finally:
        for name, value in former.items():
            getattr(context, f"set_schedule_{name}")(value)


def compute_tree(
    domains: Sequence[Set],
    context: Set,
    *,
    validity: Sequence[Map],
    proximity: Sequence[Map] = (),
    coincidence: Sequence[Map] = (),
    options: SchedulerOptions = SchedulerOptions(),
    phase: str = "scheduling",
    max_operations: int | None = None,
    max_cpu_s: int | None = None,
) -> str:
    """The schedule tree (YAML text) that isl finds: validity kept, proximity short, coincidence zero where possible.

    max_operations, max_cpu_s: what it may take (None: any number), and `phase` is its name then.
    Raises InputError when isl finds none, BudgetError when that does not suffice.
    """
    constraints = isl.ScheduleConstraints.on_domain(_union_set(domains))
    constraints = constraints.set_context(context.isl.params())
    if validity:
        constraints = constraints.set_validity(union_of(validity))
    if proximity:
        constraints = constraints.set_proximity(union_of(proximity))
    if coincidence:
        constraints = constraints.set_coincidence(union_of(coincidence))

    def work() -> str:
        with operation_budget(phase, max_operations):
            return _tree(constraints, options)

    return work() if max_cpu_s is None else run_in_child(work, phase, cpu_s=max_cpu_s)


def _tree(constraints: isl.ScheduleConstraints, options: SchedulerOptions) -> str:
    try:
        with _options(options):
            return str(constraints.compute_schedule().to_str())
    except isl.Error as error:
        raise InputError(
            "isl finds no schedule", help="use another scheduler, or the original order", id="no-schedule"
        ) from error


def sequence_trees(trees: Sequence[str]) -> str:
    """One tree that runs the given ones (text, at least one, disjoint domains) after each other."""
    total = isl.Schedule.read_from_str(isl.DEFAULT_CONTEXT, trees[0])
    for tree in trees[1:]:
        total = total.sequence(isl.Schedule.read_from_str(isl.DEFAULT_CONTEXT, tree))
    return str(total.to_str())


def tree_of_orders(orders: Sequence[Map]) -> str:
    """A tree with a single band that gives every statement its order vector; all vectors must be equally long."""
    union = union_of(orders)
    schedule = isl.Schedule.from_domain(union.domain())
    if orders[0].out_arity:
        schedule = schedule.insert_partial_schedule(isl.MultiUnionPwAff.from_union_map(union))
    return str(schedule.to_str())


def _union_set(domains: Sequence[Set]) -> isl.UnionSet:
    total = isl.UnionSet.from_set(domains[0].isl)
    for d in domains[1:]:
        total = total.union(isl.UnionSet.from_set(d.isl))
    return total


def function_exprs(relation: Map, in_dims: Sequence[str]) -> tuple[Affine, ...]:
    """The outputs of a single-valued relation as expressions of its inputs (called `in_dims`) and the parameters.

    Raises InputError when the relation is empty or not single-valued.
    """
    named = relation.isl
    for k, d in enumerate(in_dims):
        named = named.set_dim_name(_IN, k, d)
    if named.is_empty() or not named.is_single_valued():
        raise InputError(f"{relation} is not a function", help="give every instance one value", id="not-a-function")
    function = isl.PwMultiAff.from_map(named).gist(named.domain()).coalesce()
    return tuple(pw_aff_to_affine(function.get_pw_aff(k)) for k in range(named.dim(_OUT)))


def function_pieces(
    relation: Map, in_dims: Sequence[str]
) -> tuple[tuple[tuple[Constraint, ...], tuple[Affine, ...]], ...]:
    """A single-valued relation as (where, outputs) pairs: expressions of its inputs (called `in_dims`) and parameters.

    `where` says only what is not true of all inputs anyway.  An empty relation has no pieces.
    """
    named = relation.isl
    for k, d in enumerate(in_dims):
        named = named.set_dim_name(_IN, k, d)
    if named.is_empty():
        return ()
    pieces: list[tuple[isl.Set, isl.MultiAff]] = []
    function = isl.PwMultiAff.from_map(named).gist(named.domain()).coalesce()
    function.foreach_piece(lambda where, outputs: pieces.append((where, outputs)))
    found: list[tuple[tuple[Constraint, ...], tuple[Affine, ...]]] = []
    for where, outputs in pieces:
        exprs = tuple(aff_to_affine(outputs.get_aff(k)) for k in range(named.dim(_OUT)))
        for part in where.compute_divs().get_basic_sets():
            found.append((tuple(constraint_to_affine(c) for c in part.get_constraints()), exprs))
    return tuple(found)
