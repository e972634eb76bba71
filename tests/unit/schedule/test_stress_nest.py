"""The stress nest: every form gets a legal order and a rung, also where isl alone takes very long."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest

from polyopt.schedule import _schedulers, compute_schedule

BENCHMARK: Any = import_module("benchmarks.stress_nest")


@pytest.mark.parametrize("reach", [2, 3])
@pytest.mark.parametrize(("form", "in_place"), BENCHMARK.FORMS)
def test_every_form_has_an_order(form: str, in_place: bool, reach: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_schedulers, "SCHEDULING_CPU_S", 1)
    scop = BENCHMARK.nest(reach, form, in_place=in_place)
    assert len(scop.statements) == (3 if form == "loops" else (2 * reach + 1) ** 2 + 2)
    found = compute_schedule(scop)
    assert found.verdict.verdict == "legal"
    assert found.rung in _schedulers.RUNGS
    assert bool(found.remarks) == (found.rung != "full")
