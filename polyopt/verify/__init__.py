"""Checks of programs and values (layer 9): verdicts, and comparison with the reference."""

from polyopt.verify._compare import Comparison, compare_values
from polyopt.verify._verdicts import LEVELS, PropertyVerdict

__all__ = ["LEVELS", "Comparison", "PropertyVerdict", "compare_values"]
