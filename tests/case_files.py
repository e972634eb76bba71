"""The programs with known answers in `tests/cases/`: a program, schedules, and what must be said about each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

import yaml

from polyopt.frontend import read_scop
from polyopt.ir import Scop

__all__ = ["CASES", "Case", "Check", "read_case"]

CASES = tuple(sorted((Path(__file__).parent / "cases").glob("*.case.yaml")))


@dataclass(frozen=True, slots=True)
class Check:
    """One schedule of a case: the text, the sizes, the parallel dimensions, and 'legal', 'illegal' or 'unknown'."""

    what: str
    schedule: str
    expect: str
    at: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    parallel: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Case:
    """A program and its checks."""

    scop: Scop
    checks: tuple[Check, ...]


def read_case(path: Path) -> Case:
    """Read `{scop: ..., checks: [...]}`."""
    data = yaml.safe_load(path.read_text(encoding="utf-8"))
    scop = read_scop(yaml.safe_dump(data["scop"], sort_keys=False, width=10_000))
    checks = (
        Check(c["what"], c["schedule"], c["expect"], c.get("at", {}), tuple(c.get("parallel", ())))
        for c in data["checks"]
    )
    return Case(scop, tuple(checks))
