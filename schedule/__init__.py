"""Dependences, legality, schedulers and tree transformations (layer 4)."""
from polyopt.schedule._absorb import absorb_initialisations
from polyopt.schedule._apply import apply_schedule, normalise
from polyopt.schedule._dependences import (
    Dependence,
    Dependences,
    compute_dependences,
    reduced_dependences,
)
from polyopt.schedule._distribute import Leaf, LoopTree, SequentialLoop, distribute, leaves
from polyopt.schedule._legality import check
from polyopt.schedule._verdict import Instance, Verdict, Witness

__all__ = [
    "Leaf",
    "LoopTree",
    "SequentialLoop",
    "absorb_initialisations",
    "apply_schedule",
    "distribute",
    "leaves",
    "normalise",
    "Dependence",
    "Dependences",
    "Instance",
    "Verdict",
    "Witness",
    "check",
    "compute_dependences",
    "reduced_dependences",
]
