"""`polyopt explain` and `polyopt check --plot` on the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from polyopt.cli import invoke
from tests.unit.explain._programs import HEAT


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "heat.scop.yaml").write_text(HEAT, "utf-8")
    return tmp_path


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Any:
    """`call(arguments...)` gives exit status, stdout and stderr."""

    def run(*arguments: str) -> tuple[int, str, str]:
        status = invoke(list(arguments))
        return status, *capsys.readouterr()

    return run


def test_text(call: Any) -> None:
    status, out, err = call("explain", "heat.scop.yaml")
    assert (status, err) == (0, "")
    assert out.startswith("heat on trn2\n\norder: 0 of 1 done\n")
    assert max(map(len, out.splitlines())) <= 80
    for word in ("tiling: 0 of 1 done", "no   band (t, i) of S", "yes  loop i of S", "copy: "):
        assert word in out


def test_json(call: Any) -> None:
    status, out, err = call("explain", "heat.scop.yaml", "--at", "T=4,N=20", "--json")
    assert (status, err, out.count("\n")) == (0, "", 1)
    answer = json.loads(out)
    assert (answer["scop"], answer["target"], answer["params"]) == ("heat", "trn2", {"T": 4, "N": 20})
    (band,) = (f for f in answer["findings"] if f["kind"] == "tiling")
    assert list(band) == ["kind", "subject", "done", "reason", "allowed", "witness", "loops", "order"]
    assert band["witness"]["source"] == {"statement": "S", "at": {"t": 0, "i": 2}}
    assert band["loops"] == {"S": ["t", "i"]}


def test_pictures(call: Any, folder: Path) -> None:
    status, out, _ = call("explain", "heat.scop.yaml", "--plot", "pictures")
    made = sorted(p.name for p in (folder / "pictures").iterdir())
    assert status == 0
    assert made == ["01-tiling-band-t-i-of-S.png", "02-parallel-loop-t-of-S.png"]
    assert all(f"- picture: pictures/{name}" in out for name in made)
    status, out, _ = call("explain", "heat.scop.yaml", "--plot", "pictures", "--json")
    named = [f["picture"] for f in json.loads(out)["findings"] if "picture" in f]
    assert (status, named) == (0, [f"pictures/{name}" for name in made])


@pytest.mark.parametrize(
    ("arguments", "message", "usage"),
    [
        (("no.scop.yaml",), "no.scop.yaml does not exist", "check the path"),
        (("heat.scop.yaml", "--at", "Q=3"), "Q", ""),
        (("heat.scop.yaml", "--target", "trn"), "trn", "trn2"),
        (("heat.scop.yaml", "--plot", "heat.scop.yaml"), "it is a file", "give --plot the name of a folder"),
        (("heat.scop.yaml", "--plot", "a/b"), "it lies in a, which is no folder", "give --plot the name of a folder"),
        (("heat.scop.yaml", "--passes", "deps"), "a pass needs 'schedule'", "put the pass that makes it in front"),
    ],
)
def test_bad_input(call: Any, arguments: tuple[str, ...], message: str, usage: str) -> None:
    status, out, err = call("explain", *arguments)
    assert (status, out) == (2, "")
    assert message in err and usage in err


def test_check_draws_what_is_violated(call: Any, folder: Path) -> None:
    for name, magic in (("a.png", b"\x89PNG"), ("a.svg", b"<?xml")):
        status, out, err = call("check", "heat.scop.yaml", "--schedule", "{ S[t,i] -> [i, t] }", "--plot", name)
        assert (status, err) == (1, "")
        assert out.startswith("illegal (proved)")
        assert (folder / name).read_bytes().startswith(magic)


def test_check_draws_nothing_of_a_legal_order(call: Any, folder: Path) -> None:
    status, out, err = call("check", "heat.scop.yaml", "--schedule", "{ S[t,i] -> [t, i] }", "--plot", "a.png")
    assert status == 0 and out.startswith("legal")
    assert err == "remark[plot]: nothing to draw: the schedule is legal, no dependence is violated\n"
    assert not (folder / "a.png").exists()


def test_check_refuses_other_formats(call: Any, folder: Path) -> None:
    status, _, err = call("check", "heat.scop.yaml", "--schedule", "{ S[t,i] -> [i, t] }", "--plot", "a.xyz")
    assert status == 2 and "cannot draw a picture 'a.xyz'" in err
    assert not (folder / "a.xyz").exists()
