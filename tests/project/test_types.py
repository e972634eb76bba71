"""The type check reads every file, those of mapped folders too, and says so when mypy passes one over."""

from __future__ import annotations

from pathlib import Path

from tests.project.plant import SOUND, plant
from tools.check_types import run_mypy


def test_sound(tmp_path: Path) -> None:
    status, output = run_mypy(plant(tmp_path, {}))
    assert status == 0, output
    assert f"{len(SOUND)} source files" in output


def test_faults(tmp_path: Path) -> None:
    """One run over all faults: each costs a start of mypy."""
    faults = {
        "schedule/wrong.py": "VALUE: int = 'text'\n",
        "tiling/untyped.py": "def f(x):\n    return x\n",
        "tiling/across.py": "from polyopt.schedule.legality import is_legal\n\nis_legal('far')\n",
        "tiling/missing.py": "import no_such_library\n",
        "tiling/newer.py": "from typing import Self\n\nWHO = Self\n",
        "tests/unit/test_a.py": "def test_a():\n    assert True\n",
    }
    status, output = run_mypy(plant(tmp_path, faults))
    assert status == 1
    found = {(line.split(":")[0], line.rsplit(" ", 1)[-1]) for line in output.splitlines() if ": error: " in line}
    assert found == {
        ("polyopt/schedule/wrong.py", "[assignment]"),
        ("polyopt/tiling/untyped.py", "[no-untyped-def]"),
        ("polyopt/tiling/across.py", "[arg-type]"),
        ("polyopt/tiling/missing.py", "[import-not-found]"),
        ("polyopt/tiling/newer.py", "[attr-defined]"),
        ("tests/unit/test_a.py", "[no-untyped-def]"),
    }


def test_file_passed_over(tmp_path: Path) -> None:
    """mypy reads a stub instead of the module beside it."""
    hidden = {"schedule/a.py": "VALUE: int = 'text'\n", "schedule/a.pyi": "VALUE: int\n"}
    status, output = run_mypy(plant(tmp_path, hidden))
    assert status == 1
    assert f"mypy checked {len(SOUND) + 1} source files, {len(SOUND) + 2} exist" in output
