"""The link tree shows the sources as they are installed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.project.plant import SOUND, plant
from tools.link_tree import make_link_tree, module_name, python_files


def test_names(tmp_path: Path) -> None:
    tree = make_link_tree(plant(tmp_path, {"polyopt/__pycache__/a.py": "", "schedule/__pycache__/a.py": ""}))
    names = [module_name(tree, file) for file in python_files(tree)]
    assert names == [
        "polyopt",
        "polyopt.errors",
        "polyopt.schedule",
        "polyopt.schedule.legality",
        "polyopt.sets",
        "polyopt.tiling",
    ]
    assert len(names) == len(SOUND)


def test_is_brought_up_to_date(tmp_path: Path) -> None:
    root = plant(tmp_path, {"polyopt/old.py": ""})
    make_link_tree(root)
    (root / "polyopt" / "old.py").unlink()
    (root / "polyopt" / "new.py").write_text("")
    names = {module_name(root / "build/tree", file) for file in python_files(make_link_tree(root))}
    assert "polyopt.new" in names
    assert "polyopt.old" not in names


def test_hidden_folder(tmp_path: Path) -> None:
    with pytest.raises(FileExistsError, match=r"polyopt/schedule hides schedule/"):
        make_link_tree(plant(tmp_path, {"polyopt/schedule/__init__.py": ""}))
