"""Sampled rounding bounds: as wide as roundings make it, repeatable, narrow enough to see faults."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import polyopt as po
from polyopt.ir import Scop
from polyopt.pipeline._verdicts import SURELY_WRONG, run_verdicts
from polyopt.reference import evaluate, inputs
from polyopt.verify import PropertyVerdict, compare_values, error_bounds, is_useless, sampled_bounds

RESIDUAL = "x{k}[i] + tanh(s{k}[i])"
CHAOTIC = "tanh(s{k}[i]) / (0.5 + s{k}[i] * s{k}[i])"


def chain(layers: int, spread: float = 0.2, update: str = RESIDUAL) -> Scop:
    """x -> x + tanh(W x) again and again, each layer stored in a narrow type; the rigorous bound explodes."""
    tensors = [f"  x{k}: {{shape: [32], dtype: bfloat16, role: {_role(k, layers)}}}" for k in range(layers + 1)]
    statements = []
    for k in range(layers):
        statements += [
            f'- {{name: Z{k}, domain: "[i] : 0 <= i < 32", order: "[{3 * k}, i]", body: "s{k}[i] = 0"}}',
            f'- {{name: S{k}, domain: "[i, j] : 0 <= i < 32 and 0 <= j < 32", order: "[{3 * k + 1}, i, j]", '
            f'body: "s{k}[i] += W[i, j] * x{k}[j]"}}',
            f'- {{name: T{k}, domain: "[i] : 0 <= i < 32", order: "[{3 * k + 2}, i]", '
            f'body: "x{k + 1}[i] = {update.format(k=k)}"}}',
        ]
        tensors.append(f"  s{k}: {{shape: [32], dtype: float32, role: temp}}")
    lines = ["scop: chain", "params: []", "reassociate: true", "tensors:", *tensors]
    init = f"uniform(-{spread}, {spread})"
    lines += [f'  W: {{shape: [32, 32], dtype: bfloat16, role: input, init: "{init}"}}', "statements:", *statements]
    return po.read_scop("\n".join(lines))


def _role(k: int, layers: int) -> str:
    return "input" if k == 0 else "output" if k == layers else "temp"


def test_a_deep_chain_gets_a_bound_that_its_run_keeps() -> None:
    scop = chain(16)
    report = po.compile(scop).run_report({})
    assert report.ok
    assert report.error_bound_kind == "sampled"
    assert report.verdicts["rounding"] == report.verdicts["equivalent"] == "tested"
    assert "4 sampled roundings" in report.reasons["rounding"]
    assert report.error_bound is not None
    assert report.error_bound < 4.0


def test_a_chaotic_program_is_left_unknown() -> None:
    report = po.compile(chain(8, 1.0, CHAOTIC)).run_report({})
    assert report.verdicts["rounding"] == "unknown"
    assert "infinite" in report.reasons["rounding"]


def test_a_short_one_keeps_its_rigorous_bound() -> None:
    report = po.compile(chain(1)).run_report({})
    assert (report.ok, report.error_bound_kind) == (True, "rigorous")


def test_the_same_seed_gives_the_same_bound() -> None:
    scop = chain(6)
    arrays = inputs(scop, {})
    first, again = (sampled_bounds(scop, arrays, {}, 7)["x6"] for _ in range(2))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, sampled_bounds(scop, arrays, {}, 8)["x6"])


@pytest.mark.parametrize("terms", [16, 256, 4096])
def test_a_sum_gets_the_root_of_its_length(terms: int) -> None:
    scop = po.read_scop(f"""
scop: total
params: []
reassociate: true
tensors:
  A: {{shape: [64, {terms}], dtype: float32, role: input, init: "uniform(1, 2)"}}
  s: {{shape: [64], dtype: float32, role: output}}
statements:
- {{name: Z, domain: "[i] : 0 <= i < 64", order: "[0, i]", body: "s[i] = 0"}}
- {{name: S, domain: "[i, j] : 0 <= i < 64 and 0 <= j < {terms}", order: "[1, i, j]", body: "s[i] += A[i, j]"}}
""")
    arrays = inputs(scop, {})
    sampled = sampled_bounds(scop, arrays, {})["s"]
    relative = sampled / evaluate(scop, arrays, {})["s"]
    unit = 2.0**-24
    assert np.all(relative > 2 * unit)
    assert np.all(relative < 40 * np.sqrt(terms) * unit)
    if terms == 4096:
        assert np.all(sampled < error_bounds(scop, arrays, {})["s"])


def test_faults_are_outside() -> None:
    scop = chain(8)
    arrays = inputs(scop, {})
    expected = evaluate(scop, arrays, {})
    bounds = sampled_bounds(scop, arrays, {})
    values = np.asarray(expected["x8"], np.float64)
    one = values.copy()
    one[5] += 4 * bounds["x8"].max()
    transposed = evaluate(scop, {**arrays, "W": arrays["W"].T}, {})["x8"]
    shorter = arrays["W"].copy()
    shorter[:, -1] = 0
    dropped = evaluate(scop, {**arrays, "W": shorter}, {})["x8"]
    for wrong in (one, transposed, dropped):
        assert not compare_values({"x8": np.asarray(wrong)}, expected, bounds).is_within
    assert compare_values(expected, expected, bounds).is_within


def test_only_what_is_far_outside_is_called_wrong() -> None:
    expected = {"x": np.zeros(3)}
    bounds = {"x": np.ones(3)}
    legal = PropertyVerdict("proved", "")
    for error, level in ((0.5, "tested"), (2.0, "unknown"), (2 * SURELY_WRONG, "refuted")):
        compared = replace(compare_values({"x": np.array([0.0, error, 0.0])}, expected, bounds), num_sampled=3)
        assert run_verdicts(legal, None, None, compared)["equivalent"].level == level


def test_useless_bounds() -> None:
    values = np.array([1.0, -2.0, 0.5, np.inf])
    bound = np.array([np.inf, 1.0, 3.0, np.inf])
    assert is_useless(bound, values).tolist() == [True, False, True, False]
    assert not is_useless(np.zeros(2), np.zeros(2)).any()


def test_sums_through_data_dependent_targets_are_moved_too() -> None:
    scop = po.read_scop("""
scop: buckets
params: []
reassociate: true
tensors:
  A: {shape: [4096], dtype: float32, role: input, init: "uniform(1, 2)"}
  k: {shape: [4096], dtype: int32, role: input, init: "integers(0, 3)"}
  s: {shape: [3], dtype: float32, role: inout, init: "uniform(1, 2)"}
statements:
- {name: S, domain: "[i] : 0 <= i < 4096", order: "[i]", body: "s[k[i]] += A[i]"}
""")
    arrays = inputs(scop, {})
    relative = sampled_bounds(scop, arrays, {})["s"] / evaluate(scop, arrays, {})["s"]
    assert np.all(relative > 20 * 2.0**-24)
    assert np.all(relative < 40 * 64 * 2.0**-24)
