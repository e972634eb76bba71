"""Sets and relations addressed by dimension name, and quasi-affine expressions (the only importer of islpy)."""

from polyopt.sets._budget import operation_budget
from polyopt.sets._flow import last_sources
from polyopt.sets._map import Map
from polyopt.sets._order import (
    PairPoint,
    before,
    bound_below,
    carried_by,
    differ_first_at,
    in_arity,
    not_before,
    pad_order,
    restrict_range,
    smallest_pair,
    with_in_dims,
)
from polyopt.sets._scheduling import SchedulerOptions, compute_tree, function_exprs, sequence_trees, tree_of_orders
from polyopt.sets._set import Set
from polyopt.sets._union import TreeNode, parse_tree, parse_union_map
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
    "PairPoint",
    "SchedulerOptions",
    "Select",
    "Set",
    "TreeNode",
    "affine",
    "before",
    "bound_below",
    "carried_by",
    "compute_tree",
    "differ_first_at",
    "function_exprs",
    "in_arity",
    "interval",
    "last_sources",
    "maximum",
    "minimum",
    "not_before",
    "operation_budget",
    "pad_order",
    "parse_tree",
    "parse_union_map",
    "restrict_range",
    "select",
    "sequence_trees",
    "simplify",
    "smallest_pair",
    "tree_of_orders",
    "var",
    "with_in_dims",
]
