"""The examples run as scripts, with small settings."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from tests.project.plant import run_python
from tools.link_tree import ROOT


def run(script: str, *options: str) -> str:
    done = run_python(str(ROOT / "examples" / script), *options)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_roofline(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    run("experiments/roofline.py", "--only", "softmax", "--only", "max-pool", "--out", str(tmp_path / "r"))
    with (tmp_path / "r.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [r["name"] for r in rows] == ["softmax", "max_pool"]
    assert all(r["ok"] == "True" for r in rows)
    assert (tmp_path / "r.png").read_bytes().startswith(b"\x89PNG")


def test_autotune_goes_on_where_it_was(tmp_path: Path) -> None:
    pytest.importorskip("optuna")
    options = ["--workload", "batched-matmul", "--store", str(tmp_path / "tune.db")]
    assert "[2/2]" in run("autotune.py", *options, "--trials", "2")
    out = run("autotune.py", *options, "--trials", "3")
    assert "2 trials found in" in out
    assert "[3/3]" in out
    assert "[2/3]" not in out
