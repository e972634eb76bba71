"""The space of mappings and the search in it (layer 6)."""

from polyopt.tiling._limits import TileLimits, parse_limits
from polyopt.tiling._plan import DEFAULT_SIZE, plan_mapping
from polyopt.tiling._specs import copy_specs, fill_spec, is_contraction, masking_spec, moved_operand, transpose_spec

__all__ = [
    "DEFAULT_SIZE",
    "TileLimits",
    "copy_specs",
    "fill_spec",
    "is_contraction",
    "masking_spec",
    "moved_operand",
    "parse_limits",
    "plan_mapping",
    "transpose_spec",
]
