"""Mapping -> Program, and text forms (layer 7)."""

from polyopt.backend._generate import emit_program, estimate_time_ns, general_kernels
from polyopt.backend._text import mapping_text, program_text, tree_text

__all__ = [
    "emit_program",
    "estimate_time_ns",
    "general_kernels",
    "mapping_text",
    "program_text",
    "tree_text",
]
