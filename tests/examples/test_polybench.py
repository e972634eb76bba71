"""The thirty programs: what they compute, and what the judge and the simulated target say of each."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
import pytest

from polyopt.reference import inputs, interpret
from tests.examples.polybench_definitions import DEFINITIONS

SUITE: Any = import_module("examples.polybench.suite")  # kernels name sizes, which no type checker knows
KERNELS = SUITE.KERNELS


def test_they_are_thirty() -> None:
    assert len({c.name for c in KERNELS}) == 30
    assert {c.name for c in KERNELS} == set(DEFINITIONS)


@pytest.mark.parametrize("case", KERNELS, ids=lambda c: c.name)
def test_the_loops_compute_what_the_definition_says(case: Any) -> None:
    scop = case.scop()
    given = inputs(scop, case.sizes, seed=1)
    wide = {n: a.astype(np.float64) if a.dtype.kind == "f" else a for n, a in given.items()}
    expected = DEFINITIONS[case.name](wide, case.sizes)
    found = interpret(scop, given, case.sizes, round_outputs=False)
    assert set(expected) == {t.name for t in scop.with_role("output", "inout")}
    for name, values in expected.items():
        cells = np.isfinite(found[name])  # triangles of outputs that are never written hold no number
        assert cells.any()
        np.testing.assert_allclose(found[name][cells], values[cells], rtol=1e-9, atol=1e-9, err_msg=name)


@pytest.mark.parametrize("case", KERNELS, ids=lambda c: c.name)
def test_the_judge_knows_every_one(case: Any) -> None:
    """isl's order and its tiles are legal, for all sizes, and certified; a wrong order is refuted and replayed."""
    found = SUITE.judge(case)
    assert found.edges > 0
    assert found.isl
    assert found.tiled
    assert found.tiles
    assert found.refuted is not None
    assert found.refuted.replayed is not None
    assert found.refuted.replayed.differs or found.refuted.replayed.note == "order violated, value equal"
    assert found.certificate.num_certified_pairs >= 0.95 * found.certificate.num_pairs


@pytest.mark.parametrize("case", KERNELS, ids=lambda c: c.name)
def test_the_simulated_target_runs_every_one(case: Any) -> None:
    report = SUITE.run(case)
    assert report.ok
    assert report.error_ratio is not None
    assert report.general_engine_fraction <= 0.1
