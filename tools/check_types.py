"""Run `mypy --strict` on the link tree and make sure that it read every file there.

mypy passes over what it does not find and still reports success, so the number of files it says it checked is compared
with the number of files that exist; stubs count too, since mypy reads a stub instead of the module beside it.
Usage: `python -m tools.check_types [ROOT]`; exit status 0 when all is well.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tools.link_tree import BESIDE, ROOT, make_link_tree, python_files

CHECKED = re.compile(r"(?:in|checked) (\d+) source files?")


def run_mypy(root: Path) -> tuple[int, str]:
    """Exit status and output of mypy over the link tree of `root`; a file passed over makes the status 1."""
    tree = make_link_tree(root)
    folders = [name for name in ("polyopt", *BESIDE) if any(python_files(tree / name))]
    config = ["--config-file", str(root / "pyproject.toml"), "--cache-dir", str(root / ".mypy_cache")]
    command = [sys.executable, "-m", "mypy", "--strict", *config, *folders]
    done = subprocess.run(command, cwd=tree, capture_output=True, text=True, check=False)
    output = done.stdout + done.stderr
    expected = sum(1 for name in folders for _ in python_files(tree / name, (".py", ".pyi")))
    checked = CHECKED.search(output)
    if checked is None:
        return max(1, done.returncode), output
    if int(checked[1]) != expected:
        return 1, f"{output}error: mypy checked {checked[1]} source files, {expected} exist\n"
    return done.returncode, output


def main(arguments: list[str]) -> int:
    status, output = run_mypy(Path(arguments[0]).resolve() if arguments else ROOT)
    print(output, end="")
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
