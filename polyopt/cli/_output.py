"""Where results and diagnostics go: results to stdout, everything else to stderr, files only when all went well."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Protocol

from rich.console import Console, RenderableType

from polyopt.errors import Diagnostic, InputError
from polyopt.report import json_value

__all__ = ["Progress", "print_json", "print_remarks", "print_rich", "progress_bar", "write_file", "writing"]

WIDTH_IN_FILES = 120


def print_rich(*things: RenderableType) -> None:
    """Tables on stdout: as wide as the terminal, 120 columns in a file."""
    console = Console(width=None if sys.stdout.isatty() else WIDTH_IN_FILES)
    console.print(*things)


def print_json(value: Mapping[str, object]) -> None:
    """One JSON object in one line on stdout."""
    print(json.dumps(json_value(value), allow_nan=False), flush=True)


def print_remarks(remarks: Iterable[Diagnostic]) -> None:
    """Diagnostics on stderr, each once."""
    for remark in dict.fromkeys(remarks):
        print(remark, file=sys.stderr)


@contextlib.contextmanager
def writing(path: Path) -> Iterator[Path]:
    """A temporary name with the same suffix; the file moves to `path` only when the body succeeds."""
    folder = Path(tempfile.mkdtemp(prefix=".polyopt-", dir=path.parent)) if os.access(path.parent, os.W_OK) else None
    if folder is None:
        raise InputError(
            f"cannot write {path}: no permission in {path.parent}",
            help="choose a folder that you may write to",
            id="file",
        )
    try:
        temporary = folder / path.name
        yield temporary
        os.replace(temporary, path)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}", help="choose another file", id="file") from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def write_file(path: Path, text: str) -> None:
    """Write a text file whole or not at all."""
    with writing(path) as temporary:
        temporary.write_text(text, "utf-8")


class Progress(Protocol):
    """What long work says about itself."""

    def start(self, title: str, steps: int | None = None) -> None: ...

    def step(self) -> None: ...


class _Silent:
    def start(self, title: str, steps: int | None = None) -> None:
        """Nothing to show."""

    def step(self) -> None:
        """Nothing to show."""


@contextlib.contextmanager
def progress_bar() -> Iterator[Progress]:
    """A bar on stderr while it is a terminal, nothing otherwise."""
    if not sys.stderr.isatty():
        yield _Silent()
        return
    from rich.progress import BarColumn, MofNCompleteColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    text = TextColumn("{task.description}")
    columns = (SpinnerColumn(), text, BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        yield _Bar(bar)


class _Bar:
    def __init__(self, bar: object) -> None:
        from rich.progress import Progress as Bar

        assert isinstance(bar, Bar)
        self._bar = bar
        self._task = bar.add_task("")

    def start(self, title: str, steps: int | None = None) -> None:
        """Say what is being done; `steps` begins a new count."""
        if steps is None:
            self._bar.update(self._task, description=title)
        else:
            self._bar.reset(self._task, description=title, total=steps)

    def step(self) -> None:
        """One step is done."""
        self._bar.advance(self._task)
