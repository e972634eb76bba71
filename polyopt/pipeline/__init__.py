"""From a program to results: the default list of passes, compilation, runs and their reports (line 10)."""

from polyopt.pipeline._builtin import PASSES, Kernels, Map, default_pipeline, find_pass
from polyopt.pipeline._changes import with_dtype, with_reassociation
from polyopt.pipeline._compile import compile, compile_loops
from polyopt.pipeline._compiled import Arguments, Compiled
from polyopt.pipeline._emit import EMITTED, check_emit
from polyopt.pipeline._outcome import Outcome, Request, run_request
from polyopt.pipeline._reschedule import Reschedule
from polyopt.pipeline._schedule import LoopSchedule
from polyopt.pipeline._sizes import check_sizes, complete_sizes

__all__ = [
    "EMITTED",
    "PASSES",
    "Arguments",
    "Compiled",
    "Kernels",
    "LoopSchedule",
    "Map",
    "Outcome",
    "Request",
    "Reschedule",
    "check_emit",
    "check_sizes",
    "compile",
    "compile_loops",
    "complete_sizes",
    "default_pipeline",
    "find_pass",
    "run_request",
    "with_dtype",
    "with_reassociation",
]
