"""Every error that users meet says what to do next, by a help line or by the nearest known name."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from tools.link_tree import ROOT

SOURCES = ("polyopt", "schedule", "tiling", "hwcost", "backend", "simulator")
FOR_USERS = {
    "BudgetError",
    "InputError",
    "LegalityError",
    "MachineFileError",
    "NotAffineError",
    "PluginError",
    "ProgramError",
    "TileSizeError",
}


def raised(file: Path) -> Iterator[ast.Call]:
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in FOR_USERS:
            yield node


def helps(call: ast.Call) -> bool:
    text = ast.unparse(call)
    return any(k.arg in ("help", None) for k in call.keywords) or "nearest(" in text or "expected" in text


def test_every_error_helps() -> None:
    files = [f for folder in SOURCES for f in sorted((ROOT / folder).rglob("*.py"))]
    calls = [(f, c) for f in files for c in raised(f)]
    assert len(calls) > 200
    assert [f"{f.relative_to(ROOT)}:{c.lineno}: {ast.unparse(c)}" for f, c in calls if not helps(c)] == []
