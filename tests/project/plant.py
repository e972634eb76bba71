"""Small repositories, laid out like this one, in which a test plants one fault."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tools.link_tree import ROOT

SOUND: Mapping[str, str] = {
    "polyopt/__init__.py": "",
    "polyopt/errors.py": "class PolyoptError(Exception):\n    pass\n",
    "polyopt/sets/__init__.py": "from polyopt.errors import PolyoptError\n\n__all__ = ['PolyoptError']\n",
    "schedule/__init__.py": "",
    "schedule/legality.py": "def is_legal(distance: int) -> bool:\n    return distance > 0\n",
    "tiling/__init__.py": "from polyopt.schedule.legality import is_legal\n\nLEGAL: bool = is_legal(1)\n",
}


def plant(root: Path, files: Mapping[str, str]) -> Path:
    """A sound repository at `root` with this one's configuration, and `files` (path -> text) on top."""
    for name, text in {**SOUND, **files}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    shutil.copy(ROOT / "pyproject.toml", root)
    return root


def run_python(*arguments: str, path: Path | None = None) -> subprocess.CompletedProcess[str]:
    """A new Python with `path`, then this repository, in front of its import path.

    It starts in a folder without packages, since the current folder would come even before `path`.
    """
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(str(folder) for folder in (path, ROOT) if folder)}
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=ROOT / "tests", env=environment, capture_output=True, text=True, check=False)


def run_tool(name: str, root: Path, path: Path | None = None) -> subprocess.CompletedProcess[str]:
    """`python -m tools.NAME root`, as `make test` starts it."""
    return run_python("-m", f"tools.{name}", str(root), path=path)
