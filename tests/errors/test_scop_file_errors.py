"""Every mistake in a SCoP file is refused where it stands, with a remedy; the messages are kept as golden text."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from polyopt.errors import InputError
from polyopt.frontend import load, read_scop

GOOD = """\
scop: demo
params: [N]
context: N >= 2
tensors:
  A: {shape: [N], dtype: float32, role: inout}
  X: {shape: [N, N], dtype: float32, role: input}
  I: {shape: [N], dtype: int32, role: input}
  T: {shape: [N], dtype: float32, role: temp}
  s: {shape: [], dtype: float32, role: output}
statements:
  - name: S
    domain: "[i, j] : 0 <= i < N and 0 <= j < N"
    order: "[0, i, j]"
    body: "A[i] += X[i, j]"
  - name: R
    domain: "[] : 1 = 1"
    order: "[1]"
    body: "s[()] = A[0]"
"""

MISTAKES = [
    ("tensors:", "tensor:"),
    ("role: inout", "role: inot"),
    ("dtype: float32, role: inout", "dtype: float23, role: inout"),
    ("shape: [N], dtype: float32, role: inout", "shape: [N - 3], dtype: float32, role: inout"),
    ("shape: [N], dtype: float32, role: inout", "shape: [N*N], dtype: float32, role: inout"),
    ("shape: [N], dtype: float32, role: inout", "shape: [M], dtype: float32, role: inout"),
    ("A: {shape: [N], dtype: float32, role: inout}", "A: {shape: [N], dtype: float32, role: inout, init: uniform}"),
    (
        "A: {shape: [N], dtype: float32, role: inout}",
        "A: {shape: [N], dtype: float32, role: inout, init: 'unform(0,1)'}",
    ),
    ("context: N >= 2", "context: M >= 2"),
    ("context: N >= 2", "context: N >= 2 and N < 1"),
    ("context: N >= 2", "context: N*N >= 2"),
    ("context: N >= 2", "context: N >=> 2"),
    ("params: [N]", "params: [N, N]"),
    ("params: [N]", "params: N"),
    ("params: [N]", "params: [max]"),
    ("  - name: R", "  - name: S"),
    ("name: R", "name: 1R"),
    ('0 <= j < N"', '0 <= j"'),
    ('0 <= j < N"', '0 <= k < N"'),
    ("[i, j] : 0", "[i, i] : 0"),
    ("[i, j] : 0", "{S[i, j] : 0"),
    ("[i, j] : 0 <= i", "0 <= i"),
    ("[i, j] : 0 <= i < N", "[i, j] : 0 <= i < N*N"),
    ('order: "[0, i, j]"', 'order: "[0, i]"'),
    ('order: "[0, i, j]"', 'order: "[0, i, k]"'),
    ('order: "[0, i, j]"', 'order: "0, i, j"'),
    ('order: "[0, i, j]"', 'order: "[0, i, (j + N)//3]"'),
    ('order: "[0, i, j]"', 'order: "[0, i, j"'),
    ("A[i] += X[i, j]", "A[i + 1] += X[i, j]"),
    ("A[i] += X[i, j]", "A[i] += X[i - 1, j]"),
    ("A[i] += X[i, j]", "A[i] += X[i*j, j]"),
    ("A[i] += X[i, j]", "A[i] += X[i//N, j]"),
    ("A[i] += X[i, j]", "A[i] += X[i]"),
    ("A[i] += X[i, j]", "A += X[i, j]"),
    ("A[i] += X[i, j]", "A[i] += Y[i, j]"),
    ("A[i] += X[i, j]", "A[i] += X[i, k]"),
    ("A[i] += X[i, j]", "A[i] -= X[i, j]"),
    ("A[i] += X[i, j]", "A[i] = B = 3"),
    ("A[i] += X[i, j]", "print(A)"),
    ("A[i] += X[i, j]", "A[i] = 1; A[i] = 2"),
    ("A[i] += X[i, j]", "A[i] += expp(X[i, j])"),
    ("A[i] += X[i, j]", "A[i] += exp(X[i, j], 2)"),
    ("A[i] += X[i, j]", "A[i] += cast('float33', X[i, j])"),
    ("A[i] += X[i, j]", "A[i] += X[i, j] // 2"),
    ("A[i] += X[i, j]", "A[i] += 'x'"),
    ("A[i] += X[i, j]", "A[i] += __import__('os').system('x')"),
    ("A[i] += X[i, j]", "X[i, j] = 0.0"),
    ("A[i] += X[i, j]", "A[i] += T[i]"),
    ("A[i] += X[i, j]", "A[i] += X[i, X[i, 0]]"),
    ("A[i] += X[i, j]", "A[i] += X[i, 2*I[i]]"),
    ("A[i] += X[i, j]", "A[i] += X[i, :]"),
    ("A[i] += X[i, j]", "A[i] += X[i][j]"),
    ("A[i] += X[i, j]", "A[i] += (X[i, j]"),
    ("s[()] = A[0]", "s = A[0]"),
    ('body: "s[()] = A[0]"', 'body: "A[0] = 1"'),
    ('body: "s[()] = A[0]"', "call: {may_read: [A], may_write: [Q]}"),
    ('body: "s[()] = A[0]"', "call: {may_read: [A], may_writes: [s]}"),
    ('body: "s[()] = A[0]"', 'boddy: "s[()] = A[0]"'),
    ("scop: demo\n", ""),
    ("scop: demo", "scop: demo\nscop: demo"),
    ("scop: demo", "scop: demo\nreassociate: maybe"),
    ("  - name: R", "  - nam: R"),
    ("[i, j] : 0 <= i", "[A, j] : 0 <= A"),
    ("[i, j] : 0 <= i", "[N, j] : 0 <= i"),
    ("[i, j] : 0 <= i", "[i + 1, j] : 0 <= i"),
    ("shape: [], dtype", "shape: 3, dtype"),
    ("shape: [], dtype", "shape: [1.5], dtype"),
    ("A[i] += X[i, j]", "A[i] += X[i, j] if X[i, j] is 0 else 1"),
    ("A[i] += X[i, j]", "A[i] += call(X[i, j])"),
    ("A[i] += X[i, j]", "A[i] += min(X[i, j])"),
    ("A[i] += X[i, j]", "A[i] += A.T[i]"),
    ("A[i] += X[i, j]", "A[i] += [X[i, k] for k in j]"),
    ("A[i] += X[i, j]", "A[i] += X[i, j] @ 2"),
    ("A[i] += X[i, j]", "A[inf] += X[i, j]"),
    ("A[i] += X[i, j]", "A[i / 2] += X[i, j]"),
    ("A[i] += X[i, j]", "A[abs(i)] += X[i, j]"),
    ("A[i] += X[i, j]", "A[i % 0] += X[i, j]"),
    ("A[i] += X[i, j]", ""),
    ("A[i] += X[i, j]", "A[I[i] + I[j]] += X[i, j]"),
    ("role: inout}", "role: inout, init: 'integers(3, 1)'}"),
    ("role: inout}", "role: inout, init: 'index(Y, 0)'}"),
    ("role: inout}", "role: inout, init: 'index(X, 2)'}"),
    ("role: inout}", "role: inout, init: diagonally_dominant}"),
    ("role: inout}", "role: inout, ini: 'uniform(0, 1)'}"),
    ("params: [N]", "params: [A, N]"),
    ("statements:", "statements: none\nscop2:"),
]


def changed(old: str, new: str) -> str:
    assert old in GOOD
    return GOOD.replace(old, new, 1)


def test_the_unchanged_file_is_accepted() -> None:
    assert [s.name for s in read_scop(GOOD).statements] == ["S", "R"]


def test_messages(check_golden: Callable[[str, str], None]) -> None:
    shown = []
    for old, new in MISTAKES:
        with pytest.raises(InputError) as caught:
            read_scop(changed(old, new))
        assert caught.value.exit_status == 2
        assert caught.value.diagnostic.where is not None, str(caught.value)
        shown.append(f"# {old!r} -> {new!r}\n{caught.value}\n")
    check_golden("errors/scop_files.txt", "\n".join(shown))


def test_malformed_yaml_is_shown() -> None:
    with pytest.raises(InputError, match=r"<text>:2:\d+: error\[yaml\]: malformed YAML: while parsing a flow sequence"):
        read_scop(changed("scop: demo", "scop: [a"))


@pytest.mark.parametrize(
    "text", ["", "- a\n- b", "scop: a\n---\nscop: b", "scop: !!python/object:os.system {}\n", "\x00\n", "a\n"]
)
def test_what_is_no_program_is_refused(text: str) -> None:
    with pytest.raises(InputError) as caught:
        read_scop(text if "\n" in text else text + "\n")
    assert caught.value.exit_status == 2


@pytest.mark.parametrize(
    "body", ["(" * 300 + "1" + ")" * 300, "-" * 5000 + "1", "+".join(["X[i, j]"] * 5000), "9" * 5000]
)
def test_monstrous_bodies_are_refused(body: str) -> None:
    with pytest.raises(InputError) as caught:
        read_scop(changed("X[i, j]", body))
    assert caught.value.diagnostic.where is not None


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    missing, binary = tmp_path / "a.scop.yaml", tmp_path / "b.scop.yaml"
    binary.write_bytes(b"\xff\xfe\xfa")
    for source, words in ((missing, "does not exist"), (binary, "cannot read"), (tmp_path / "a.scop", "cannot tell")):
        with pytest.raises(InputError, match=words):
            load(source)
    with pytest.raises(InputError, match="no file"):
        read_scop(missing)
    good = tmp_path / "c.scop.yaml"
    good.write_text(GOOD)
    with pytest.raises(InputError, match="holds one program, but 'f' is asked for"):
        load(f"{good}:f")
