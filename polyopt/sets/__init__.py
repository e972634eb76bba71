"""Sets and relations addressed by dimension name, and quasi-affine expressions (the only importer of islpy)."""

from polyopt.sets._map import Map
from polyopt.sets._set import Set
from polyopt.sets.affine import (
    Affine,
    AffineLike,
    Constraint,
    Extremum,
    Floor,
    Interval,
    Select,
    affine,
    interval,
    maximum,
    minimum,
    select,
    simplify,
    var,
)

__all__ = [
    "Affine",
    "AffineLike",
    "Constraint",
    "Extremum",
    "Floor",
    "Interval",
    "Map",
    "Select",
    "Set",
    "affine",
    "interval",
    "maximum",
    "minimum",
    "select",
    "simplify",
    "var",
]
