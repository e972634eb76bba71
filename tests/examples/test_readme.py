"""The commands of the README do what it says."""

from __future__ import annotations

import shlex

import pytest

from tests.project.plant import run_python
from tools.link_tree import ROOT

COMMANDS = [
    line.strip().split("#")[0].strip()
    for line in (ROOT / "README.md").read_text("utf-8").splitlines()
    if line.startswith("    polyopt ")
]


@pytest.mark.parametrize("command", COMMANDS)
def test_command(command: str) -> None:
    words = [str(ROOT / w) if w.startswith("examples/") else w for w in shlex.split(command)[1:]]
    done = run_python("-m", "polyopt.cli", *words)
    assert done.returncode == 0, done.stderr
    assert done.stdout


def test_the_python_example() -> None:
    done = run_python(str(ROOT / "examples" / "gemm.py"))
    assert done.returncode == 0, done.stderr
    assert "equivalent: tested" in done.stdout
