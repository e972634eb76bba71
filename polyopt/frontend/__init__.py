"""Readers: SCoP files, Python functions, and every kind of file that an entry point claims (layer 3)."""

from polyopt.frontend._annotations import ANNOTATIONS, ElementType, Tensor, TensorType
from polyopt.frontend._kernel import Kernel, from_function, from_source, kernel
from polyopt.frontend._load import FRONTENDS, load
from polyopt.frontend._vector import read_vector
from polyopt.frontend._writer import assignment_text, expression_text, write_scop
from polyopt.frontend._yaml import read_scop

__all__ = [
    "ANNOTATIONS",
    "FRONTENDS",
    "ElementType",
    "Kernel",
    "Tensor",
    "TensorType",
    "assignment_text",
    "expression_text",
    "from_function",
    "from_source",
    "kernel",
    "load",
    "read_scop",
    "read_vector",
    "write_scop",
]
