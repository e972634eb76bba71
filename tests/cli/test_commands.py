"""What the commands print, and their exit statuses."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from polyopt import cli
from polyopt.cli import invoke
from polyopt.errors import BudgetError, InternalError
from polyopt.report import PROPERTIES

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
GATHER = """\
scop: gather
params: [N]
tensors:
  x: {shape: [N], dtype: float32, role: inout}
  idx: {shape: [N], dtype: int32, role: input}
statements:
  - {name: S, domain: "[n] : 0 <= n < N", order: "[n]", body: "x[n] = x[idx[n]] + 1.0"}
"""
KERNEL = """\
import polyopt as po

raise SystemExit("a file is parsed, not run")

@po.kernel(reassociate=True)
def gemm(A: po.bfloat16["M", "K"], B: po.bfloat16["K", "N"], C: po.float32["M", "N"]):
    for i in range(M):
        for j in range(N):
            C[i, j] = 0.0
            for k in range(K):
                C[i, j] += A[i, k] * B[k, j]
"""
KEYS = (
    *("name", "target", "params", "ok", "verdicts", "witnesses", "axioms", "max_abs_error", "error_bound", "cycles"),
    *("time_us", "estimated_time_us", "flops", "peak_fraction", "roofline_fraction", "hbm_bytes"),
    *("hbm_compulsory_bytes", "hbm_lower_bound_bytes", "scratchpad_peak_bytes", "engine_busy", "bottleneck"),
    *("general_engine_fraction", "tensor_engine_fraction", "compile_s", "simulate_s", "version"),
)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "heat.scop.yaml").write_text(HEAT, "utf-8")
    (tmp_path / "gather.scop.yaml").write_text(GATHER, "utf-8")
    (tmp_path / "kernels.py").write_text(KERNEL, "utf-8")
    return tmp_path


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Any:
    """`call(arguments...)` gives exit status, stdout and stderr."""

    def run(*arguments: str) -> tuple[int, str, str]:
        status = invoke(list(arguments))
        return status, *capsys.readouterr()

    return run


# -- run ------------------------------------------------------------------------------------------------------
def test_run_json(call: Any) -> None:
    status, out, err = call("run", "heat.scop.yaml", "--at", "T=3,N=200", "--json", "--verify-each")
    report = json.loads(out)
    assert (status, err, out.count("\n")) == (0, "", 1)
    assert set(KEYS) <= set(report)
    assert tuple(report["verdicts"]) == PROPERTIES
    assert report["verdicts"]["legal"] == "proved"
    assert (report["ok"], report["witnesses"], report["flops"]) == (True, {}, 3 * 198 * 5)
    assert report["max_abs_error"] <= report["error_bound"]
    assert report["error_ratio"] <= 1
    assert report["hbm_bytes"] >= report["hbm_lower_bound_bytes"] >= report["hbm_compulsory_bytes"] > 0
    # All of A[0] and W, the two ends of A[1], which nothing writes; both inner rows are written.
    assert report["hbm_compulsory_bytes"] == 4 * (200 + 3 + 2 + 2 * 198)
    assert all(0 <= part <= 1 for part in report["engine_busy"].values())


def test_run_of_a_kernel_in_a_file(call: Any) -> None:
    status, out, _ = call("run", "kernels.py:gemm", "--at", "M=200,N=300,K=130", "--json")
    report = json.loads(out)
    assert (status, report["ok"], report["dtype"]) == (0, True, "bfloat16")
    assert report["flops"] == 2 * 200 * 300 * 130
    assert report["hbm_compulsory_bytes"] == 2 * 130 * (200 + 300) + 4 * 200 * 300
    assert report["tensor_engine_fraction"] == 1
    assert report["axioms"]
    peak = report["flops"] / (report["time_us"] * 1e-6) / 78.6432e12
    assert report["peak_fraction"] == pytest.approx(peak)


def test_dtype_changes_every_floating_tensor(call: Any) -> None:
    status, out, _ = call("run", "kernels.py:gemm", "--at", "M=20,N=30,K=13", "--json", "--dtype", "float16")
    report = json.loads(out)
    assert (status, report["dtype"]) == (0, "float16")
    assert report["hbm_compulsory_bytes"] == 2 * (20 * 13 + 13 * 30 + 20 * 30)


def test_tables_for_people(call: Any) -> None:
    status, out, err = call("run", "heat.scop.yaml", "--at", "T=3,N=20")
    assert (status, err) == (0, "")
    for word in ("heat on trn2 at T=3, N=20", "largest error / bound", "every dependence is kept", "bottleneck"):
        assert word in out


def test_timing_only(call: Any) -> None:
    status, out, _ = call("run", "heat.scop.yaml", "--at", "T=3,N=20", "--json", "--timing-only")
    report = json.loads(out)
    assert (status, report["ok"], report["max_abs_error"]) == (0, True, None)
    assert report["verdicts"]["equivalent"] == report["verdicts"]["in_bounds"] == "unknown"
    assert report["verdicts"]["deadlock_free"] == "tested"
    _, out, _ = call("run", "heat.scop.yaml", "--at", "T=3,N=20", "--json")
    assert report["time_us"] == json.loads(out)["time_us"]


def test_values_that_do_not_fit_the_memory(call: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("polyopt.pipeline._inputs._free_bytes", lambda: (2**21, "the free memory"))
    huge = ("heat.scop.yaml", "--at", "T=1,N=100000")
    status, out, err = call("run", *huge)
    assert (status, out) == (3, "")
    assert "--timing-only" in err
    status, out, _ = call("run", *huge, "--json", "--timing-only")
    assert status == 0


def test_trace_and_plot(call: Any, folder: Path) -> None:
    options = ("--trace", "trace.json", "--plot", "picture.png")
    status, _, err = call("run", "heat.scop.yaml", "--at", "T=3,N=20", *options)
    assert (status, err) == (0, "")
    events = json.loads((folder / "trace.json").read_text())["traceEvents"]
    assert any(e["ph"] == "X" for e in events)
    assert (folder / "picture.png").read_bytes().startswith(b"\x89PNG")
    assert not list(folder.glob(".polyopt-*"))


def test_inputs_give_sizes_and_values(call: Any, folder: Path) -> None:
    np.savez(folder / "in.npz", A=np.ones((2, 50), np.float32), W=np.zeros(3, np.float32))
    status, out, _ = call("run", "heat.scop.yaml", "--at", "T=3", "--inputs", "in.npz", "--json")
    report = json.loads(out)
    assert (status, report["params"], report["max_abs_error"]) == (0, {"T": 3, "N": 50}, 0)
    status, _, err = call("run", "heat.scop.yaml", "--at", "T=3,N=40", "--inputs", "in.npz")
    assert status == 2
    assert "A has extent 50 in dimension 1, expected N = 40" in err


def test_seed_changes_the_inputs(call: Any) -> None:
    errors = []
    for seed in ("0", "0", "1"):
        _, out, _ = call("run", "kernels.py:gemm", "--at", "M=20,N=30,K=130", "--json", "--seed", seed)
        errors.append(json.loads(out)["error_bound"])
    assert errors[0] == errors[1] != errors[2]


# -- check ----------------------------------------------------------------------------------------------------
def test_check_statuses(call: Any) -> None:
    legal = call("check", "heat.scop.yaml", "--schedule", "{ S[t,i] -> [t, t+i] }", "--json")
    assert legal[0] == 0
    assert json.loads(legal[1])["verdict"] == "legal"
    illegal = call("check", "heat.scop.yaml", "--schedule", "{ S[t,i] -> [i, t] }", "--json", "--replay")
    answer = json.loads(illegal[1])
    assert (illegal[0], answer["verdict"], answer["level"]) == (1, "illegal", "proved")
    assert answer["witness"] == {
        "params": {"T": 2, "N": 4},
        "kind": "flow",
        "tensor": "A",
        "cell": [1, 2],
        "source": {"statement": "S", "at": {"t": 0, "i": 2}},
        "sink": {"statement": "S", "at": {"t": 1, "i": 1}},
    }
    assert answer["replayed"]["differs"] is True
    assert answer["replayed"]["expected"] != answer["replayed"]["got"]
    unknown = call("check", "gather.scop.yaml", "--schedule", "{ S[n] -> [-n] }", "--json")
    assert (unknown[0], json.loads(unknown[1])["verdict"]) == (3, "unknown")


def test_check_options(call: Any) -> None:
    schedule = ("heat.scop.yaml", "--schedule", "{ S[t,i] -> [t, i] }")
    assert call("check", *schedule, "--parallel", "1")[0] == 0
    assert call("check", *schedule, "--parallel", "0")[0] == 1
    # With one time step no dependence is left for dimension 0.
    assert call("check", *schedule, "--parallel", "0", "--at", "T=1,N=9")[0] == 0


def test_check_for_people(call: Any) -> None:
    status, out, _ = call("check", "heat.scop.yaml", "--schedule", "{ S[t,i] -> [i, t] }", "--replay")
    assert status == 1
    assert out.startswith("illegal (proved): flow dependence S[0, 2] -> S[1, 1] on A[1, 2] with T = 2, N = 4")
    assert "replayed: the values differ" in out


# -- compile --------------------------------------------------------------------------------------------------
def test_compile_to_stdout_and_to_a_file(call: Any, folder: Path) -> None:
    status, out, _ = call("compile", "heat.scop.yaml", "--at", "T=3,N=200")
    assert (status, out.splitlines()[0]) == (0, "program heat for trn2(T, N)")
    status, printed, _ = call("compile", "heat.scop.yaml", "--at", "T=3,N=200", "-o", "heat.txt")
    assert (status, printed) == (0, "")
    assert (folder / "heat.txt").read_text() == out


@pytest.mark.parametrize("what", ["scop", "deps", "schedule", "mapping", "program", "c", "dot", "json"])
def test_emit(call: Any, what: str) -> None:
    status, out, err = call("compile", "heat.scop.yaml", "--emit", what)
    assert (status, err) == (0, "")
    assert "S" in out


def test_emitted_json_is_whole(call: Any) -> None:
    _, out, _ = call("compile", "heat.scop.yaml", "--emit", "json", "--at", "N=9")
    found = json.loads(out)
    assert found["at"] == {"N": 9}
    assert found["pipeline"].startswith("substitute,")
    assert found["program"]["body"]


def test_emitted_c_is_validated_and_for_the_given_sizes(call: Any, folder: Path) -> None:
    status, printed, _ = call("compile", "heat.scop.yaml", "--emit", "c", "--at", "N=9", "-o", "heat.c")
    assert (status, printed) == (0, "")
    text = (folder / "heat.c").read_text()
    assert "loops: proved: every instance runs once, in the order of the schedule" in text
    assert "int heat(int64_t T, int64_t N, float *restrict A, const float *restrict W)" in text
    assert "c3 <= 7" in text


def test_c_has_element_types_that_the_target_lacks(call: Any) -> None:
    status, out, err = call("compile", "heat.scop.yaml", "--emit", "c", "--dtype", "float64")
    assert (status, err) == (
        0,
        "remark[target-dtype]: target trn2 has no float64: its cost model takes no part in choosing the order\n",
    )
    assert "double *restrict A, const double *restrict W" in out


def test_what_c_cannot_say_is_refused(call: Any) -> None:
    status, out, err = call("compile", "heat.scop.yaml", "--emit", "c", "--dtype", "bfloat16")
    assert (status, out) == (2, "")
    assert "error[c-dtype]: A has the element type bfloat16, which C does not have" in err
    assert "help: use another element type" in err


def test_parts_of_the_pipeline(call: Any) -> None:
    passes = "normalise,deps{max_operations=1000000}"
    status, out, _ = call("compile", "heat.scop.yaml", "--passes", passes, "--emit", "deps")
    assert status == 0
    assert "flow S -> S on A" in out


# -- targets, bench, the rest ---------------------------------------------------------------------------------
def test_targets(call: Any) -> None:
    status, out, _ = call("targets", "--json")
    assert status == 0
    assert "trn2" in [t["name"] for t in json.loads(out)["targets"]]
    status, out, _ = call("targets", "trn2", "--json")
    figures = json.loads(out)["figures"]
    assert status == 0
    assert all(f["source"] and f["tag"] for f in figures)
    assert call("targets", "trn2")[0] == 0
    assert "trn2" in call("targets")[1]


def test_bench(call: Any) -> None:
    chosen = ("--only", "softmax", "--only", "max-pool")
    status, out, err = call("bench", "main", *chosen, "--json")
    reports = [json.loads(line) for line in out.splitlines()]
    assert (status, err, [r["name"] for r in reports]) == (0, "", ["softmax", "max_pool"])
    assert all(set(KEYS) <= set(r) for r in reports)
    status, out, _ = call("bench", "main", *chosen)
    assert status == 0
    assert "HBM / compulsory" in out


def test_version_and_help(call: Any) -> None:
    assert call("--version") == (0, "polyopt 0.1.0\n", "")
    for command in ((), ("run",), ("check",), ("compile",), ("bench",), ("targets",)):
        status, out, _ = call(*command, "--help")
        assert status == 0
        assert "Usage: polyopt" in out


def test_bugs_are_called_bugs(call: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("somewhere inside")

    monkeypatch.setattr("polyopt.frontend.load", broken)
    status, out, err = call("compile", "heat.scop.yaml")
    assert (status, out) == (4, "")
    assert "internal error: ZeroDivisionError: somewhere inside" in err
    assert "please report" in err


@pytest.mark.parametrize(("error", "status"), [(InternalError("broken"), 4), (BudgetError("spent"), 3)])
def test_statuses_belong_to_the_exception(
    call: Any, monkeypatch: pytest.MonkeyPatch, error: Exception, status: int
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("polyopt.frontend.load", refuse)
    found, out, err = call("compile", "heat.scop.yaml")
    assert (found, out) == (status, "")
    assert str(error) in err


def test_main_exits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["polyopt", "check", "heat.scop.yaml", "--schedule", "{ S[t,i] -> [i, t] }"])
    with pytest.raises(SystemExit) as caught:
        cli.main()
    assert caught.value.code == 1


def test_same_bytes_for_any_hash_seed(folder: Path) -> None:
    """Two processes with different hash seeds emit the same program."""
    command = "compile polyopt.bench.workloads:llama_block --at T=33,F=130 --emit json"
    found = set()
    for seed in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-m", "polyopt.cli", *command.split()],
            env=os.environ | {"PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        )
        found.add(done.stdout)
    assert len(found) == 1
