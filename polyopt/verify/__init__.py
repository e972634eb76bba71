"""Checks of programs and values (layer 9): verdicts, comparison with the reference, error bounds."""

from polyopt.verify._certify import CERTIFIED, Certificate, certify, is_certificate_for
from polyopt.verify._compare import Comparison, compare_values
from polyopt.verify._exact import HasProgram, compare_exact
from polyopt.verify._loop_scan import LoopFault
from polyopt.verify._loops import VALIDATION_OPERATIONS, validate_loops
from polyopt.verify._rounding import error_bounds, values_and_bounds
from polyopt.verify._sampled import SAMPLES, bounds_that_say_something, is_useless, sampled_bounds
from polyopt.verify._verdicts import LEVELS, PropertyVerdict

__all__ = [
    "CERTIFIED",
    "LEVELS",
    "SAMPLES",
    "VALIDATION_OPERATIONS",
    "Certificate",
    "Comparison",
    "HasProgram",
    "LoopFault",
    "PropertyVerdict",
    "bounds_that_say_something",
    "certify",
    "compare_exact",
    "compare_values",
    "error_bounds",
    "is_certificate_for",
    "is_useless",
    "sampled_bounds",
    "validate_loops",
    "values_and_bounds",
]
