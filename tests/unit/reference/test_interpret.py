"""The interpreter against loops written by hand."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest

from polyopt.errors import InputError, UnsupportedError
from polyopt.frontend import read_scop
from polyopt.ir.standins import canonical, standin, standin_call, standin_constant
from polyopt.reference import inputs, interpret
from tests.unit.reference._build import build

GEMM = build(
    "M, N, K",
    [("A", "M, K", "float32 input"), ("B", "K, N", "float32 input"), ("C", "M, N", "float32 output")],
    [
        ("[i, j] : 0 <= i < M and 0 <= j < N", "[i, j, 0]", "C[i, j] = 0.0"),
        ("[i, j, k] : 0 <= i < M and 0 <= j < N and 0 <= k < K", "[i, j, 1, k]", "C[i, j] += A[i, k] * B[k, j]"),
    ],
)
SIZES = {"M": 3, "N": 4, "K": 5}


def test_matrix_product() -> None:
    given = inputs(GEMM, SIZES)
    got = interpret(GEMM, given, SIZES)
    expected = given["A"].astype(np.float64) @ given["B"].astype(np.float64)
    assert got["C"].dtype == np.float32
    assert np.array_equal(got["C"], expected.astype(np.float32))
    assert np.allclose(interpret(GEMM, given, SIZES, round_outputs=False)["C"], expected, rtol=1e-14)


def test_exact_matrix_product() -> None:
    given = inputs(GEMM, SIZES, mode="exact")
    assert np.array_equal(interpret(GEMM, given, SIZES, "exact")["C"], given["A"] @ given["B"])


def test_order_is_followed() -> None:
    """A[i] = A[i - 1]: descending copies, ascending smears the first element."""
    given = {"A": np.arange(5.0)}
    for order, expected in (("[-i]", [0, 0, 1, 2, 3]), ("[i]", [0, 0, 0, 0, 0])):
        scop = build("N", [("A", "N", "float32 inout")], [("[i] : 1 <= i < N", order, "A[i] = A[i - 1]")])
        assert interpret(scop, given, {"N": 5})["A"].tolist() == expected


def test_equal_vectors_run_in_textual_order_and_short_ones_are_padded() -> None:
    scop = build(
        "",
        [("a", "", "float32 output")],
        [
            ("[] : 1 = 1", "[0, 1]", "a[()] = 3.0"),
            ("[] : 1 = 1", "[0]", "a[()] = 1.0"),
            ("[] : 1 = 1", "[0, 0]", "a[()] = 2.0"),
        ],
    )
    assert interpret(scop, {}, {})["a"] == 3.0


def test_double_buffer() -> None:
    body = "A[(t + 1) % 2, i] = A[t % 2, i - 1] + A[t % 2, i] + A[t % 2, i + 1]"
    scop = build("T, N", [("A", "2, N", "float64 inout")], [("[t, i] : 0 <= t < T and 1 <= i < N - 1", "[t, i]", body)])
    a = np.arange(14.0).reshape(2, 7)
    expected = a.copy()
    for t in range(5):
        for i in range(1, 6):
            expected[(t + 1) % 2, i] = expected[t % 2, i - 1] + expected[t % 2, i] + expected[t % 2, i + 1]
    assert np.array_equal(interpret(scop, {"A": a}, {"T": 5, "N": 7})["A"], expected)


def test_gather_with_offset_and_scatter() -> None:
    scop = build(
        "N",
        [("x", "N + 1", "float32 input"), ("n", "N", "int32 input"), ("y", "N + 1", "float32 inout")],
        [("[i] : 0 <= i < N", "[i]", "y[n[i]] += x[n[i] + 1]")],
    )
    index = np.array([2, 0, 2], np.int32)
    x = np.array([1, 2, 3, 4], np.float32)
    got = interpret(scop, {"x": x, "n": index, "y": np.zeros(4, np.float32)}, {"N": 3})
    assert got["y"].tolist() == [2.0, 0.0, 8.0, 0.0]


def test_only_the_taken_branch_is_read() -> None:
    scop = build(
        "N",
        [("x", "N", "float32 input"), ("y", "N", "float32 output")],
        [("[i] : 0 <= i < N", "[i]", "y[i] = x[i - 1] if i > 0 and x[i - 1] > 0 else 7.0")],
    )
    assert interpret(scop, {"x": np.array([1, -1, 5], np.float32)}, {"N": 3})["y"].tolist() == [7, 1, 7]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("y[()] = 1.0 / x[()]", math.inf),
        ("y[()] = -1.0 / x[()]", -math.inf),
        ("y[()] = x[()] / x[()]", math.nan),
        ("y[()] = log(x[()])", -math.inf),
        ("y[()] = log(x[()] - 1.0)", math.nan),
        ("y[()] = sqrt(x[()] - 1.0)", math.nan),
        ("y[()] = rsqrt(x[()])", math.inf),
        ("y[()] = exp(x[()] + 1000.0)", math.inf),
        ("y[()] = sigmoid(x[()] - 1000.0)", 0.0),
        ("y[()] = max(log(x[()] - 1.0), 1.0)", math.nan),
        ("y[()] = min(2.0, log(x[()] - 1.0))", math.nan),
        ("y[()] = (x[()] - 8.0) ** 2", 64.0),
        ("y[()] = (x[()] + 8.0) ** 0.5", math.sqrt(8.0)),
        ("y[()] = gelu(x[()] + 1.0)", 0.5 * (1 + math.erf(math.sqrt(0.5)))),
        ("y[()] = silu(x[()] + 1.0)", 1 / (1 + math.exp(-1.0))),
        ("y[()] = cast('int8', x[()] + 200.7)", -56.0),
        ("y[()] = cast('bfloat16', x[()] + 1.001)", 1.0),
        ("y[()] = cast('int32', 1.0 / x[()])", 0.0),
    ],
)
def test_scalar_operators(body: str, expected: float) -> None:
    scop = build("", [("x", "", "float64 input"), ("y", "", "float64 output")], [("[] : 1 = 1", "[0]", body)])
    got = float(interpret(scop, {"x": np.zeros(())}, {})["y"])
    assert got == pytest.approx(expected, rel=1e-12, nan_ok=True)


def test_stores_wrap_and_cut_off() -> None:
    scop = build(
        "",
        [("x", "", "float64 input"), ("a", "", "int8 output"), ("b", "", "uint8 output"), ("c", "", "bool output")],
        [
            ("[] : 1 = 1", "[0]", "a[()] = x[()] + 130.9"),
            ("[] : 1 = 1", "[1]", "b[()] = x[()] - 1.5"),
            ("[] : 1 = 1", "[2]", "c[()] = x[()] + 0.25"),
        ],
    )
    got = interpret(scop, {"x": np.zeros(())}, {})
    assert (int(got["a"]), int(got["b"]), bool(got["c"])) == (-126, 255, True)


def test_inputs_are_rounded_to_their_type_first() -> None:
    scop = build(
        "", [("x", "", "bfloat16 input"), ("y", "", "float64 output")], [("[] : 1 = 1", "[0]", "y[()] = x[()]")]
    )
    assert interpret(scop, {"x": np.array(1.001)}, {})["y"] == float(ml_dtypes.bfloat16(1.001))


def test_exact_mode_uses_stand_ins_and_a_field() -> None:
    scop = build(
        "N",
        [("x", "", "float32 input"), ("y", "", "float32 output"), ("z", "", "float32 output")],
        [
            ("[] : 1 = 1", "[0]", "y[()] = exp(x[()]) / 0.5 + call(f, x[()])"),
            ("[] : 1 = 1", "[1]", "z[()] = 3.0"),
            ("[i] : 0 <= i < N", "[2, i]", "z[()] *= 1000.0"),
        ],
    )
    got = interpret(scop, {"x": np.array(3)}, {"N": 10}, "exact")
    half = standin_constant(0.5)
    assert got["y"] == standin("/", standin("exp", 3), half) + standin_call("f", 3)
    assert got["z"].item() == canonical(3 * 1000**10)


def test_uninterpreted_functions() -> None:
    scop = build("", [("y", "", "float32 output")], [("[] : 1 = 1", "[0]", "y[()] = call(f, 2.0, 3)")])
    assert interpret(scop, {}, {}, functions={"f": lambda a, b: a * 10 + b})["y"] == 23.0
    with pytest.raises(UnsupportedError, match="uninterpreted function 'f'"):
        interpret(scop, {}, {})


def test_temps_on_request_and_unwritten_outputs() -> None:
    scop = build(
        "",
        [("t", "", "float32 temp"), ("y", "2", "float32 output")],
        [("[] : 1 = 1", "[0]", "t[()] = 4.0"), ("[] : 1 = 1", "[1]", "y[1] = t[()]")],
    )
    assert set(interpret(scop, {}, {})) == {"y"}
    kept = interpret(scop, {}, {}, keep_temps=True)
    assert kept["t"] == 4.0
    assert kept["y"].tolist() == [0.0, 4.0]


def test_empty_domain() -> None:
    scop = build("N", [("y", "N + 3", "float32 output")], [("[i] : 0 <= i < N", "[i]", "y[i] = 1.0")])
    assert interpret(scop, {}, {"N": 0})["y"].tolist() == [0, 0, 0]


# -- refusals ---------------------------------------------------------------------------------------------------------
def test_a_cell_that_nothing_has_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("polyopt.ir._verify.unwritten_reads", lambda _scop: ())  # the verifier would refuse it
    scop = build(
        "N",
        [("y", "N", "float32 output")],
        [("[i] : 0 <= i < N and i != 2", "[i]", "y[i] = 1.0"), ("[i] : 1 <= i < N", "[N + i]", "y[i] += 2.0")],
    )
    with pytest.raises(InputError) as caught:
        interpret(scop, {}, {"N": 4})
    assert str(caught.value) == (
        "error[uninitialised]: S1[i=2] reads y[2], which nothing has written before (y has role output)\n"
        "help: write the cell in an earlier instance, or give y the role input or inout"
    )


def test_a_subscript_outside() -> None:
    scop = build(
        "N",
        [("n", "N", "int32 input"), ("x", "N", "float32 input"), ("y", "N", "float32 output")],
        [("[i] : 0 <= i < N", "[i]", "y[i] = x[n[i]]")],
    )
    given = {"n": np.array([0, 3, -1], np.int32), "x": np.ones(3, np.float32)}
    with pytest.raises(InputError) as caught:
        interpret(scop, given, {"N": 3})
    assert str(caught.value) == (
        "error[out-of-bounds]: S0[i=1] accesses x[3], but x has shape (3,)\n"
        "help: shrink the domain or enlarge the tensor"
    )


def test_an_ambiguous_order() -> None:
    scop = GEMM
    broken = type(scop)(
        scop.name,
        scop.params,
        scop.context,
        scop.tensors,
        (
            scop.statements[0],
            type(scop.statements[1])(
                "S1", scop.statements[1].domain, scop.statements[1].order[:3], scop.statements[1].body
            ),
        ),
    )
    with pytest.raises(
        InputError, match=r"the order of S1 does not say which comes first: S1\[0, 0, 0\] or S1\[0, 0, 1\]"
    ):
        interpret(broken, inputs(scop, SIZES), SIZES)


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"M": 3, "N": 4}, "no size for K"),
        ({"M": 3, "N": 4, "K": 5, "KK": 1}, "no parameter 'KK'; did you mean 'K'"),
        ({"M": 3, "N": 4, "K": -1}, "outside the context"),
    ],
)
def test_sizes_that_do_not_fit(sizes: dict[str, int], message: str) -> None:
    with pytest.raises(InputError, match=message):
        interpret(GEMM, {}, sizes)


def test_inputs_that_do_not_fit() -> None:
    good = inputs(GEMM, SIZES)
    with pytest.raises(InputError, match="no array for B"):
        interpret(GEMM, {"A": good["A"]}, SIZES)
    with pytest.raises(InputError, match="takes no input 'C'"):
        interpret(GEMM, {**good, "C": np.zeros((3, 4))}, SIZES)
    with pytest.raises(InputError, match=r"A has shape \(5, 3\), expected \(3, 5\)"):
        interpret(GEMM, {**good, "A": good["A"].T}, SIZES)
    with pytest.raises(
        InputError, match=r"A holds values that are no 64-bit integers, expected integers \(exact mode\)"
    ):
        interpret(GEMM, good, SIZES, "exact")
    with pytest.raises(InputError, match="unknown mode 'exacct'; did you mean 'exact'"):
        interpret(GEMM, good, SIZES, "exacct")


def test_opaque_calls_are_refused() -> None:
    scop = read_scop(
        "scop: p\ntensors:\n  C: {shape: [4], dtype: float32, role: inout}\nstatements:\n"
        '  - {name: F, domain: "[] : 1 = 1", order: "[0]", call: {may_read: [C], may_write: [C]}}\n'
    )
    with pytest.raises(UnsupportedError, match="F is an opaque call"):
        interpret(scop, {"C": np.zeros(4)}, {})
