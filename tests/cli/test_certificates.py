"""`check --certificate` and `verify-certificate`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from polyopt.cli._main import invoke
from tools.link_tree import ROOT

HEAT = str(ROOT / "examples" / "heat.scop.yaml")
SKEWED = "{ S[t,i] -> [t, t+i] }"


@pytest.fixture
def certificate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    path = tmp_path / "heat.json"
    assert invoke(["check", HEAT, "--schedule", SKEWED, "--certificate", str(path), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["verdict"], answer["level"]) == ("legal", "certified")
    return path


def test_a_certificate_is_written_and_verified(certificate: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["verify-certificate", str(certificate)]) == 0
    assert capsys.readouterr().out.startswith("accepted: ")
    assert invoke(["verify-certificate", str(certificate), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["accepted"] is True
    assert report["certified_pairs"] == report["pairs"] > 0


def test_a_changed_certificate_is_refused(certificate: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document = json.loads(certificate.read_text())
    document["program"]["statements"][0]["domain"] = [[]]
    certificate.write_text(json.dumps(document))
    assert invoke(["verify-certificate", str(certificate)]) == 1
    out = capsys.readouterr().out
    assert out.startswith("refused: ")
    assert "S" in out


def test_without_the_option_a_verdict_is_proved(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["check", HEAT, "--schedule", SKEWED]) == 0
    assert capsys.readouterr().out.startswith("legal (proved)")


def test_an_illegal_order_gets_no_certificate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "heat.json"
    assert invoke(["check", HEAT, "--schedule", "{ S[t,i] -> [i, t] }", "--certificate", str(path)]) == 1
    assert "only a legal schedule has a certificate" in capsys.readouterr().err
    assert not path.exists()


def test_what_cannot_be_read_or_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["verify-certificate", HEAT]) == 2
    assert "help: give a file that polyopt check --certificate wrote" in capsys.readouterr().err
    assert invoke(["verify-certificate", str(tmp_path / "none.json")]) == 2
    missing = tmp_path / "no" / "folder.json"
    assert invoke(["check", HEAT, "--schedule", SKEWED, "--certificate", str(missing)]) == 2
