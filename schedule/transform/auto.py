"""A schedule tree from a scheduler."""

from __future__ import annotations

from dataclasses import dataclass

from polyopt.ir import Scop
from polyopt.schedule._schedulers import SCHEDULING_OPERATIONS, ScheduleResult, compute_schedule
from polyopt.schedule._tree import ScheduleTree
from polyopt.schedule._tree_build import original_tree, read_tree, tree_of_vectors
from polyopt.schedule.transform._legal import require_legal

__all__ = ["AutoSchedule", "auto"]


@dataclass(frozen=True, slots=True)
class AutoSchedule:
    """tree: legal.  result: the scheduler's, with the rung of the ladder that it took and why."""

    tree: ScheduleTree
    result: ScheduleResult


def auto(scop: Scop, scheduler: str = "isl", *, max_operations: int | None = SCHEDULING_OPERATIONS) -> AutoSchedule:
    """The order of an installed scheduler as a tree, with its parallel loops marked, under its operation budget.

    The scheduler goes down its ladder (full, components, serial, original) and never raises for being slow.  Raises
    PluginError when there is no such scheduler.
    """
    result = compute_schedule(scop, scheduler, max_operations=max_operations)
    if not scop.statements:
        return AutoSchedule(original_tree(scop), result)
    tree = read_tree(scop, result.tree) if result.tree else tree_of_vectors(scop, result.mapping())
    return AutoSchedule(require_legal(scop, tree, f"the order of {scheduler}"), result)
