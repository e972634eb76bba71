"""What a program means: the slow interpreter in original order, a fast evaluator with the same results, input arrays.

Layer 3; knows neither dependences nor schedules, so that it can judge both.
"""

from polyopt.reference._evaluate import evaluate
from polyopt.reference._inputs import inputs
from polyopt.reference._interpret import interpret

__all__ = ["evaluate", "inputs", "interpret"]
