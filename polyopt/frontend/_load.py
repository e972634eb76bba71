"""One way in for every kind of source."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from pathlib import Path
from types import FunctionType
from typing import cast

from polyopt.errors import InputError, PluginError, PolyoptError
from polyopt.frontend._kernel import Kernel, from_function
from polyopt.ir import Scop, verify_scop
from polyopt.registry import Registry

__all__ = ["FRONTENDS", "load"]

FRONTENDS = Registry(
    "polyopt.frontends",
    {"scop.yaml": "polyopt.frontend._yaml:read_file", "py": "polyopt.frontend._kernel:read_file"},
)
"""Ending of a file's name, without the dot -> reader.

A reader is called as `reader(path, function)` with a `Path` and the name behind the colon (None when there is none).
It returns a Scop or raises InputError.  The longest ending that fits is taken.
"""

Reader = Callable[[Path, "str | None"], Scop]

MODULE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")


def load(source: str | Path) -> Scop:
    """The Scop of `file.scop.yaml`, `file.py:function` (parsed), `module:function` (imported), or a claimed file.

    Importing runs the module.  Raises InputError when there is no such file, module or function or it is no program,
    and PluginError when the frontend that claims the file fails to load.
    """
    text = str(source)
    left, colon, name = text.rpartition(":")
    if _reader_name(text):
        return _read(Path(text), None)
    if colon and _reader_name(left):
        return _read(Path(left), name)
    if colon and MODULE.fullmatch(left) and name.isidentifier():
        return _import(left, name)
    kinds = ", ".join(f"FILE.{n}" for n in FRONTENDS.names())
    raise InputError(
        f"cannot tell what kind of source {text!r} is",
        id="source",
        help=f"known: {kinds}, FILE.py:FUNCTION, MODULE:FUNCTION; a SCoP file ends in .scop.yaml",
    )


def _reader_name(path: str) -> str:
    """The longest claimed ending of the path, or an empty text."""
    found = [n for n in FRONTENDS.names() if path.endswith(f".{n}")]
    return max(found, key=len, default="")


def _read(path: Path, function: str | None) -> Scop:
    if not path.is_file():
        what = "is no file" if path.exists() else "does not exist"
        raise InputError(f"{path} {what}", id="no-file", help="check the path")
    name = _reader_name(str(path))
    reader = cast(Reader, FRONTENDS.load(name))
    scop = reader(path, function)
    if not isinstance(scop, Scop):
        raise PluginError(
            f"the frontend {name!r} of {FRONTENDS.distribution(name)} returned {type(scop).__name__}, not a Scop",
            help="return a polyopt.ir.Scop from the plug-in",
        )
    verify_scop(scop)
    return scop


def _import(module: str, name: str) -> Scop:
    try:
        found = getattr(importlib.import_module(module), name, None)
    except PolyoptError:
        raise
    except Exception as error:
        raise InputError(
            f"importing {module} fails: {type(error).__name__}: {error}",
            id="import",
            help="check the module's name, that it is installed or on PYTHONPATH, and that it imports by itself",
        ) from error
    if isinstance(found, Scop):
        verify_scop(found)
        return found
    if isinstance(found, (Kernel, FunctionType)):
        return from_function(found)
    what = "nothing" if found is None else f"a {type(found).__name__}"
    raise InputError(
        f"{name} of the module {module} is {what}, not a kernel", id="no-function", help="name a function or a Scop"
    )
