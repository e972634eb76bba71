"""Runs a Program on a Machine: values in simulated memories, modelled time, races (layer 8)."""

from polyopt.simulator._checks import check_program
from polyopt.simulator._result import Access, Event, PathStep, Race, SimResult
from polyopt.simulator._simulate import simulate
from polyopt.simulator._size import expected_instructions
from polyopt.simulator._trace import chrome_trace

__all__ = [
    "Access",
    "Event",
    "PathStep",
    "Race",
    "SimResult",
    "check_program",
    "chrome_trace",
    "expected_instructions",
    "simulate",
]
