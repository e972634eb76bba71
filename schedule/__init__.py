"""Dependences, legality, schedulers and tree transformations (layer 4)."""

from polyopt.schedule._absorb import Absorbed, absorb
from polyopt.schedule._apply import apply_schedule, normalise
from polyopt.schedule._components import FusionGroups, components, dependence_graph, fusion_groups, shared_depth
from polyopt.schedule._dependences import (
    Dependence,
    Dependences,
    compute_dependences,
    reduced_dependences,
)
from polyopt.schedule._distribute import Leaf, LoopTree, SequentialLoop, distribute, leaves
from polyopt.schedule._legality import check
from polyopt.schedule._orders import ScheduleLike
from polyopt.schedule._replay import Replay, replay
from polyopt.schedule._schedulers import SCHEDULERS, ScheduleResult, compute_schedule
from polyopt.schedule._substitute import substitute_forward
from polyopt.schedule._verdict import Instance, Verdict, Witness

__all__ = [
    "SCHEDULERS",
    "Absorbed",
    "Dependence",
    "Dependences",
    "FusionGroups",
    "Instance",
    "Leaf",
    "LoopTree",
    "Replay",
    "ScheduleLike",
    "ScheduleResult",
    "SequentialLoop",
    "Verdict",
    "Witness",
    "absorb",
    "apply_schedule",
    "check",
    "components",
    "compute_dependences",
    "compute_schedule",
    "dependence_graph",
    "distribute",
    "fusion_groups",
    "leaves",
    "normalise",
    "reduced_dependences",
    "replay",
    "shared_depth",
    "substitute_forward",
]
