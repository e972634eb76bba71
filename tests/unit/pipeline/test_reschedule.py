"""Another order of the loops: where it helps, what it costs, what it computes."""

from __future__ import annotations

from types import MappingProxyType

import numpy as np
import pytest
from hypothesis import given, settings

from polyopt.bench import SUITES
from polyopt.errors import InputError, PluginError
from polyopt.ir import Scop, verify_scop
from polyopt.machine import machine
from polyopt.passes import Pass, Unit
from polyopt.pipeline import compile, default_pipeline
from polyopt.pipeline._reschedule import Reschedule
from polyopt.reference import inputs, interpret
from polyopt.schedule import SCHEDULERS, LoopTree, SequentialLoop, compute_dependences, distribute, leaves, normalise
from polyopt.simulator import simulate
from tests.property._runnable import SIZES, Style, runnable_programs
from tests.unit.schedule._scops import program

TRN2 = machine("trn2")
WORKLOADS = {w.name: w for w in SUITES["main"]}
INNER = "[i, j] : 1 <= i, j < N"


def wavefront() -> Scop:
    """Both loops carry a dependence as written; along the diagonals nothing does."""
    return program(
        "A[N, N] float32 inout", ("S", INNER, "[i, j]", "A[i, j] = 0.5 * A[i - 1, j] + A[i, j - 1]"), context="N >= 2"
    )


def unit_of(scop: Scop, **at: int) -> Unit:
    return Unit(normalise(scop.at(at)), TRN2, MappingProxyType(at))


def num_sequential(scop: Scop) -> int:
    """Sequential loops around the deepest leaf."""
    _, tree = distribute(scop, compute_dependences(scop))

    def depth(nodes: tuple[LoopTree, ...]) -> int:
        return max((1 + depth(n.body) if isinstance(n, SequentialLoop) else 0 for n in nodes), default=0)

    assert len(list(leaves(tree))) == len(scop.statements)
    return depth(tree)


def passes(algorithm: str) -> list[Pass]:
    return [Reschedule(algorithm) if p.name == "reschedule" else p for p in default_pipeline()]


def compiled_with(scop: Scop, algorithm: str, sizes: dict[str, int]) -> tuple[float, dict[str, np.ndarray]]:
    """Simulated time and values."""
    made = compile(scop, TRN2, sizes, passes=passes(algorithm))
    arrays = inputs(scop, sizes, mode="exact")
    timing = simulate(made.program, TRN2, None, sizes, timing_only=True, detect_races=False)
    return timing.time_ns, dict(simulate(made.program, TRN2, arrays, sizes, mode="exact").outputs)


def test_a_wavefront_is_skewed() -> None:
    unit = unit_of(wavefront(), N=40)
    changed = Reschedule().run(unit)
    assert num_sequential(unit.scop) == 2
    assert num_sequential(changed.scop) == 1
    (remark,) = (r for r in changed.remarks if r.id == "schedule")
    assert remark.message.startswith("order of ") and "expected to take" in remark.message
    verify_scop(changed.scop)


def test_the_skewed_wavefront_is_faster_and_computes_the_same() -> None:
    scop, sizes = wavefront(), {"N": 24}
    expected = interpret(scop, inputs(scop, sizes, mode="exact"), sizes, "exact")
    times = {}
    for algorithm in ("original", "auto"):
        times[algorithm], found = compiled_with(scop, algorithm, sizes)
        assert all(np.array_equal(found[k], v) for k, v in expected.items())
    assert times["auto"] < times["original"] / 2


@pytest.mark.parametrize("name", ["matmul", "softmax", "attention", "max-pool"])
def test_programs_without_sequential_loops_stay_as_they_are_written(name: str) -> None:
    workload = WORKLOADS[name]
    unit = unit_of(workload.scop(), **workload.sizes)
    assert Reschedule().run(unit) == unit


def test_the_order_as_written_is_kept_where_no_other_is_expected_to_be_faster() -> None:
    workload = WORKLOADS["prefix-sum"]
    unit = unit_of(workload.scop(), **workload.sizes)
    changed = Reschedule().run(unit)
    assert changed.scop == unit.scop


def test_the_original_order_on_request() -> None:
    unit = unit_of(wavefront(), N=10)
    assert Reschedule("original").run(unit) is unit


@pytest.mark.parametrize("algorithm", ["isl", "feautrier"])
def test_a_scheduler_by_name(algorithm: str) -> None:
    unit = unit_of(wavefront(), N=10)
    changed = Reschedule(algorithm).run(unit)
    verify_scop(changed.scop)
    arrays = inputs(unit.scop, {"N": 10}, mode="exact")
    one, two = (interpret(s, arrays, {"N": 10}, "exact") for s in (unit.scop, changed.scop))
    assert all(np.array_equal(two[k], v) for k, v in one.items())


def test_unknown_schedulers_are_refused() -> None:
    with pytest.raises((InputError, PluginError), match="plutox"):
        Reschedule("plutox").run(unit_of(wavefront(), N=10))


def test_a_spent_budget_leaves_the_order_as_written() -> None:
    unit = unit_of(wavefront(), N=10)
    changed = Reschedule("isl", max_operations=1).run(unit)
    assert num_sequential(changed.scop) == 2
    assert any("budget" in r.message or "operations" in r.message for r in changed.remarks)


def test_the_cheapest_of_all_schedulers_is_chosen() -> None:
    """As simulated: no scheduler's order is much faster than the one that the cost model chose."""
    scop, sizes = wavefront(), {"N": 20}
    times = {name: compiled_with(scop, name, sizes)[0] for name in (*SCHEDULERS.names(), "auto")}
    assert times["auto"] <= 1.1 * min(times.values())


def test_orders_that_cannot_be_written_down_are_remarked_upon() -> None:
    """A gather into the tensor that is read: schedulers keep it, or say why not."""
    scop = program(
        "A[N] float32 inout; k[N] int32 input", ("S", "[i] : 0 <= i < N", "[i]", "A[k[i]] = A[i] + 1"), context="N >= 1"
    )
    unit = unit_of(scop, N=10)
    changed = Reschedule().run(unit)
    arrays = inputs(scop, {"N": 10}, mode="exact")
    one, two = (interpret(s, arrays, {"N": 10}, "exact") for s in (scop, changed.scop))
    assert all(np.array_equal(two[k], v) for k, v in one.items())


@settings(max_examples=25)
@given(runnable_programs(Style(gathers=False, integers=False)))
def test_random_programs_compute_the_same_in_every_order(scop: Scop) -> None:
    unit = Unit(normalise(scop), TRN2, MappingProxyType({}))
    arrays = inputs(scop, SIZES, mode="exact")
    expected = interpret(scop, arrays, SIZES, "exact")
    for algorithm in ("isl", "feautrier"):
        changed = Reschedule(algorithm).run(unit).scop
        found = interpret(changed, arrays, SIZES, "exact")
        assert all(np.array_equal(found[k], v) for k, v in expected.items()), algorithm
