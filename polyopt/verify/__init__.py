"""Checks of programs and values (layer 9): verdicts, level verifiers, comparison with the reference."""

from polyopt.verify._compare import Comparison, compare_values
from polyopt.verify._scop import scop_faults, verify_scop
from polyopt.verify._verdicts import LEVELS, PropertyVerdict

__all__ = ["LEVELS", "Comparison", "PropertyVerdict", "compare_values", "scop_faults", "verify_scop"]
