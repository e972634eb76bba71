"""Generated programs: deterministic, crossing copies, estimates, general statements."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys

import numpy as np
import pytest

from polyopt.backend import estimate_time_ns, general_kernels, mapping_text, program_text
from polyopt.bench import SUITES, Workload
from polyopt.ir import Scop, instructions
from polyopt.ir.mapping import Kernel, Sequential, kernels
from polyopt.ir.mapping import Mapping as ProgramMapping
from polyopt.machine import Machine, machine
from polyopt.pipeline import compile
from polyopt.reference import evaluate, inputs
from polyopt.sets import affine, var
from polyopt.simulator import check_program, simulate
from tests.machines import small
from tests.unit.schedule._scops import program

TRN2 = machine("trn2")
WORKLOADS = {w.name: w for w in SUITES["main"]}


def assert_exact(scop: Scop, target: Machine, sizes: dict[str, int], *, fixed: bool = True) -> None:
    generated = compile(scop, target, sizes if fixed else None).program
    arrays = inputs(scop, sizes, mode="exact")
    expected = evaluate(scop, arrays, sizes, "exact")
    result = simulate(generated, target, arrays, sizes, mode="exact")
    assert result.races == ()
    assert all(np.array_equal(result.outputs[k], v) for k, v in expected.items())


# -- determinism ------------------------------------------------------------------------------------------------------
HASHED = """
import hashlib
from polyopt.backend import mapping_text, program_text
from polyopt.bench import SUITES
from polyopt.ir.mapping import Mapping
from polyopt.pipeline import compile
text = ""
for w in SUITES["main"]:
    if w.name in ("matmul", "softmax", "lu"):
        for at in (w.sizes, None):
            made = compile(w.scop(), at=at)
            text += mapping_text(made.unit.product("mapping", Mapping)) + program_text(made.program)
print(hashlib.sha256(text.encode()).hexdigest())
"""


def test_the_same_program_for_any_hash_seed() -> None:
    found = set()
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        done = subprocess.run(
            [sys.executable, "-c", HASHED], env=environment, capture_output=True, text=True, check=True
        )
        found.add(done.stdout.strip())
    assert len(found) == 1 and len(found.pop()) == len(hashlib.sha256().hexdigest())


@pytest.mark.parametrize("name", ["softmax", "depthwise-conv", "prefix-sum"])
def test_twice_the_same(name: str) -> None:
    one, two = (compile(WORKLOADS[name].scop(), at=WORKLOADS[name].sizes) for _ in range(2))
    assert one.program == two.program
    mappings = [c.unit.product("mapping", ProgramMapping) for c in (one, two)]
    assert mappings[0] == mappings[1]


@pytest.mark.parametrize("workload", SUITES["main"], ids=lambda w: w.name)
def test_programs_keep_the_rules_of_the_machine(workload: Workload) -> None:
    for at in (workload.sizes, None):
        generated = compile(workload.scop(), at=at).program
        check_program(generated, TRN2)
        sites = [x.site for x, _ in instructions(generated.body)]
        assert len(set(sites)) == len(sites)
        waits = {w.site for x, _ in instructions(generated.body) for w in x.waits}
        assert waits <= set(sites)


# -- rows that must cross ---------------------------------------------------------------------------------------------
def transposed(dtype: str = "float32") -> Scop:
    return program(
        f"X[N, M] {dtype} input; Y[M, N] {dtype} output",
        ("S", "[j, i] : 0 <= j < M and 0 <= i < N", "[j, i]", "Y[j, i] = X[i, j]"),
        params="N, M",
    )


@pytest.mark.parametrize("fixed", [True, False], ids=["fixed", "open"])
@pytest.mark.parametrize("sizes", [(1, 1), (1, 9), (3, 4), (4, 4), (5, 8), (9, 13)])
def test_transposition(sizes: tuple[int, int], fixed: bool) -> None:
    assert_exact(transposed(), small(), dict(zip(("N", "M"), sizes, strict=True)), fixed=fixed)


@pytest.mark.parametrize("sizes", [(128, 128), (127, 129), (131, 257), (300, 2)])
def test_transposition_of_whole_tiles(sizes: tuple[int, int]) -> None:
    scop, at = transposed(), dict(zip(("N", "M"), sizes, strict=True))
    assert_exact(scop, TRN2, at)
    if min(sizes) >= 100:
        opcodes = [x.opcode for x, _ in instructions(compile(scop, at=at).program.body)]
        assert "transpose" in opcodes


@pytest.mark.parametrize(
    "body",
    [
        "Y[b, j, i] = X[b, i, j]",
        "Y[i, b, j] = X[b, j, i]",
        "Y[j, i, b] = X[b, i, j] + X[b, 0, 0]",
        "Y[b, i, j] = X[j, i, b] * X[b, i, j]",
        "Y[N - 1 - i, j, b] = X[b, j, i]",
    ],
)
@pytest.mark.parametrize("target", [small(), TRN2], ids=lambda m: m.name)
def test_transpositions_of_three_dimensions(body: str, target: Machine) -> None:
    scop = program(
        "X[N, N, N] float32 input; Y[N, N, N] float32 output",
        ("S", "[b, i, j] : 0 <= b, i, j < N", "[b, i, j]", body),
        context="N >= 1",
    )
    for n in (1, 5) if target is small() else (9,):
        assert_exact(scop, target, {"N": n})
        assert_exact(scop, target, {"N": n}, fixed=False)


@pytest.mark.parametrize(
    "subscripts", ["A[i, k] * B[k, j]", "A[k, i] * B[j, k]", "A[k, i] * B[k, j]", "B[j, k] * A[i, k]"]
)
@pytest.mark.parametrize("n", [1, 4, 5, 11])
def test_products_of_transposed_factors(subscripts: str, n: int) -> None:
    scop = program(
        "A[N, N] float32 input; B[N, N] float32 input; C[N, N] float32 inout",
        ("S", "[i, j, k] : 0 <= i, j, k < N", "[i, j, k]", f"C[i, j] += {subscripts}"),
        reassociate=True,
        context="N >= 1",
    )
    assert_exact(scop, small(), {"N": n})
    assert_exact(scop, small(), {"N": n}, fixed=False)


# -- estimates --------------------------------------------------------------------------------------------------------
def kernel(estimated_ns: float, remark: str = "") -> Kernel:
    scop = program("A[N] float32 inout", ("S", "[i] : 0 <= i < N", "[i]", "A[i] = 1"))
    return Kernel(scop.statements[0], (), estimated_ns=estimated_ns, remark=remark)


def test_estimates_are_summed_over_the_iterations_of_sequential_loops() -> None:
    inner = Sequential("s1", affine(0), affine(5), (("S", "j"),), (kernel(1.0), kernel(2.0)))
    outer = Sequential("s0", affine(1), var("N"), (("S", "i"),), (kernel(10.0), inner))
    mapping = ProgramMapping("p", "trn2", (kernel(100.0), outer))
    assert estimate_time_ns(mapping, {"N": 4}) == pytest.approx(100 + 3 * (10 + 5 * 3))
    assert estimate_time_ns(mapping, {"N": 1}) == pytest.approx(100) == estimate_time_ns(mapping, {"N": 0})


def test_general_kernels_are_found_inside_loops() -> None:
    slow = kernel(0.0, "no instruction")
    mapping = ProgramMapping("p", "trn2", (kernel(1.0), Sequential("s0", affine(0), affine(2), (), (slow,))))
    assert general_kernels(mapping) == (slow,)
    assert len(tuple(kernels(mapping.nodes))) == 2


# -- general statements -----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("n", [0, 1, 2, 7])
@pytest.mark.parametrize(
    "domain",
    [
        "[i, j] : 0 <= i, j < N and (i + j) mod 2 = 0",
        "[i, j] : 0 <= i < N and (j = 0 or 2 <= j < N and j <= i)",
        "[i, j] : 0 <= i < N and i <= 2*j < N",
    ],
)
def test_general_statements_run_in_convex_parts(domain: str, n: int) -> None:
    scop = program(
        "X[N + 1, N + 1] float32 inout; v[N + 1] float32 input",
        ("S", domain, "[i, j]", "X[i, j] = X[j, i] * 2 + v[j] - i"),
    )
    assert_exact(scop, TRN2, {"N": n})
    assert_exact(scop, TRN2, {"N": n}, fixed=False)


def test_texts_name_everything() -> None:
    made = compile(WORKLOADS["softmax"].scop(), at={"M": 20, "N": 30})
    text = program_text(made.program)
    for x, _ in instructions(made.program.body):
        assert f": {x.site} = {x.opcode}(" in text
    for b in made.program.buffers:
        assert f"buffer {b.name}: " in text
    mapped = mapping_text(made.unit.product("mapping", ProgramMapping))
    assert mapped.startswith("mapping of softmax on trn2\n")
    for k in kernels(made.unit.product("mapping", ProgramMapping).nodes):
        assert f"  {k.statement.name}: about " in mapped
