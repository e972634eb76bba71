"""`polyopt fuzz`: what it generates, what it finds, and what it found before."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings

from polyopt.cli._main import invoke
from polyopt.errors import InputError
from polyopt.fuzz import FEATURES, ORACLES, Case, cases, features, read_case, replay, run_campaign, write_case
from polyopt.fuzz._oracles import DisagreementError
from polyopt.schedule import _dependences, _orders

CORPUS = sorted((Path(__file__).parent / "corpus").glob("*.yaml"))


@pytest.mark.parametrize("path", CORPUS, ids=lambda p: p.stem)
def test_the_corpus_stays_right(path: Path) -> None:
    assert replay(path) == []


def test_every_kind_is_frequent_and_most_programs_are_not_trivial() -> None:
    counts: Counter[str] = Counter()
    programs = 0

    @seed(5)
    @settings(
        max_examples=300, database=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck), deadline=None
    )
    @given(cases())
    def count(case: Case) -> None:
        nonlocal programs
        programs += 1
        counts.update(features(case))

    count()
    assert programs == 300
    rare = {name: counts[name] for name in FEATURES if counts[name] < 0.05 * programs}
    assert not rare
    assert counts["non-trivial"] >= 0.5 * programs


def test_the_same_seed_gives_the_same_campaign(tmp_path: Path) -> None:
    first, second = (run_campaign(9, count=6, out=tmp_path) for _ in range(2))
    assert first.programs == second.programs == 6
    assert first.failures == second.failures == ()
    assert first.features == second.features
    assert run_campaign(10, count=6, out=tmp_path).features != first.features


def test_seconds_end_a_campaign(tmp_path: Path) -> None:
    assert run_campaign(1, seconds=0, out=tmp_path).programs == 0


def test_a_failure_is_made_small_and_written(tmp_path: Path) -> None:
    def dislikes_depth(case: Case) -> frozenset[str]:
        if any(len(s.iterators) >= 2 for s in case.scop.statements):
            raise DisagreementError("two loops")
        return frozenset()

    found = run_campaign(3, count=50, out=tmp_path, oracles={"depth": dislikes_depth}, most_failures=1)
    (failure,) = found.failures
    assert failure.message == "two loops"
    case, notes = read_case(Path(failure.path))
    assert notes["oracle"] == "depth"
    assert len(case.scop.statements) == 1
    assert len(case.scop.statements[0].iterators) == 2
    assert replay(Path(failure.path), {"depth": dislikes_depth}) == [("depth", "two loops")]
    assert replay(Path(failure.path)) == []


@pytest.mark.parametrize("fault", ["no anti dependences", "parallel forgotten"])
def test_a_fault_in_the_judge_is_found(fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if fault == "no anti dependences":
        sound = _dependences._kinds
        monkeypatch.setattr(_dependences, "_kinds", lambda a, b: tuple(k for k in sound(a, b) if k != "anti"))
    else:
        monkeypatch.setattr(_orders, "_with_parallel", lambda order, _parallel: order)
    _dependences.compute_dependences.cache_clear()
    names = ("judge at sizes", "judge for all sizes")
    oracles = {n: ORACLES[n] for n in names}
    found = run_campaign(4, count=400, out=tmp_path, oracles=oracles, most_failures=1, shrink=False)
    monkeypatch.undo()
    _dependences.compute_dependences.cache_clear()
    assert found.failures
    assert replay(Path(found.failures[0].path)) == []  # the judge is sound again


def test_cases_come_back_from_their_files(tmp_path: Path) -> None:
    for path in CORPUS[:5]:
        case, notes = read_case(path)
        write_case(case, tmp_path / path.name, **notes)
        assert read_case(tmp_path / path.name)[0] == case


@pytest.mark.parametrize("text", ["", "[]", "scop: 3", "scop: heat", "scop: |\n  scop: x\n", "{"])
def test_other_files_are_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "case.yaml"
    path.write_text(text)
    with pytest.raises(InputError):
        read_case(path)
    assert invoke(["fuzz", "--replay", str(path)]) == 2


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["fuzz", "--count", "5", "--seed", "2", "--out", str(tmp_path), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["programs"], answer["failures"], answer["seed"]) == (5, [], 2)
    assert set(FEATURES) <= set(answer["features"])
    assert not list(tmp_path.iterdir())
    assert invoke(["fuzz", "--count", "5", "--seconds", "5"]) == 2
    assert invoke(["fuzz", "--only", "jugde"]) == 2
    assert "there is no oracle 'jugde'" in capsys.readouterr().err
    assert invoke(["fuzz", "--replay", str(CORPUS[0]), "--only", "text"]) == 0
    assert "every answer is right" in capsys.readouterr().out
