"""The layer check accepts this repository and finds each kind of forbidden import."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.project.plant import plant, run_tool
from tools.check_layers import LINES, check_layers, read_imports
from tools.link_tree import ROOT

FORBIDDEN = {
    "upward": ("polyopt/sets/a.py", "import polyopt.schedule.legality", "not above it"),
    "upward from polyopt": ("polyopt/ir/a.py", "from polyopt import tiling", "not above it"),
    "upward, relative": ("polyopt/ir/a.py", "from ..tiling import LEGAL", "not above it"),
    "upward, relative to the package": ("schedule/a.py", "from .. import tiling", "not above it"),
    "upward in a function": ("schedule/a.py", "def f():\n    from polyopt.tiling import LEGAL", "not above it"),
    "upward by name": ("schedule/a.py", "import_module('polyopt.tiling')", "not above it"),
    "upward, relative by name": ("schedule/a.py", "importlib.import_module('..tiling', __name__)", "not above it"),
    "upward for types": ("schedule/a.py", "if TYPE_CHECKING:\n    import polyopt.tiling", "not above it"),
    "sideways": ("polyopt/frontend/a.py", "import polyopt.reference", "not above it"),
    "root too early": ("polyopt/__init__.py", "from polyopt.schedule import legality", "offer it lazily"),
    "root too early, relative": ("polyopt/__init__.py", "from . import schedule", "offer it lazily"),
    "simulator and cost model": ("simulator/a.py", "import polyopt.hwcost", "strangers"),
    "validator and generator": ("polyopt/verify/a.py", "from polyopt.backend import lower", "strangers"),
    "public face": ("polyopt/ir/a.py", "import polyopt", "as a whole"),
    "public name": ("polyopt/ir/a.py", "from polyopt import load", "no line in the table"),
    "unknown part": ("polyopt/helpers/a.py", "import polyopt.errors", "no line in the table"),
    "isl": ("schedule/a.py", "def f():\n    import islpy as isl", "only polyopt.sets"),
    "isl submodule": ("polyopt/ir/a.py", "from islpy._isl import Set", "only polyopt.sets"),
    "bare": ("schedule/a.py", "import tiling", "installed name"),
    "bare in tests": ("tests/a.py", "from schedule.legality import is_legal", "installed name"),
    "bare in examples": ("examples/a.py", "import hwcost.traffic", "installed name"),
}

ALLOWED = {
    "downward": ("tiling/a.py", "from polyopt.errors import PolyoptError\nimport polyopt.schedule.legality"),
    "its own part": ("schedule/a.py", "from .legality import is_legal\nfrom . import legality"),
    "isl in sets": ("polyopt/sets/a.py", "import islpy as isl"),
    "isl in tests": ("tests/a.py", "import islpy as isl\nimport polyopt as po\nfrom polyopt.tiling import LEGAL"),
    "types in the root": ("polyopt/__init__.py", "if TYPE_CHECKING:\n    from polyopt import tiling"),
    "version": ("polyopt/cli.py", "from polyopt import __version__"),
    "a word in a string": ("schedule/a.py", "TEXT = 'import polyopt.tiling'"),
}


def test_this_repository() -> None:
    number, complaints = check_layers(ROOT)
    assert not complaints
    assert number > 10


def test_each_part_stands_on_one_line() -> None:
    parts = [part for line in LINES for group in line for part in group]
    assert len(parts) == len(set(parts))


@pytest.mark.parametrize(("file", "text", "complaint"), FORBIDDEN.values(), ids=FORBIDDEN.keys())
def test_forbidden(tmp_path: Path, file: str, text: str, complaint: str) -> None:
    number, complaints = check_layers(plant(tmp_path, {file: text + "\n"}))
    assert number >= 6
    assert len(complaints) == 1, complaints
    assert complaints[0].startswith(f"{file}:")
    assert complaint in complaints[0]


@pytest.mark.parametrize(("file", "text"), ALLOWED.values(), ids=ALLOWED.keys())
def test_allowed(tmp_path: Path, file: str, text: str) -> None:
    assert check_layers(plant(tmp_path, {file: text + "\n"}))[1] == []


def test_exit_status(tmp_path: Path) -> None:
    assert run_tool("check_layers", plant(tmp_path, {})).returncode == 0
    refused = run_tool("check_layers", plant(tmp_path, {"schedule/a.py": "import polyopt.tiling\n"}))
    assert refused.returncode == 1
    assert refused.stdout.splitlines() == [
        "schedule/a.py:1: polyopt.schedule (line 4) may not import polyopt.tiling (line 6): not above it",
        "layers: 7 files, 1 wrong imports",
    ]


def test_relative_imports_are_resolved() -> None:
    text = "from . import a\nfrom .b import c\nfrom .. import d\nfrom ..e.f import g\n"
    in_module = [found.target for found in read_imports(text, "polyopt.ir.m", is_package=False)]
    assert in_module == ["polyopt.ir", "polyopt.ir.b", "polyopt.d", "polyopt.e.f"]
    in_package = [found.target for found in read_imports(text, "polyopt.ir.p", is_package=True)]
    assert in_package == ["polyopt.ir.p", "polyopt.ir.p.b", "polyopt.ir", "polyopt.ir.e.f"]
