"""Run the examples in the docstrings of every module of polyopt, imported as the installed package.

Each module is imported once, under its installed name: a second copy would have other classes than the first.
Usage: `python -m tools.run_doctests [ROOT]`; exit status 0 when every example holds.
"""

from __future__ import annotations

import doctest
import importlib
import sys
from pathlib import Path

from tools.link_tree import ROOT, make_link_tree, module_name, python_files


def run_doctests(root: Path) -> tuple[int, int, int]:
    """Numbers of modules, of examples and of failed examples; what failed is printed.

    Raises ImportError when a module of the tree is not the one that its name imports.
    """
    tree = make_link_tree(root)
    modules = attempted = failed = 0
    for file in python_files(tree / "polyopt"):
        if file.stem == "__main__":
            continue
        name = module_name(tree, file)
        module = importlib.import_module(name)
        if module.__file__ is None or Path(module.__file__).resolve() != file.resolve():
            raise ImportError(f"{name} is imported from {module.__file__}, expected {file.resolve()}")
        result = doctest.testmod(module)
        modules, attempted, failed = modules + 1, attempted + result.attempted, failed + result.failed
    return modules, attempted, failed


def main(arguments: list[str]) -> int:
    modules, attempted, failed = run_doctests(Path(arguments[0]).resolve() if arguments else ROOT)
    print(f"doctests: {attempted} examples in {modules} modules, {failed} wrong")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
