"""Mapping -> Program, and text forms (layer 7)."""

from polyopt.backend._generate import Generated, emit_program, estimate_time_ns, general_kernels, generate
from polyopt.backend._text import mapping_text, program_text, tree_text

__all__ = [
    "Generated",
    "emit_program",
    "estimate_time_ns",
    "general_kernels",
    "generate",
    "mapping_text",
    "program_text",
    "tree_text",
]
