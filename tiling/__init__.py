"""The space of mappings and the search in it (layer 6)."""

from polyopt.tiling._plan import plan_mapping

__all__ = ["plan_mapping"]
