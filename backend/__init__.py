"""Mapping -> Program, and text forms (layer 7)."""

from polyopt.backend._c import emit_c
from polyopt.backend._generate import emit_program, estimate_time_ns, general_kernels
from polyopt.backend._text import mapping_text, program_text, tree_text

__all__ = [
    "emit_c",
    "emit_program",
    "estimate_time_ns",
    "general_kernels",
    "mapping_text",
    "program_text",
    "tree_text",
]
