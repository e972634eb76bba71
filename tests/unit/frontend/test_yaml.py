"""SCoP files: the example of the interface, the known cases, defaults, and places of mistakes in every YAML style."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from polyopt.errors import InputError
from polyopt.frontend import load, read_scop, write_scop
from polyopt.ir import OpaqueCall
from polyopt.reference import inputs, interpret
from polyopt.sets import Set, var
from tests.case_files import CASES, read_case

HEAT = """
    scop: heat                       # name
    params: [T, N]                   # sizes
    context: T >= 1 and N >= 3       # optional
    reassociate: false
    tensors:
      A: {shape: [2, N], dtype: float32, role: inout}     # role: input | output | inout | temp
      W: {shape: [3], dtype: float32, role: input, init: "uniform(0, 1)"}
    statements:                      # each: name, domain, order, body
      - name: S
        domain: "[t, i] : 0 <= t < T and 1 <= i < N - 1"
        order: "[t, i]"
        body: "A[(t + 1) % 2, i] = W[0]*A[t % 2, i - 1] + W[1]*A[t % 2, i] + W[2]*A[t % 2, i + 1]"
"""


def test_the_example_of_the_interface() -> None:
    scop = read_scop(HEAT)
    assert (scop.name, scop.params, scop.reassociate) == ("heat", ("T", "N"), False)
    assert scop.context == Set.parse("T >= 1 and N >= 3", params=["T", "N"])
    assert [(t.name, t.shape, t.role, t.init) for t in scop.tensors] == [
        ("A", (var("N") * 0 + 2, var("N")), "inout", None),
        ("W", (var("N") * 0 + 3,), "input", "uniform(0, 1)"),
    ]
    s = scop.statement("S")
    assert s.iterators == ("t", "i")
    assert s.domain == Set.parse("[t, i] : 0 <= t < T and 1 <= i < N - 1", name="S", params=["T", "N"])
    assert [str(a) for a in s.assign.reads()][:2] == ["W[0]", "A[t - 2*((t)//2), i - 1]"]
    assert str(s.origin.where) == "<text>:13:15"


def test_the_example_computes_heat() -> None:
    scop, sizes = read_scop(HEAT), {"T": 3, "N": 6}
    given = inputs(scop, sizes, seed=1)
    expected = np.array(given["A"], dtype=np.float64)
    w = np.array(given["W"], dtype=np.float64)
    for t in range(3):
        old = expected[t % 2].copy()
        for i in range(1, 5):
            expected[(t + 1) % 2, i] = w[0] * old[i - 1] + w[1] * old[i] + w[2] * old[i + 1]
    got = interpret(scop, given, sizes, round_outputs=False)
    np.testing.assert_allclose(got["A"], expected, rtol=1e-12)


@pytest.mark.parametrize("path", CASES, ids=lambda p: p.name.split(".")[0])
def test_known_cases_are_read_and_come_back(path: Path, tmp_path: Path) -> None:
    case = read_case(path)
    assert case.checks
    text = write_scop(case.scop)
    assert read_scop(text) == case.scop
    file = tmp_path / "case.scop.yaml"
    file.write_text(text)
    assert load(file) == case.scop


def test_an_opaque_call() -> None:
    case = read_case(next(p for p in CASES if p.name.startswith("opaque")))
    assert case.scop.statement("F").body == OpaqueCall(may_read=("C",), may_write=("C",))


def minimal(context: str = "", params: str = "[N]", reassociate: str = "", body: str = '"A[i] = 0.0"') -> str:
    lines = ["scop: small", f"params: {params}", context, reassociate]
    lines += ["tensors:", "  A: {shape: [4], dtype: float32, role: output}", "statements:"]
    lines += ["  - name: S", '    domain: "[i] : 0 <= i < 4"', '    order: "[i]"', f"    body: {body}"]
    return "\n".join(line for line in lines if line) + "\n"


@pytest.mark.parametrize(
    ("context", "expected"),
    [
        ("", "N >= 0 and M >= 0"),
        ("context: N >= 1", "N >= 1 and M >= 0"),
        ("context: N >= -2", "N >= -2 and M >= 0"),
        ("context: N <= 5 and M <= N", "0 <= N <= 5 and 0 <= M <= N"),
        ("context: N = 4 or N = 8", "(N = 4 or N = 8) and M >= 0"),
        ("context: M >= N and N >= 2", "M >= N and N >= 2"),
    ],
)
def test_sizes_are_not_negative_unless_the_context_says_so(context: str, expected: str) -> None:
    scop = read_scop(minimal(context, params="[N, M]"))
    assert scop.context == Set.parse(expected, params=["N", "M"])
    assert read_scop(write_scop(scop)) == scop


@pytest.mark.parametrize(
    ("text", "expected"), [("", False), ("reassociate: true", True), ("reassociate: False", False)]
)
def test_reassociate(text: str, expected: bool) -> None:
    assert read_scop(minimal(reassociate=text)).reassociate is expected


def test_params_may_be_left_out_and_words_of_yaml_are_names() -> None:
    assert read_scop(minimal().replace("params: [N]\n", "")).params == ()
    assert read_scop(minimal(params="[no, yes, null, on, n]")).params == ("no", "yes", "null", "on", "n")


BODIES = {
    "plain": "A[i*i] = 0.0",
    "double quotes": '"A[i*i] = 0.0"',
    "single quotes": "'A[i*i] = 0.0'",
    "block": "|\n      A[i*i] = 0.0",
    "folded": ">-\n      A[i*i] = 0.0",
    "on two lines": '"A[i*i] =\n      0.0"',
    "escaped": r'"A[i*i]\x20= 0.0"',
}


@pytest.mark.parametrize("style", BODIES)
def test_a_mistake_is_shown_in_its_place_in_every_yaml_style(style: str) -> None:
    with pytest.raises(InputError) as caught:
        read_scop(minimal(body=BODIES[style]))
    where = caught.value.diagnostic.where
    assert where is not None
    shown = where.text[where.column - 1 : where.column - 1 + where.width]
    assert "i*i" in shown
    assert (shown == "i*i") == (style not in ("on two lines", "escaped"))


def test_columns_count_characters() -> None:
    with pytest.raises(InputError) as caught:
        read_scop(minimal(body="\"A[i] = call(f, 'é') + i*B[i]\"").replace("'é'", "été"))
    assert "été" in str(caught.value)
    where = caught.value.diagnostic.where
    assert where is not None and where.text[where.column - 1 :].startswith("été")


def test_union_domains_with_fixed_iterators_come_back() -> None:
    text = minimal().replace("0 <= i < 4", "(i = 0 and N > 3) or (i = 2 and N mod 2 = 0) or (i = 3 and N = 7)")
    scop = read_scop(text)
    assert read_scop(write_scop(scop)) == scop
    assert scop.statement("S").domain.points({"N": 8}) == [(0,), (2,)]


def test_reads_that_a_condition_protects_are_held_inside() -> None:
    text = (
        minimal()
        .replace('order: "[i]"', 'order: "[i]"')
        .replace("tensors:\n", "tensors:\n  X: {shape: [3], dtype: float32, role: input}\n")
    )
    scop = read_scop(text.replace("A[i] = 0.0", "A[i] = X[i - 1] if i >= 1 else 7.0"))
    assert [str(a) for a in scop.statement("S").assign.reads()] == ["X[max(0, i - 1)]"]
    got = interpret(scop, {"X": np.array([1, 2, 3], np.float32)}, {"N": 0})
    assert got["A"].tolist() == [7, 1, 2, 3]
    with pytest.raises(InputError, match="out of bounds"):
        read_scop(text.replace("A[i] = 0.0", "A[i] = X[i - 1] if i >= 0 else 7.0"))
    with pytest.raises(InputError, match="out of bounds"):
        read_scop(text.replace("A[i] = 0.0", "A[i] = X[i - 1] if X[0] > 0 else 7.0"))
