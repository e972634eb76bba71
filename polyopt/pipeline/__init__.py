"""From a program to results: the default list of passes, compilation, runs and their reports (line 10)."""

from polyopt.pipeline._changes import with_dtype, with_reassociation
from polyopt.pipeline._sizes import check_sizes, complete_sizes

__all__ = ["check_sizes", "complete_sizes", "with_dtype", "with_reassociation"]
