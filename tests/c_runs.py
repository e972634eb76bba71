"""Running emitted C: compile it with the system's compiler, call it on arrays."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from polyopt.ir import Scop

__all__ = ["FLAGS", "run_c"]

Array = npt.NDArray[Any]

FLAGS = ("-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-O1", "-shared", "-fPIC")


def compiler() -> str:
    """The C compiler; without one the test is skipped."""
    found = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
    if found is None:
        pytest.skip("no C compiler on this machine (looked for cc, gcc and clang)")
    return found


def run_c(
    text: str, scop: Scop, sizes: Mapping[str, int], arrays: Mapping[str, Array], folder: Path, *, function: str = ""
) -> dict[str, Array]:
    """Outputs and inouts after one call; outputs begin as zeros, `arrays` stay as they are."""
    library = folder / f"program{zlib.crc32(text.encode())}.so"
    if not library.exists():
        source = library.with_suffix(".c")
        source.write_text(text, "utf-8")
        command = [compiler(), *FLAGS, "-o", str(library), str(source), "-lm"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    held = {t.name: _array(t.name, scop, sizes, arrays) for t in scop.tensors if t.role != "temp"}
    call = getattr(ctypes.CDLL(str(library)), function or scop.name)
    call.restype = ctypes.c_int
    status = call(
        *(ctypes.c_int64(sizes[p]) for p in scop.params), *(ctypes.c_void_p(a.ctypes.data) for a in held.values())
    )
    assert status == 0
    return {t.name: held[t.name] for t in scop.with_role("output", "inout")}


def _array(name: str, scop: Scop, sizes: Mapping[str, int], arrays: Mapping[str, Array]) -> Array:
    tensor = scop.tensor(name)
    if name in arrays:
        return np.array(arrays[name], tensor.element.numpy, order="C")
    return np.zeros(tensor.sizes(sizes), tensor.element.numpy)
