"""Random programs: the evaluator gives what the interpreter gives, and error bounds hold for rounded runs."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from polyopt.errors import InputError
from polyopt.ir import Scop
from polyopt.reference import _leaf, _waves, evaluate, inputs, interpret
from polyopt.verify import values_and_bounds
from tests.property._rounded import RoundedRun
from tests.property._runnable import SIZES, Seeded, Style, make_program, runnable_programs

Array = npt.NDArray[Any]

MOSTLY_INOUT = ("inout",) * 12 + ("output", "temp")
PLAIN = Style(functions=("tanh", "relu", "abs", "neg", "floor"), dtypes=("float32", "float64"), roles=MOSTLY_INOUT)
EVERYTHING = Style(
    functions=("exp", "sqrt", "silu", "gelu", "rsqrt", "log"),
    operators=("+", "-", "*", "/", "**", "min", "max"),
    calls=True,
    roles=MOSTLY_INOUT,
)
FUNCTIONS = (
    *("tanh", "relu", "abs", "neg", "floor", "exp", "sigmoid", "silu", "gelu", "gelu_tanh", "sqrt", "rsqrt", "log"),
    *("sin", "cos", "erf"),
)
FLOATS = ("+", "-", "*", "/", "min", "max", "**")
SINGLE = Style(functions=FUNCTIONS, operators=FLOATS)
NARROW = Style(functions=FUNCTIONS, operators=FLOATS, dtypes=("bfloat16", "float16", "float8_e4m3", "float8_e5m2"))
MIXED = Style(functions=FUNCTIONS, operators=FLOATS, dtypes=("float32", "float64", "bfloat16", "float16"))

fixtures_are_constant = settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])


@pytest.fixture(params=["usual", "arrays", "chunks"])
def limits(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Small programs go through whole-array code, and through chunks of it, only when the limits say so."""
    if request.param != "usual":
        monkeypatch.setattr(_leaf, "POINTS", 0)
    if request.param == "chunks":
        monkeypatch.setattr(_leaf, "CHUNK", 8)
        monkeypatch.setattr(_leaf, "OPERAND", 16)
    yield


def outcome(run: Any, scop: Scop, arrays: dict[str, Array], mode: str) -> dict[str, Array] | InputError:
    try:
        found: dict[str, Array] = run(scop, arrays, SIZES, mode, round_outputs=False)
    except InputError as error:
        return error
    return found


def compare_runs(scop: Scop, seed: int, mode: str) -> tuple[dict[str, Array], dict[str, Array]] | None:
    arrays = inputs(scop, SIZES, seed, mode=mode)
    slow, fast = outcome(interpret, scop, arrays, mode), outcome(evaluate, scop, arrays, mode)
    if isinstance(slow, InputError) or isinstance(fast, InputError):
        assert isinstance(slow, InputError) and isinstance(fast, InputError)
        assert slow.diagnostic.id == fast.diagnostic.id
        return None
    assert list(slow) == list(fast)
    return slow, fast


def check_evaluation(scop: Scop, seed: int, mode: str) -> None:
    runs = compare_runs(scop, seed, mode)
    if runs is None:
        return
    for name, expected in runs[0].items():
        if mode == "exact":
            assert np.array_equal(runs[1][name], expected), name
            continue
        a, b = expected.astype(np.float64), runs[1][name].astype(np.float64)
        top = np.abs(a).max(initial=1.0)
        if top < 1e6:  # sums of larger values cancel too much to be compared
            assert np.allclose(a, b, rtol=1e-9, atol=1e-9 * top), name


@fixtures_are_constant
@given(runnable_programs(EVERYTHING), st.integers(0, 3))
def test_exact_evaluation(limits: None, scop: Scop, seed: int) -> None:
    check_evaluation(scop, seed, "exact")


@fixtures_are_constant
@given(runnable_programs(PLAIN), st.integers(0, 3))
def test_float64_evaluation(limits: None, scop: Scop, seed: int) -> None:
    check_evaluation(scop, seed, "float64")


@pytest.mark.parametrize("waves", [0, 100])
@pytest.mark.parametrize("style", [SINGLE, NARROW, MIXED], ids=["single", "narrow", "mixed"])
def test_bounds_hold(style: Style, waves: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With and without the detour through waves of independent instances."""
    monkeypatch.setattr(_waves, "_POOR", waves)
    ratios: list[float] = []
    for seed in range(120):
        ratios += errors_against_bounds(make_program(Seeded(Random(seed)), style), seed)
    positive = [r for r in ratios if r > 0]
    assert max(ratios) <= 1.0
    assert len(positive) > 10 and np.median(positive) > 0.03, "the bounds are far from what happens"


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(runnable_programs(MIXED), st.integers(0, 3))
def test_bounds_hold_for_drawn_programs(scop: Scop, seed: int) -> None:
    assert max(errors_against_bounds(scop, seed), default=0.0) <= 1.0


@pytest.mark.parametrize("seed", range(60))
def test_rich_programs(seed: int, limits: None) -> None:
    random = Random(seed)
    for style, mode in ((EVERYTHING, "exact"), (PLAIN, "float64")):
        check_evaluation(make_program(Seeded(random), style), seed, mode)


def errors_against_bounds(scop: Scop, seed: int) -> list[float]:
    """error / bound of every cell with a finite, positive bound; a cell with bound 0 must be right."""
    arrays = inputs(scop, SIZES, seed)
    found = RoundedRun(scop, arrays, SIZES).run()
    reference = evaluate(scop, arrays, SIZES)
    _, bounds = values_and_bounds(scop, arrays, SIZES)
    ratios: list[float] = []
    for name, expected in reference.items():
        a, b, bound = found[name].astype(np.float64), expected.astype(np.float64), bounds[name]
        assert bound.shape == b.shape and (bound >= 0).all()
        known = np.isfinite(bound)
        error = np.abs(a[known] - b[known])
        assert (error[bound[known] == 0] == 0).all(), name
        positive = bound[known] > 0
        ratios += (error[positive] / bound[known][positive]).tolist()
    return ratios
