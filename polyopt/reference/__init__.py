"""What a program means: the slow interpreter in original order, a fast evaluator with the same results, input arrays.

Layer 3; knows neither dependences nor schedules, so that it can judge both.
"""

from polyopt.reference._algebra import Algebra, Float64Algebra, Value, apply_float64, apply_integer, reduce_array
from polyopt.reference._cells import Cells
from polyopt.reference._contract import contract
from polyopt.reference._evaluate import evaluate, run_program
from polyopt.reference._expect import expected_seconds, most_instances
from polyopt.reference._inputs import index_range, inputs
from polyopt.reference._interpret import interpret
from polyopt.reference._node import Node, build_node, promote
from polyopt.reference._scalar import Functions

__all__ = [
    "Algebra",
    "Cells",
    "Float64Algebra",
    "Functions",
    "Node",
    "Value",
    "apply_float64",
    "apply_integer",
    "build_node",
    "contract",
    "evaluate",
    "expected_seconds",
    "index_range",
    "inputs",
    "interpret",
    "most_instances",
    "promote",
    "reduce_array",
    "run_program",
]
