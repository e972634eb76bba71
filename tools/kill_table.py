"""Seeded faults against the tests: which of them does the suite notice?  `python -m tools.kill_table [PART ...]`.

Each mutant of `tools.mutants` is planted in a copy of the sources, laid out as installed, and the tests of the judge,
the transformations and the certificates run there until one fails.  Exit status 0 when every mutant is killed, 2 when
the tests fail without any.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.progress import track
from rich.table import Table

from tools.link_tree import BESIDE, MAPPED, ROOT
from tools.mutants import MUTANTS, Mutant

__all__ = ["Outcome", "copy_sources", "main", "try_mutant"]

TESTS = (
    "tests/unit/schedule",
    "tests/unit/sets",
    "tests/unit/verify/test_certificate.py",
    "tests/property/test_legality.py",
    "tests/property/test_transformations.py",
    "tests/property/test_certificates.py",
    "tests/property/test_schedules_run.py",
)
"""What is run, in this order, until a test fails."""

TIMEOUT_S = 300
"""A mutant that makes a test run for ever is noticed too."""

KILLED, SURVIVED, TIMED_OUT = "killed", "SURVIVED", "killed (time)"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a mutant, the first test that failed, and how long that took."""

    mutant: Mutant
    fate: str
    by: str
    took_s: float


def copy_sources(to: Path) -> Path:
    """A copy of the package, the tests and the tools at `to`, laid out as installed."""
    ignored = shutil.ignore_patterns("__pycache__", ".hypothesis")
    shutil.copytree(ROOT / "polyopt", to / "polyopt", ignore=ignored)
    for name in MAPPED:
        shutil.copytree(ROOT / name, to / "polyopt" / name, ignore=ignored)
    for name in (*BESIDE, "examples", "benchmarks"):
        shutil.copytree(ROOT / name, to / name, ignore=ignored)
    shutil.copy(ROOT / "pyproject.toml", to)
    return to


def try_mutant(mutant: Mutant, tree: Path, tests: Sequence[str] = TESTS) -> Outcome:
    """Plant a fault in a copy of the sources, run the tests and take it out again.

    Raises ValueError when the text to change is not there.
    """
    first, *rest = mutant.path.split("/")
    path = tree / "polyopt" / mutant.path if first in MAPPED else tree / first / "/".join(rest)
    sound = path.read_text("utf-8")
    if mutant.old not in sound:
        raise ValueError(f"{mutant.path} does not hold {mutant.old!r}: bring the mutant {mutant.name!r} up to date")
    begin = time.perf_counter()
    path.write_text(sound.replace(mutant.old, mutant.new, 1), "utf-8")
    try:
        fate, by = _run(tree, tests)
    finally:
        path.write_text(sound, "utf-8")
    return Outcome(mutant, fate, by, time.perf_counter() - begin)


def _run(tree: Path, tests: Sequence[str]) -> tuple[str, str]:
    command = [sys.executable, "-B", "-m", "pytest", "-q", "-x", "-m", "not slow", "-p", "no:cacheprovider", *tests]
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(
            command, cwd=tree, env=environment, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired:
        return TIMED_OUT, f"more than {TIMEOUT_S} s"
    if done.returncode == 0:
        return SURVIVED, ""
    lines = done.stdout.splitlines()
    return KILLED, next((x.split(" - ")[0] for x in lines if x.startswith(("FAILED", "ERROR"))), "nothing could be run")


def main(parts: Sequence[str]) -> int:
    """Print the table; `parts`: only mutants whose part or name contains one of these texts."""
    chosen = [m for m in MUTANTS if not parts or any(p in m.part or p in m.name for p in parts)]
    table = Table("part", "fault", "fate", "by", "s")
    outcomes: list[Outcome] = []
    with tempfile.TemporaryDirectory() as folder:
        tree = copy_sources(Path(folder) / "tree")
        fate, by = _run(tree, TESTS)
        if fate != SURVIVED:
            print(f"the tests fail without any fault: {by}", file=sys.stderr)
            return 2
        for mutant in track(chosen, "seeded faults", console=Console(stderr=True), transient=True):
            outcomes.append(try_mutant(mutant, tree))
            o = outcomes[-1]
            table.add_row(o.mutant.part, o.mutant.name, o.fate, o.by.removeprefix("FAILED "), f"{o.took_s:.0f}")
    console = Console(width=None if sys.stdout.isatty() else 200)
    console.print(table)
    left = [o for o in outcomes if o.fate == SURVIVED]
    console.print(f"{len(outcomes) - len(left)} of {len(outcomes)} faults noticed")
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
