"""Waits of generated programs: enough, and each one that is needed is seen to be missing when it is left out."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from polyopt.bench import SUITES, Workload
from polyopt.ir import Program, Scop, Wait, instructions
from polyopt.machine import machine
from polyopt.pipeline import compile
from polyopt.reference import evaluate, inputs
from polyopt.simulator import simulate
from tests.machines import small
from tests.unit.backend.happens import Trace
from tests.unit.schedule._scops import program
from tests.unit.simulator.programs import change

WORKLOADS = {w.name: w for w in SUITES["main"]}
CASES: dict[str, dict[str, int]] = {
    "matmul": {"M": 5, "N": 9, "K": 9},
    "softmax": {"M": 5, "N": 6},
    "jacobi-2d": {"N": 4, "T": 2},
}
LINE = "[i] : 0 <= i < N"


@cache
def generated(name: str, fixed: bool) -> Program:
    return compile(WORKLOADS[name].scop(), small(), CASES[name] if fixed else None).program


def races(p: Program, sizes: dict[str, int]) -> set[tuple[str, str]]:
    found = simulate(p, small(), None, sizes, timing_only=True, detect_races=True).races
    assert found is not None
    return {(r.first.site, r.second.site) for r in found}


@pytest.mark.parametrize(("name", "fixed"), [*((n, True) for n in CASES), ("matmul", False)])
def test_every_needed_wait_is_missed(name: str, fixed: bool) -> None:
    """Leaving out any one wait is a race exactly when nothing else orders what it ordered."""
    whole, sizes = generated(name, fixed), CASES[name]
    trace = Trace(whole, small(), sizes)
    assert trace.unordered() == set() == races(whole, sizes)
    needed = 0
    for instr, _ in instructions(whole.body):
        for k in range(len(instr.waits)):
            rest = tuple(w for position, w in enumerate(instr.waits) if position != k)
            expected = trace.unordered(without=(instr.site, k))
            assert races(change(whole, instr.site, waits=rest), sizes) == expected, (instr.site, instr.waits[k])
            needed += bool(expected)
    assert needed >= 8


@pytest.mark.parametrize("workload", SUITES["main"], ids=lambda w: w.name)
def test_values_do_not_depend_on_how_engines_overtake_each_other(workload: Workload) -> None:
    """Executed in a random order that queues and waits allow, on a machine that needs many tiles."""
    scop = workload.scop()
    sizes = {p: 3 if p in ("T", "B", "H", "C") else 5 for p in workload.sizes}
    if workload.name == "llama-block":
        return  # its vectors have 256 elements: too long for this machine
    for seed, at in enumerate((sizes, None)):
        p = compile(scop, small(), at).program
        arrays = inputs(scop, sizes, mode="exact")
        expected = evaluate(scop, arrays, sizes, "exact")
        found = simulate(p, small(), arrays, sizes, mode="exact", order_seed=seed).outputs
        assert all(np.array_equal(found[k], v) for k, v in expected.items())


def waits_of(p: Program, site: str) -> set[Wait]:
    return {w for i, _ in instructions(p.body) if i.site == site for w in i.waits}


def vector(*rows: tuple[str, str, str, str], tensors: str) -> Scop:
    return program(tensors, *rows, context="N >= 1", reassociate=True)


def test_copies_that_rotate_wait_for_the_use_of_their_own_copy() -> None:
    """Two copies: the load of a tile waits for the work on the tile before the last, and the work for the load."""
    scop = program(
        "X[N, M] float32 input; Y[N, M] float32 output",
        ("S", "[i, j] : 0 <= i < N and 0 <= j < M", "[i, j]", "Y[i, j] = exp(X[i, j])"),
        params="N, M",
    )
    p = compile(scop, at={"N": 512, "M": 2048}).program
    assert waits_of(p, "S_ld_X") == {Wait("S_activation", "S_i_t", 2)}
    assert waits_of(p, "S_activation") == {Wait("S_ld_X"), Wait("S_st_Y", "S_i_t", 2)}
    assert waits_of(p, "S_st_Y") == {Wait("S_activation")}


def test_tensors_in_device_memory_order_kernels() -> None:
    scop = vector(
        ("S", LINE, "[0, i]", "T[i] = X[i] + 1"),
        ("U", "[i] : 0 <= i < N", "[1, i]", "Y[i] = T[N - 1 - i] * T[i]"),
        tensors="X[N] float32 input; T[N] float32 temp; Y[N] float32 output",
    )
    p = compile(scop, at={"N": 50}).program
    loads = [i.site for i, _ in instructions(p.body) if i.site.startswith("U_ld_T")]
    assert loads and all(Wait("S_st_T") in waits_of(p, site) for site in loads)


def test_a_kernel_without_instances_passes_no_order_on() -> None:
    """Three kernels in the two halves of a memory; the one between has no instance for N = 1."""
    scop = program(
        "X[N, N] float32 input; T[N] float32 inout; Y[N, N] float32 output",
        ("S", LINE, "[1, i]", "T[i] = 1"),
        ("R", "[i, j] : 1 <= i < N and 0 <= j < N", "[2, i, j]", "T[i] += X[i, 0]"),
        ("U", "[i, j] : 0 <= i, j < N", "[3, i, j]", "Y[i, j] = 2"),
        context="N >= 1",
        reassociate=True,
    )
    for target in (small(), machine("trn2")):
        p = compile(scop, target).program
        for n in (1, 2, 6):
            found = simulate(p, target, None, {"N": n}, timing_only=True, detect_races=True).races
            assert found == (), n


def test_iterations_of_a_sequential_loop_are_ordered_through_memory() -> None:
    scop = program(
        "A[N, N] float32 inout", ("S", "[i, j] : 1 <= i < N and 0 <= j < N", "[i, j]", "A[i, j] = A[i - 1, j] * 2")
    )
    p = compile(scop, at={"N": 40}).program
    assert any(w.site == "S_st_A" and w.loop is None for w in waits_of(p, "S_ld_A"))
