"""Machine descriptions that ship with polyopt; each entry point is a function that returns the file's path."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

__all__ = ["trn2"]


def trn2() -> Path:
    """AWS Trainium2, one NeuronCore-v3."""
    return Path(str(resources.files(__name__).joinpath("trn2.yaml")))
