"""Every main workload, bit for bit against the reference, at sizes around the machine's tile sizes."""

from __future__ import annotations

from functools import cache

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from polyopt.bench import SUITES, Workload
from polyopt.pipeline import Compiled, compile
from polyopt.verify import compare_exact

INTERESTING = (1, 2, 3, 127, 128, 129, 131)

LIMIT = 150_000
"""Instances that one example may have, about."""

WEIGHT = {
    "llama-block": 2000,
    "attention": 64,
    "conv2d": 9,
    "depthwise-conv": 9,
    "max-pool": 9,
    "jacobi-2d": 64,
    "lu": 1000,
}
"""Instances for each unit of the product of all sizes."""


@cache
def symbolic(name: str) -> Compiled:
    """The program that is made for all sizes."""
    (workload,) = (w for w in SUITES["main"] if w.name == name)
    return compile(workload.scop())


@st.composite
def sizes_of(draw: st.DrawFn, workload: Workload) -> dict[str, int]:
    left = LIMIT / WEIGHT.get(workload.name, 1)
    found: dict[str, int] = {}
    for name in draw(st.permutations(sorted(workload.sizes))):
        found[name] = draw(st.sampled_from([n for n in INTERESTING if n <= max(1, left)]))
        left /= found[name]
    return {name: found[name] for name in sorted(found)}


@pytest.mark.parametrize("workload", SUITES["main"], ids=lambda w: w.name)
def test_exact(workload: Workload) -> None:
    scop = workload.scop()

    # Without shrinking: a failing example says enough, and every further one costs a compilation.
    @settings(max_examples=4, phases=(Phase.explicit, Phase.generate))
    @given(sizes_of(workload), st.integers(0, 99))
    def check(sizes: dict[str, int], seed: int) -> None:
        for compiled in (compile(scop, at=sizes), symbolic(workload.name)):
            comparison = compare_exact(scop, compiled, sizes, seed)
            assert comparison.is_within, f"{sizes}: {comparison.worst}"

    check()


@pytest.mark.parametrize("size", [0, 1, 2])
def test_smallest_sizes(size: int) -> None:
    """Empty and nearly empty programs run, whether they are made for these sizes or for all."""
    for workload in SUITES["main"]:
        sizes = dict.fromkeys(workload.sizes, size)
        for compiled in (compile(workload.scop(), at=sizes), symbolic(workload.name)):
            report = compiled.run_report(sizes)
            assert report.ok, f"{workload.name}: {report.reasons}"
