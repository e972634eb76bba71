"""The pass protocol, the state that passes hand on, and the text form of a pipeline (layer 3)."""

from polyopt.passes._protocol import Pass, Unit, run_passes
from polyopt.passes._text import parse_pass, parse_pipeline, pipeline_text

__all__ = ["Pass", "Unit", "parse_pass", "parse_pipeline", "pipeline_text", "run_passes"]
