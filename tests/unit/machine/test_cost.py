"""Cost formulas against Python's own evaluation of the same text, for numbers and for grids."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polyopt.errors import MachineFileError
from polyopt.machine import CostFormula, InstructionSpec, OperandKind, machine

TRN2 = machine("trn2")
FORMULAS = [
    "max(64, n) * (4 if W.dtype == 'float32' else 1)",
    "150 + 64 * points",
    "min(m, n) - k / 2 + m // 3",
    "m if W.dtype in ('bfloat16', 'float16') and X.memory != 'psum' else n",
    "(1 if W.dtype == 'float32' or X.dtype == 'float32' else 2) * max(m, n, k)",
    "7",
]
extents = st.fixed_dictionaries({lane: st.integers(0, 600) for lane in ("k", "m", "n")})
kinds = st.builds(OperandKind, st.sampled_from(["float32", "bfloat16", "float16"]), st.sampled_from(["sbuf", "psum"]))


def by_python(text: str, lanes: dict[str, int], operands: dict[str, OperandKind]) -> Any:
    points = 1
    for n in lanes.values():
        points *= n
    names: dict[str, Any] = {n: SimpleNamespace(dtype=k.dtype, memory=k.memory) for n, k in operands.items()}
    return eval(text, {"__builtins__": {}, "max": max, "min": min, "points": points, **names, **lanes})


@settings(max_examples=100)
@given(st.sampled_from(FORMULAS), extents, kinds, kinds)
def test_values(text: str, lanes: dict[str, int], w: OperandKind, x: OperandKind) -> None:
    operands = {"W": w, "X": x}
    formula = CostFormula(text)
    formula.check(("k", "m", "n"), ("W", "X"), "here")
    expected = by_python(text, lanes, operands)
    assert formula.evaluate(lanes, operands) == expected
    assert formula.bind(operands)(lanes) == expected


@settings(max_examples=40)
@given(st.sampled_from(FORMULAS), st.lists(extents, min_size=1, max_size=5), kinds, kinds)
def test_grids_are_many_values_at_once(text: str, grid: list[dict[str, int]], w: OperandKind, x: OperandKind) -> None:
    operands = {"W": w, "X": x}
    columns = {lane: np.array([row[lane] for row in grid]) for lane in ("k", "m", "n")}
    found = np.broadcast_to(CostFormula(text).bind(operands)(columns), len(grid))
    assert found.tolist() == [by_python(text, row, operands) for row in grid]


@pytest.mark.parametrize("spec", TRN2.instructions, ids=lambda s: s.name)
def test_more_lanes_never_take_less_time(spec: InstructionSpec) -> None:
    for dtype in sorted({d for o in spec.operands for d in o.dtypes}):
        for memory in ("sbuf", "psum"):
            operands = {o.name: OperandKind(dtype, memory) for o in spec.operands}
            full = {lane.name: min(lane.max or 4096, 4096) for lane in spec.lanes}
            whole = spec.cycles.evaluate(full, operands)
            for lane in full:
                assert 0 <= spec.cycles.evaluate({**full, lane: full[lane] // 2}, operands) <= whole


def test_missing_lanes_count_one_and_missing_operands_are_nothing() -> None:
    assert CostFormula("n * m").evaluate({"n": 5}, {}) == 5
    assert CostFormula("1 if W.dtype == 'float32' else 2").evaluate({}, {}) == 2
    assert CostFormula("points").evaluate({}, {}) == 1


@pytest.mark.parametrize(
    "text", ["m ** 2", "f(m)", "max(m)(n)", "m < n", "[m]", "m if m else n", "m if m < n else 1", "-m", "W", "None"]
)
def test_what_is_no_formula_is_refused_before_it_is_used(text: str) -> None:
    with pytest.raises(MachineFileError) as caught:
        CostFormula(text).check(("m", "n"), ("W",), "the file")
    assert caught.value.message.startswith("the file: ")
