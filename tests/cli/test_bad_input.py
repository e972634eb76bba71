"""Bad input: exit status 2, a message that names the place and the remedy, nothing on stdout, no file written."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from polyopt.cli import invoke

SOUND = """\
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
FILE = "heat.scop.yaml"
AT = ("--at", "T=2,N=8")

# what is wrong -> (text replaced in the file, replacement, parts of the message)
FILES: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "malformed YAML": ("params: [T, N]", "params: [T, N", (f"{FILE}:3:8", "error[yaml]", "help:")),
    "unknown key": ("role: input}", "rolle: input}", (f"{FILE}:6", "rolle", "did you mean 'role'?")),
    "unknown dtype": (
        "dtype: float32, role: inout",
        "dtype: float23, role: inout",
        (f"{FILE}:5", "did you mean 'float32'?"),
    ),
    "unbounded domain": ("0 <= t < T and", "0 <= t and", (f"{FILE}:9", "iterator t has no upper bound", "help:")),
    "write out of bounds": ("1 <= i < N - 1", "1 <= i <= N", (f"{FILE}:11", "out of bounds", "T=1, N=3", "help:")),
    "non-affine subscript": ("A[t % 2, i - 1]", "A[t % 2, i*t]", (f"{FILE}:11", "i * t", "quasi-affine", "help:")),
    "unknown function": ("W[0]*A", "sqr(W[0])*A", (f"{FILE}:11", "unknown function sqr", "did you mean 'sqrt'?")),
    "wrong rank": ("W[0]*", "W[0, 0]*", (f"{FILE}:11", "W")),
    "input written": ("role: inout", "role: input", ("A", "role is input", "help:")),
}

# what is wrong -> (arguments, parts of the message)
CALLS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "schedule with a syntax error": (("check", FILE, "--schedule", "{ S[t,i] -> [t, }"), ("syntax error", "help:")),
    "schedule without a statement": (("check", FILE, "--schedule", "{ R[t,i] -> [t, i] }"), ("R", "S")),
    "schedule file that does not exist": (("check", FILE, "--schedule", "@no.yaml"), ("no.yaml",)),
    "unknown parallel dimension": (("check", FILE, "--schedule", "{ S[t,i] -> [t, i] }", "--parallel", "7"), ("7",)),
    "missing --at": (("run", FILE), ("no size for T, N of heat", "--at T=...,N=...")),
    "a part of --at": (("run", FILE, "--at", "N=8"), ("no size for T of heat", "--at T=...")),
    "negative size": (("run", FILE, "--at", "T=2,N=-8"), ("N=-8 is outside the context", "N >= 3")),
    "size outside the context": (("compile", FILE, "--at", "N=2"), ("N=2 is outside the context", "help:")),
    "unknown size": (("run", FILE, "--at", "T=2,M=8"), ("no parameter 'M'",)),
    "size given twice": (("run", FILE, "--at", "T=2,T=3"), ("--at gives T twice",)),
    "size that is no number": (("run", FILE, "--at", "T=two,N=8"), ("'two' is not an integer",)),
    "size beyond 31 bits": (("run", FILE, "--at", f"T=2,N={10**22}"), ("a whole number below 2**31",)),
    "unreadable --at": (("run", FILE, "--at", "T:2"), ("cannot read 'T:2'", "--at N=7,M=6")),
    "file that does not exist": (("run", "cold.scop.yaml", *AT), ("cold.scop.yaml does not exist", "help:")),
    "unknown kind of file": (("run", "heat.json", *AT), ("heat.json", ".scop.yaml")),
    "unknown target": (("run", FILE, *AT, "--target", "trn3x"), ("unknown target 'trn3x'; did you mean 'trn2'?",)),
    "unknown target, figures": (("targets", "trm2"), ("did you mean 'trn2'?",)),
    "unknown dtype": (("run", FILE, *AT, "--dtype", "bfloat61"), ("did you mean 'bfloat16'?",)),
    "no floating dtype": (("run", FILE, *AT, "--dtype", "int32"), ("int32 is no floating element type",)),
    "dtype that the target lacks": (
        ("run", FILE, *AT, "--dtype", "float64"),
        ("no dtype 'float64'", "it has: float32"),
    ),
    "unknown pass": (("run", FILE, *AT, "--passes", "depps,program"), ("unknown pass 'depps'; did you mean 'deps'?",)),
    "unknown emission": (("compile", FILE, "--emit", "programm"), ("did you mean 'program'?", "known: scop, deps")),
    "output into no folder": (("compile", FILE, "-o", "no/such/out"), ("no/such", "no folder")),
    "trace into no folder": (("run", FILE, *AT, "--trace", "no/trace.json"), ("no folder",)),
    "picture of no kind": (("run", FILE, *AT, "--plot", "picture.xyz"), ("picture.xyz", "help:")),
    "inputs that do not exist": (("run", FILE, *AT, "--inputs", "a.npz"), ("cannot read a.npz",)),
    "inputs of another kind": (("run", FILE, *AT, "--inputs", FILE), (f"cannot read {FILE}",)),
    "unknown suite": (("bench", "mian"), ("did you mean 'main'?",)),
    "unknown workload": (("bench", "main", "--only", "matmull"), ("did you mean 'matmul'?",)),
    "unknown command": (("rnu", FILE), ("rnu",)),
    "unknown option": (("run", FILE, "--atn", "T=2"), ("--atn",)),
    "missing option": (("check", FILE), ("--schedule",)),
}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / FILE).write_text(SOUND, "utf-8")
    return tmp_path


def refuse(
    arguments: tuple[str, ...], parts: tuple[str, ...], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = sorted(folder.rglob("*"))
    assert invoke(list(arguments)) == 2
    out, err = capsys.readouterr()
    assert out == ""
    for part in parts:
        assert part in err, err
    assert "Traceback" not in err
    assert sorted(folder.rglob("*")) == before


@pytest.mark.parametrize("what", FILES)
def test_files(what: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old, new, parts = FILES[what]
    assert old in SOUND
    (folder / FILE).write_text(SOUND.replace(old, new, 1), "utf-8")
    refuse(("run", FILE, *AT), parts, folder, capsys)


@pytest.mark.parametrize("what", CALLS)
def test_calls(what: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments, parts = CALLS[what]
    refuse(arguments, parts, folder, capsys)


def test_arrays_that_are_no_numbers(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.savez(folder / "words.npz", A=np.zeros((2, 8), np.float32), W=np.array(["a", "b", "c"]))
    refuse(("run", FILE, *AT, "--inputs", "words.npz"), ("W in words.npz holds <U1, not numbers",), folder, capsys)


def test_one_array_instead_of_several(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.save(folder / "one.npy", np.zeros((2, 8), np.float32))
    refuse(("run", FILE, *AT, "--inputs", "one.npy"), ("one.npy is no .npz file", "help:"), folder, capsys)
