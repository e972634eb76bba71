"""Suites of workloads that are run and reported together (line 10)."""

from polyopt.bench._suite import SUITES, Workload, run_workload, select_workloads

__all__ = ["SUITES", "Workload", "run_workload", "select_workloads"]
