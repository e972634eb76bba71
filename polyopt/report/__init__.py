"""Figures, tables and pictures of what a program costs (line 10)."""

from polyopt.report._work import Work, compute_compulsory_bytes, compute_work, count_points, operations_per_instance

__all__ = ["Work", "compute_compulsory_bytes", "compute_work", "count_points", "operations_per_instance"]
