"""The default pipeline, its text, user passes, and what compiled programs offer."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

import polyopt as po
from polyopt.bench import SUITES
from polyopt.errors import InputError, InternalError, PluginError
from polyopt.ir import Apply, Const, Scop
from polyopt.passes import Pass, Unit, parse_pipeline, pipeline_text
from polyopt.pipeline import Compiled, compile, default_pipeline, find_pass
from polyopt.schedule import check

HEAT = """\
scop: heat
params: [T, N]
context: T >= 1 and N >= 3
tensors:
  A: {shape: [2, N], dtype: float32, role: inout}
  W: {shape: [3], dtype: float32, role: input}
statements:
  - name: S
    domain: "[t, i] : 0 <= t < T and 1 <= i < N - 1"
    order: "[t, i]"
    body: "A[(t + 1) % 2, i] = W[0]*A[t % 2, i - 1] + W[1]*A[t % 2, i] + W[2]*A[t % 2, i + 1]"
"""


@pytest.fixture(scope="module")
def heat() -> Scop:
    return po.read_scop(HEAT)


@pytest.fixture(scope="module")
def compiled(heat: Scop) -> Compiled:
    return compile(heat, at={"T": 3, "N": 20})


def numpy_heat(A: np.ndarray, W: np.ndarray, steps: int) -> np.ndarray:
    A = A.astype(np.float64)
    for t in range(steps):
        new = W[0] * A[t % 2, :-2] + W[1] * A[t % 2, 1:-1] + W[2] * A[t % 2, 2:]
        A[(t + 1) % 2, 1:-1] = new
    return A


def test_the_default_is_one_list_with_a_text() -> None:
    text = pipeline_text(default_pipeline())
    assert text == "substitute,normalise,reschedule,fix-sizes,deps,schedule,absorb,map,program"
    assert parse_pipeline(text, find_pass) == default_pipeline()


def test_every_workload_is_legal_by_proof() -> None:
    for workload in SUITES["main"]:
        verdict = compile(workload.scop(), at=workload.sizes).legal
        assert verdict.level == "proved", f"{workload.name}: {verdict.reason}"


def test_run_gives_the_outputs(compiled: Compiled) -> None:
    rng = np.random.default_rng(0)
    A, W = rng.uniform(-1, 1, (2, 20)).astype(np.float32), rng.uniform(-1, 1, 3).astype(np.float32)
    found = compiled.run(A=A, W=W)
    assert list(found) == ["A"]
    np.testing.assert_allclose(found["A"], numpy_heat(A, W, 3), rtol=1e-5, atol=1e-6)


def test_sizes_come_from_arrays(heat: Scop) -> None:
    A, W = np.ones((2, 11)), np.array([0.25, 0.5, 0.25])
    found = compile(heat, at={"T": 2}).run(A=A, W=W)
    np.testing.assert_allclose(found["A"], numpy_heat(A, W, 2))


def test_a_size_that_nothing_shows_is_named(heat: Scop) -> None:
    with pytest.raises(InputError, match="no size for T of heat"):
        compile(heat).run(A=np.ones((2, 11)), W=np.ones(3))
    with pytest.raises(InputError, match="no size for T, N of heat"):
        _ = compile(heat).report


def test_missing_and_unknown_arrays_are_named(compiled: Compiled) -> None:
    with pytest.raises(InputError, match="no array for W of heat"):
        compiled.run(A=np.ones((2, 20)))
    with pytest.raises(InputError, match="takes no input 'V'"):
        compiled.run(A=np.ones((2, 20)), W=np.ones(3), V=np.ones(3))
    with pytest.raises(InputError, match="A has extent 19 in dimension 1, expected N = 20"):
        compiled.run(A=np.ones((2, 19)), W=np.ones(3))
    with pytest.raises(InputError, match="takes its arrays by name, found 1 positional"):
        compiled.run(np.ones((2, 20)))


def test_report(compiled: Compiled) -> None:
    report = compiled.report
    assert report["ok"] is True
    assert report["flops"] == 3 * 18 * 5
    assert report["params"] == {"T": 3, "N": 20}
    verdicts = report["verdicts"]
    assert isinstance(verdicts, dict)
    assert (verdicts["legal"], verdicts["equivalent"]) == ("proved", "tested")
    assert compiled.verdicts["legal"].level == "proved"


@pytest.mark.parametrize("what", ["scop", "deps", "schedule", "mapping", "program", "dot", "json"])
def test_emit(compiled: Compiled, what: str) -> None:
    text = compiled.emit(what)
    assert text.endswith("\n")
    assert "S" in text


def test_the_emitted_scop_is_read_back(compiled: Compiled) -> None:
    assert po.read_scop(compiled.emit("scop")) == compiled.unit.scop


def test_the_emitted_schedule_is_legal_for_the_judge(heat: Scop) -> None:
    text = compile(heat).emit("schedule").strip().splitlines()[-1]
    assert check(heat, text)


def test_the_emitted_schedule_names_the_groups_that_may_share_loops() -> None:
    text = compile({w.name: w for w in SUITES["main"]}["softmax"].scop()).emit("schedule")
    groups = [line for line in text.splitlines() if line.startswith("fusion group")]
    assert groups == ["fusion group 0: S0, S1, S2, S3, S4, S5"]


def test_a_shorter_pipeline_stops_there(heat: Scop) -> None:
    stopped = compile(heat, passes="normalise,deps")
    assert "S -> S" in stopped.emit("deps")
    with pytest.raises(InputError, match="the pipeline 'normalise,deps' makes no program"):
        _ = stopped.program
    with pytest.raises(InputError, match="needs 'schedule'"):
        stopped.emit("schedule")
    with pytest.raises(InputError, match="needs 'deps'"):
        compile(heat, passes="schedule,program")


@dataclass(frozen=True, slots=True)
class Rename:
    to: str

    @property
    def name(self) -> str:
        return "rename"

    def run(self, unit: Unit) -> Unit:
        return unit.with_scop(replace(unit.scop, name=self.to))


@dataclass(frozen=True, slots=True)
class Spoil:
    """Write one cell too far: a pass with a bug."""

    name: str = "spoil"

    def run(self, unit: Unit) -> Unit:
        (s,) = unit.scop.statements
        (target,) = [t - 1 for t in s.assign.target.affine_subscripts[1:]]
        spoiled = replace(s.assign, target=replace(s.assign.target, subscripts=(target - 1, target)))
        return unit.with_scop(replace(unit.scop, statements=(replace(s, body=spoiled),)))


@dataclass(frozen=True, slots=True)
class Miscompile:
    """Compute something else: what a wrong optimization does."""

    name: str = "miscompile"

    def run(self, unit: Unit) -> Unit:
        (s,) = unit.scop.statements
        wrong = replace(s.assign, value=Apply("+", (s.assign.value, Const(0.001))))
        return unit.with_scop(replace(unit.scop, statements=(replace(s, body=wrong),)))


def test_a_wrong_program_is_refuted_with_the_cell(heat: Scop) -> None:
    outcome = compile(heat, at={"T": 1, "N": 20}, passes=[Miscompile(), *default_pipeline()]).execute()
    assert not outcome.report.ok
    assert outcome.report.error_ratio is not None
    assert outcome.report.error_ratio > 1
    verdict = outcome.verdicts["equivalent"]
    assert verdict.level == outcome.report.verdicts["equivalent"] == "refuted"
    assert verdict.witness["tensor"] == "A"
    assert "A[1, " in verdict.reason


def test_passes_may_be_values(heat: Scop) -> None:
    passes: list[Pass] = [Rename("warm"), *default_pipeline()]
    assert compile(heat, passes=passes).program.name == "warm"


def test_verify_each_accepts_polyopts_own_passes() -> None:
    for workload in SUITES["main"]:
        compile(workload.scop(), at=workload.sizes, verify_each=True)


def test_verify_each_blames_the_pass(heat: Scop) -> None:
    with pytest.raises((InternalError, PluginError), match="pass spoil made what breaks a rule"):
        compile(heat, passes=[Spoil(), *default_pipeline()], verify_each=True)


def test_element_types_and_targets(heat: Scop) -> None:
    with pytest.raises(InputError, match="did you mean 'trn2'"):
        compile(heat, target="trn22")
    wide = replace(heat, tensors=tuple(replace(t, dtype="float64") for t in heat.tensors))
    with pytest.raises(InputError, match="no dtype 'float64'"):
        compile(wide)


def test_kernels_are_compiled_as_they_are() -> None:
    path = Path(__file__).parents[3] / "polyopt/bench/workloads.py"
    scop = po.load(f"{path}:prefix_sum")
    from polyopt.bench.workloads import prefix_sum

    assert compile(prefix_sum, at={"M": 3, "N": 5}).program == compile(scop, at={"M": 3, "N": 5}).program
