"""Values in an adversarial order: the same when all waits are there, wrong or uninitialised when one is missing."""

from __future__ import annotations

import numpy as np
import pytest

from polyopt.errors import ProgramError
from polyopt.ir.program import Buffer, Program, Wait
from polyopt.machine import machine
from polyopt.simulator import simulate
from tests.unit.simulator.programs import ROWS, change, load, matmul, program, store, tensor, view
from tests.unit.simulator.test_races import REDUNDANT, SIZES, all_waits, without

TRN2 = machine("trn2")
RNG = np.random.default_rng(0)
A, B = RNG.integers(-4, 5, (SIZES["K"], SIZES["M"])), RNG.integers(-4, 5, (SIZES["K"], SIZES["N"]))


def is_right(p: Program, seed: int, **options: bool) -> bool:
    try:
        result = simulate(p, TRN2, {"A": A, "B": B}, SIZES, order_seed=seed, **options)  # type: ignore[arg-type]
    except ProgramError as error:
        assert error.diagnostic.id == "uninitialised"
        return False
    assert result.races is None
    return bool((result.outputs["C"] == A.T @ B).all())


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("loose", [False, True])
def test_complete_waits(seed: int, loose: bool) -> None:
    p = matmul()
    if loose:  # a later transfer into a copy must wait for the earlier one itself
        assert simulate(p, TRN2, {"A": A, "B": B}, SIZES, dma_out_of_order=True).races == ()
    assert is_right(p, seed, dma_out_of_order=loose)


@pytest.mark.parametrize(("site", "wait"), all_waits(matmul()), ids=[f"{s}-{w.site}" for s, w in all_waits(matmul())])
def test_missing_wait_shows(site: str, wait: Wait) -> None:
    p = without(matmul(), site, wait)
    right = all(is_right(p, seed) for seed in range(12))
    assert right == ((site, wait.site) in REDUNDANT)


def test_same_seed_same_order() -> None:
    p = change(matmul(), "evict", waits=())
    assert [is_right(p, 3) for _ in range(3)] == [is_right(p, 3)] * 3


def test_completions_out_of_order() -> None:
    """Two loads of one queue into the same buffer: the second may be overtaken."""
    buffers = [Buffer("a", "sbuf", (4, 4), "float32")]
    first = load("first", "a", view("X", (0, 0), ROWS), 4, 4)
    second = load("second", "a", view("X", (0, 4), ROWS), 4, 4)
    save = store("save", view("Y", (0, 0), ROWS), "a", 4, 4, waits=(Wait("load0"),))
    p = program([tensor("X", (4, 8), "input"), tensor("Y", (4, 4), "output")], buffers, [first, second, save])
    x = np.arange(32.0).reshape(4, 8)
    seen = set()
    for seed in range(10):
        y = simulate(p, TRN2, {"X": x}, {}, order_seed=seed, dma_out_of_order=True).outputs["Y"]
        seen.add(float(y[0, 0]))
        assert (simulate(p, TRN2, {"X": x}, {}, order_seed=seed).outputs["Y"] == x[:, 4:]).all()
    assert seen == {0.0, 4.0}
