"""Lay the sources out as they are installed: `build/tree/polyopt/` with `schedule`, `tiling`, ... below it.

Static tools do not follow the mapping of folders in pyproject.toml; in this tree of links they see every file under the
name it is imported by.  Usage: `python -m tools.link_tree [ROOT]`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

MAPPED = ("schedule", "tiling", "hwcost", "backend", "simulator")
"""Folders beside `polyopt/` that are installed below it."""

BESIDE = ("tests", "tools")
"""Folders checked together with the package."""

ROOT = Path(__file__).resolve().parent.parent


def make_link_tree(root: Path) -> Path:
    """Return `root/build/tree`, brought up to date: links only, so that an edit of a source is seen at once.

    Raises FileExistsError when a module of `polyopt/` has the name of a mapped folder.
    """
    tree = root / "build" / "tree"
    package = tree / "polyopt"
    links = {package / entry.name: entry for entry in (root / "polyopt").iterdir() if entry.name != "__pycache__"}
    for name in MAPPED:
        if package / name in links:
            raise FileExistsError(f"polyopt/{name} hides {name}/, which is installed as polyopt.{name}: rename it")
    links |= {package / name: root / name for name in MAPPED if (root / name).is_dir()}
    links |= {tree / name: root / name for name in BESIDE if (root / name).is_dir()}
    package.mkdir(parents=True, exist_ok=True)
    for old in [*tree.iterdir(), *package.iterdir()]:
        if old.is_symlink() and (old not in links or not old.exists()):
            old.unlink()
    for at, target in sorted(links.items()):
        if not at.is_symlink():
            at.symlink_to(os.path.relpath(target, at.parent), target_is_directory=target.is_dir())
    return tree


def python_files(folder: Path, suffixes: tuple[str, ...] = (".py",)) -> Iterator[Path]:
    """Every file below `folder` with one of `suffixes`, links followed, sorted by path."""
    for here, folders, files in os.walk(folder, followlinks=True):
        folders[:] = sorted(name for name in folders if name != "__pycache__")
        yield from (Path(here) / name for name in sorted(files) if name.endswith(suffixes))


def module_name(tree: Path, file: Path) -> str:
    """The dotted name under which `file` of `tree` is imported; a package has the name of its folder."""
    parts = file.relative_to(tree).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def main(arguments: list[str]) -> int:
    root = Path(arguments[0]).resolve() if arguments else ROOT
    tree = make_link_tree(root)
    print(f"link tree: {sum(1 for _ in python_files(tree))} Python files in {tree.relative_to(root)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
