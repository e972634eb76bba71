"""A real distribution that brings a pass: installed, found by name, its options read, its faults named."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.project.plant import run_python

EXAMPLE = Path(__file__).parent / "example_pass"
SCOP = """\
scop: twice
params: [N]
tensors:
  x: {shape: [N], dtype: float32, role: input}
  y: {shape: [N], dtype: float32, role: output}
statements:
  - name: S
    domain: "[i] : 0 <= i < N"
    order: "[i]"
    body: "y[i] = 1.0 * (x[i] + x[i]) * 1.0"
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder into which pip has installed a copy of the example."""
    copy, target = tmp_path_factory.mktemp("copy") / "example", tmp_path_factory.mktemp("site")
    shutil.copytree(EXAMPLE, copy)
    options = ["--quiet", "--no-deps", "--no-build-isolation", "--disable-pip-version-check", "--target", str(target)]
    done = run_python("-m", "pip", "install", *options, str(copy))
    assert done.returncode == 0, done.stderr
    (target / "twice.scop.yaml").write_text(SCOP, "utf-8")
    return target


def polyopt(installed: Path, *arguments: str) -> tuple[int, str, str]:
    done = run_python("-m", "polyopt.cli", *arguments, path=installed)
    return done.returncode, done.stdout, done.stderr


def test_used_by_name_in_a_pipeline(installed: Path) -> None:
    file = str(installed / "twice.scop.yaml")
    status, out, err = polyopt(installed, "compile", file, "--passes", "drop-ones,normalise,deps", "--emit", "scop")
    assert status == 0, err
    assert 'body: "y[i] = x[i] + x[i]"' in out
    assert "remark[drop-ones]: multiplications by one removed in S" in err


def test_options(installed: Path) -> None:
    file = str(installed / "twice.scop.yaml")
    passes = "drop-ones{quiet=true},fix-sizes,normalise,deps,schedule,absorb,map,program"
    status, _, err = polyopt(installed, "run", file, "--at", "N=100", "--passes", passes, "--verify-each")
    assert (status, err) == (0, "")
    status, _, err = polyopt(installed, "run", file, "--at", "N=100", "--passes", "drop-ones{silent=true}")
    assert status == 2
    assert "pass drop-ones has no option 'silent'" in err


def test_listed_among_the_known_passes(installed: Path) -> None:
    status, _, err = polyopt(installed, "compile", str(installed / "twice.scop.yaml"), "--passes", "drop-one")
    assert status == 2
    assert "unknown pass 'drop-one'; did you mean 'drop-ones'?" in err


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("drop-ones =", "deps =", "'deps' of polyopt.passes is defined twice: by polyopt"),
        (":DropOnes", ":DropTwos", "from the distribution polyopt-example-pass, does not load"),
    ],
)
def test_faults_name_the_distribution(installed: Path, tmp_path: Path, old: str, new: str, message: str) -> None:
    shutil.copytree(installed, tmp_path / "site")
    (points,) = (tmp_path / "site").glob("*.dist-info/entry_points.txt")
    points.write_text(points.read_text("utf-8").replace(old, new), "utf-8")
    file = str(installed / "twice.scop.yaml")
    status, out, err = polyopt(tmp_path / "site", "compile", file, "--passes", "drop-ones,deps")
    assert (status, out) == (2, "")
    assert message in err
