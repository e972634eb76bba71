"""Figures, tables and pictures of what a program costs (line 10)."""

from polyopt.report._pictures import RooflinePoint, Span, draw_roofline, draw_run, draw_timeline, save_roofline
from polyopt.report._program import program_json
from polyopt.report._record import PROPERTIES, RunReport, json_value
from polyopt.report._spaces import Arrow, PointSet, SpacePicture, draw_space, save_space
from polyopt.report._tables import bench_table, machine_table, machines_table, run_tables
from polyopt.report._work import Work, compute_compulsory_bytes, compute_work, count_points, operations_per_instance

__all__ = [
    "PROPERTIES",
    "Arrow",
    "PointSet",
    "RooflinePoint",
    "RunReport",
    "SpacePicture",
    "Span",
    "Work",
    "bench_table",
    "compute_compulsory_bytes",
    "compute_work",
    "count_points",
    "draw_roofline",
    "draw_run",
    "draw_space",
    "draw_timeline",
    "json_value",
    "machine_table",
    "machines_table",
    "operations_per_instance",
    "program_json",
    "run_tables",
    "save_roofline",
    "save_space",
]
