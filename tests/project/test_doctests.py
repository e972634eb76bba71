"""Doctests run on the modules that polyopt's names import, not on copies."""

from __future__ import annotations

from pathlib import Path

from tests.project.plant import plant, run_tool
from tools.link_tree import make_link_tree

EXAMPLE = 'def half(n: int) -> int:\n    """\n    >>> half(4)\n    {}\n    """\n    return n // 2\n'


def test_examples_hold(tmp_path: Path) -> None:
    tree = make_link_tree(plant(tmp_path, {"schedule/half.py": EXAMPLE.format(2)}))
    done = run_tool("run_doctests", tmp_path, path=tree)
    assert (done.returncode, done.stdout) == (0, "doctests: 1 examples in 7 modules, 0 wrong\n"), done.stderr


def test_wrong_example(tmp_path: Path) -> None:
    tree = make_link_tree(plant(tmp_path, {"schedule/half.py": EXAMPLE.format(3)}))
    done = run_tool("run_doctests", tmp_path, path=tree)
    assert done.returncode == 1
    assert "1 wrong" in done.stdout


def test_copy_is_refused(tmp_path: Path) -> None:
    done = run_tool("run_doctests", plant(tmp_path, {}))
    assert done.returncode == 1
    assert "ImportError: polyopt is imported from" in done.stderr
