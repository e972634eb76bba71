"""Dependences, legality, schedulers and tree transformations (layer 4)."""
from polyopt.schedule._dependences import (
    Dependence,
    Dependences,
    compute_dependences,
    reduced_dependences,
)
from polyopt.schedule._legality import check
from polyopt.schedule._verdict import Instance, Verdict, Witness

__all__ = [
    "Dependence",
    "Dependences",
    "Instance",
    "Verdict",
    "Witness",
    "check",
    "compute_dependences",
    "reduced_dependences",
]
