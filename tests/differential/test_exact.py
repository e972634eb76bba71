"""Every main workload, bit for bit against the reference, at sizes around the machine's tile sizes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from polyopt.bench import SUITES, Workload
from polyopt.ir import Scop
from polyopt.pipeline import Compiled, compile
from polyopt.verify import compare_exact

INTERESTING = (1, 2, 3, 127, 128, 129, 131)

# The number of instances that one example may have, and sizes that are kept small: their values grow with every step.
LIMIT = 150_000
SMALL: Mapping[str, Mapping[str, int]] = {
    "jacobi-2d": {"T": 3},
    "lu": {"N": 5},
    "triangular-solve": {"N": 7},
    "llama-block": {"T": 5, "F": 131},
    "attention": {"H": 3},
    "conv2d": {"B": 2, "C": 3, "D": 131},
    "embedding-bag": {"L": 7},
}
# Instances per unit of the product of all sizes.
WEIGHT = {"llama-block": 200, "attention": 64, "conv2d": 9, "depthwise-conv": 9, "max-pool": 9}


# Summed over these axes, the weights have one term: sums of many large terms would need more than 53 bits.
ONE_TERM = {"wq": (0,), "wk": (0,), "wv": (0,), "wo": (0, 1), "gate": (0,), "up": (0,), "down": (0,)}


def sparse_weights(scop: Scop, sizes: Mapping[str, int], seed: int) -> dict[str, npt.NDArray[np.int64]]:
    """+1 or -1 at one random place along the summed axes, 0 elsewhere."""
    rng = np.random.default_rng(seed)
    found = {}
    for name, axes in ONE_TERM.items():
        shape = scop.tensor(name).sizes(sizes)
        summed, kept = math.prod(shape[k] for k in axes), shape[len(axes) :]
        flat = np.zeros((summed, math.prod(kept)), np.int64)
        columns = np.arange(flat.shape[1])
        flat[rng.integers(0, summed, len(columns)), columns] = rng.choice([-1, 1], len(columns))
        found[name] = flat.reshape(shape)
    return found


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
        most = min(left, SMALL.get(workload.name, {}).get(name, math.inf))
        found[name] = draw(st.sampled_from([n for n in INTERESTING if n <= max(1, most)]))
        left /= found[name]
    return {name: found[name] for name in sorted(found)}


@pytest.mark.parametrize("workload", SUITES["main"], ids=lambda w: w.name)
def test_exact(workload: Workload) -> None:
    scop = workload.scop()

    # Without shrinking: a failing example says enough, and every further one costs a compilation.
    @settings(max_examples=4, phases=(Phase.explicit, Phase.generate))
    @given(sizes_of(workload), st.integers(0, 99))
    def check(sizes: dict[str, int], seed: int) -> None:
        arrays = sparse_weights(scop, sizes, seed) if workload.name == "llama-block" else None
        for compiled in (compile(scop, at=sizes), symbolic(workload.name)):
            comparison = compare_exact(scop, compiled, sizes, seed, arrays=arrays)
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
