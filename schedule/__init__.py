"""Dependences, legality, schedulers and tree transformations (layer 4)."""

from polyopt.schedule import transform
from polyopt.schedule._absorb import Absorbed, absorb
from polyopt.schedule._apply import apply_schedule, normalise
from polyopt.schedule._certificate import CERTIFICATE_FORMAT, certificate_statement
from polyopt.schedule._components import FusionGroups, components, dependence_graph, fusion_groups, shared_depth
from polyopt.schedule._dependences import (
    Dependence,
    Dependences,
    compute_dependences,
    reduced_dependences,
)
from polyopt.schedule._distribute import Leaf, LoopTree, SequentialLoop, distribute, leaves
from polyopt.schedule._integer_proof import GivenUp, Step, prove_empty
from polyopt.schedule._legality import check, judge
from polyopt.schedule._loops import generate_loops
from polyopt.schedule._orders import NewOrder, ScheduleLike, fixed_scop, read_order
from polyopt.schedule._replay import Replay, replay
from polyopt.schedule._schedulers import SCHEDULERS, ScheduleResult, compute_schedule
from polyopt.schedule._substitute import substitute_forward
from polyopt.schedule._tree import Band, Filter, Mark, Member, ScheduleTree, Sequence, Unordered, bands, find_band
from polyopt.schedule._tree import Leaf as TreeLeaf
from polyopt.schedule._tree_build import original_tree, read_tree, tree_of_vectors
from polyopt.schedule._tree_order import apply_tree
from polyopt.schedule._tree_text import outline, tree_yaml
from polyopt.schedule._verdict import Instance, Verdict, Witness

__all__ = [
    "CERTIFICATE_FORMAT",
    "SCHEDULERS",
    "Absorbed",
    "Band",
    "Dependence",
    "Dependences",
    "Filter",
    "FusionGroups",
    "GivenUp",
    "Instance",
    "Leaf",
    "LoopTree",
    "Mark",
    "Member",
    "NewOrder",
    "Replay",
    "ScheduleLike",
    "ScheduleResult",
    "ScheduleTree",
    "Sequence",
    "SequentialLoop",
    "Step",
    "TreeLeaf",
    "Unordered",
    "Verdict",
    "Witness",
    "absorb",
    "apply_schedule",
    "apply_tree",
    "bands",
    "certificate_statement",
    "check",
    "components",
    "compute_dependences",
    "compute_schedule",
    "dependence_graph",
    "distribute",
    "find_band",
    "fixed_scop",
    "fusion_groups",
    "generate_loops",
    "judge",
    "leaves",
    "normalise",
    "original_tree",
    "outline",
    "prove_empty",
    "read_order",
    "read_tree",
    "reduced_dependences",
    "replay",
    "shared_depth",
    "substitute_forward",
    "transform",
    "tree_of_vectors",
    "tree_yaml",
]
