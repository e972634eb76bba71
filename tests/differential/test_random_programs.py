"""Random programs: generated code on the simulated machine against the interpreter, bit for bit, and no race."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from polyopt.ir import Scop
from polyopt.machine import Machine, machine
from polyopt.pipeline import compile
from polyopt.reference import inputs, interpret
from polyopt.simulator import simulate
from tests.machines import small
from tests.property._chains import chains
from tests.property._runnable import SIZES, runnable_programs


def assert_exact(scop: Scop, target: Machine, sizes: Mapping[str, int], *, fixed: bool) -> None:
    arrays = inputs(scop, sizes, mode="exact")
    expected = interpret(scop, arrays, sizes, "exact")
    compiled = compile(scop, target, sizes if fixed else None)
    result = simulate(compiled.program, compiled.machine, arrays, sizes, mode="exact", detect_races=True)
    assert result.races == ()
    assert set(result.outputs) == set(expected)
    for name, values in expected.items():
        assert np.array_equal(result.outputs[name], values), name


@settings(max_examples=40)
@given(runnable_programs())
def test_programs_of_every_kind(scop: Scop) -> None:
    """Recurrences, gathers, odd domains: kernels where they fit, the general engine elsewhere."""
    assert_exact(scop, machine("trn2"), SIZES, fixed=True)


@settings(max_examples=20)
@given(runnable_programs())
def test_programs_for_all_sizes_in_many_tiles(scop: Scop) -> None:
    assert_exact(scop, small(), SIZES, fixed=False)


@settings(max_examples=40)
@given(chains(), st.sampled_from([1, 2, 5, 9]), st.sampled_from([1, 4, 6]), st.booleans())
def test_chains_of_kernels_in_many_tiles(scop: Scop, n: int, m: int, fixed: bool) -> None:
    """Substituted temporaries, absorbed initialisations and uses, on a machine of four partitions."""
    assert_exact(scop, small(), {"N": n, "M": m}, fixed=fixed)
