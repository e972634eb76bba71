"""What is installed: one namespace, whole, typed, and importable without the extras."""

from __future__ import annotations

import os
import shutil
import sys
import zipfile
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.project.plant import run_python
from tools.check_layers import read_imports
from tools.link_tree import MAPPED, ROOT, make_link_tree, module_name, python_files

CORE = ("click", "islpy", "ml_dtypes", "networkx", "numpy", "rich", "sympy", "yaml")
EXTRAS = ("torch", "matplotlib", "optuna", "hypothesis")
SOURCES = ("pyproject.toml", "setup.py", "README.md", "LICENSE")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel built from a copy of the sources, unpacked."""
    copy = tmp_path_factory.mktemp("sources")
    for name in ("polyopt", *MAPPED):
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in SOURCES:
        shutil.copy(ROOT / name, copy)
    out = copy / "dist"
    options = ["--no-deps", "--no-build-isolation", "--quiet", "--wheel-dir", str(out)]
    done = run_python("-m", "pip", "wheel", *options, str(copy))
    assert done.returncode == 0, done.stderr
    (file,) = out.iterdir()
    with zipfile.ZipFile(file) as archive:
        archive.extractall(out / "unpacked")
    return out / "unpacked"


def test_wheel_holds_every_file(wheel: Path) -> None:
    expected = set()
    tree = make_link_tree(ROOT)
    for here, folders, files in os.walk(tree / "polyopt", followlinks=True):
        folders[:] = [name for name in folders if name != "__pycache__"]
        expected |= {(Path(here) / name).relative_to(tree) for name in files}
    assert {path.relative_to(wheel) for path in (wheel / "polyopt").rglob("*") if path.is_file()} == expected
    assert {path.name.split("-")[0] for path in wheel.iterdir()} == {"polyopt"}


def test_wheel_imports(wheel: Path) -> None:
    """Every part is imported from the wheel itself."""
    parts = sorted(f"polyopt.{path.parent.name}" for path in (wheel / "polyopt").glob("*/__init__.py"))
    parts = [name for name in parts if name != "polyopt.plugins"]
    text = f"import importlib, polyopt\nfor n in {parts}: print(importlib.import_module(n).__file__)"
    done = run_python("-c", text, path=wheel)
    assert done.returncode == 0, done.stderr
    assert [line for line in done.stdout.splitlines() if not line.startswith(str(wheel))] == []


def test_typed(wheel: Path) -> None:
    assert (wheel / "polyopt" / "py.typed").exists()


def test_one_namespace() -> None:
    """No module of polyopt is imported under a bare name, whatever is imported."""
    names = [module_name(ROOT / "build/tree", file) for file in python_files(make_link_tree(ROOT) / "polyopt")]
    names = [name for name in names if not name.endswith("__main__")]
    if find_spec("torch") is None:
        names = [name for name in names if "torch" not in name]
    text = f"import importlib, sys\nfor n in {names}: importlib.import_module(n)\nprint(*sys.modules)"
    done = run_python("-c", text)
    assert done.returncode == 0, done.stderr
    loaded = set(done.stdout.split())
    assert loaded >= set(names)
    assert not loaded & set(MAPPED)


def test_extras_are_not_needed() -> None:
    """The command line starts where no extra is installed, and loads none where they are."""
    text = f"import sys\nfor n in {(*EXTRAS, 'transformers', 'scipy')}: sys.modules[n] = None\nimport polyopt.cli"
    done = run_python("-c", text)
    assert done.returncode == 0, done.stderr


def test_libraries_are_declared() -> None:
    """Whatever the package imports is the standard library, itself, or in pyproject.toml."""
    found = set()
    tree = make_link_tree(ROOT)
    for file in python_files(tree / "polyopt"):
        imports = read_imports(file.read_text("utf-8"), module_name(tree, file), is_package=file.name == "__init__.py")
        found |= {item.target.split(".")[0] for item in imports}
    assert found - sys.stdlib_module_names - {"polyopt"} <= {*CORE, *EXTRAS}
