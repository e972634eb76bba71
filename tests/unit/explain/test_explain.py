"""What an explanation says of small programs whose answers are known."""

from __future__ import annotations

from dataclasses import replace

import pytest

import polyopt as po
from polyopt.errors import InputError
from polyopt.explain import Explanation, explain
from polyopt.explain._copies import held_bytes
from polyopt.ir import Access
from polyopt.ir.mapping import kernels
from tests.unit.explain._programs import CHAIN, HEAT, STENCIL, explained, only, pair, suite


@pytest.fixture(scope="module")
def matmul() -> Explanation:
    return explained(suite("matmul"), {"M": 200, "N": 300, "K": 150})


@pytest.fixture(scope="module")
def jacobi() -> Explanation:
    return explained(suite("jacobi-2d"))


@pytest.fixture(scope="module")
def softmax() -> Explanation:
    return explained(suite("softmax"))


# -- parallel -------------------------------------------------------------------------------------------------
def test_loops_of_a_matrix_product(matmul: Explanation) -> None:
    for name in ("loop i of S0 and S1", "loop j of S0 and S1"):
        f = only(matmul, "parallel", name)
        assert (f.done, f.allowed, f.witness) == (True, True, None)
        assert f.reason.startswith("no dependence crosses its iterations; ")
    k = only(matmul, "parallel", "loop k of S1")
    assert (k.done, k.allowed, k.witness) == (True, True, None)
    assert "it carries the sum into C, which may be reordered (reassociate(+, float32))" in k.reason
    assert "128 at once on lanes matmul.k, on the partitions, a loop in steps of 128" in k.reason


def test_a_sum_without_the_axiom_is_in_order() -> None:
    f = only(explained(replace(suite("matmul"), reassociate=False)), "parallel", "loop k of S1")
    assert (f.done, f.allowed) == (False, False)
    assert pair(f) == ("flow", "S1[0, 0, 0]", "S1[0, 0, 1]")
    assert "at distance (0, 0, 1), M = 1, K = 2, N = 1; " in f.reason
    assert "with reassociate(+, float32) granted (--reassociate) it may be parallel; run in order" in f.reason


def test_time_is_not_parallel(jacobi: Explanation) -> None:
    f = only(jacobi, "parallel", "loop t of S1 and S2")
    assert (f.done, f.allowed) == (False, False)
    assert pair(f) == ("output", "S1[0, 1, 1]", "S1[1, 1, 1]")
    assert "--reassociate" not in f.reason
    assert all(only(jacobi, "parallel", f"loop {i} of {s}").done for i in "ij" for s in ("S0", "S1", "S2"))


def test_a_loop_that_one_statement_runs_in_order() -> None:
    f = only(explained(suite("triangular-solve")), "parallel", "loop i of S0, S1 and S2")
    assert (f.done, f.allowed) == (False, False)
    assert pair(f) == ("flow", "S0[0, 0]", "S1[1, 0, 0]")
    assert "S1 and S2: run in order, as a sequential loop" in f.reason


def test_what_no_instruction_covers_runs_point_by_point() -> None:
    text = STENCIL.replace("2.0*X[i]", "call(f, X[i])")
    f = only(explained(text, {"N": 8}), "parallel", "loop i of P")
    assert (f.done, f.allowed) == (False, True)
    assert "run point by point on the general engine" in f.reason


# -- tiling ---------------------------------------------------------------------------------------------------
def test_bands_of_a_matrix_product(matmul: Explanation) -> None:
    f = only(matmul, "tiling", "band (i, j, k) of S1")
    assert (f.done, f.allowed, f.witness) == (True, True, None)
    assert f.reason.endswith("tiles of S1: i 128 of 200, j 300 of 300, k 128 of 150")
    init = only(matmul, "tiling", "band (i, j) of S0")
    assert init.done and "tiles of S0 in the kernel of S1: " in init.reason


def test_a_stencil_in_time_needs_skewing() -> None:
    f = only(explained(HEAT), "tiling", "band (t, i) of S")
    assert (f.done, f.allowed) == (False, False)
    assert pair(f) == ("flow", "S[0, 2]", "S[1, 1]")
    assert "distance (1, -1), T = 2, N = 4 goes backwards in i; (t) and (i) apart are" in f.reason


def test_statements_tied_by_a_cycle_are_tiled_together(jacobi: Explanation) -> None:
    for name in ("S1", "S2"):
        f = only(jacobi, "tiling", f"band (t, i, j) of {name}")
        assert f.statements == ("S1", "S2")
        assert (f.done, f.allowed) == (False, False)
        assert pair(f) == ("flow", "S1[0, 2, 1]", "S2[0, 1, 1]")
        assert "(t) and (i, j) apart are" in f.reason
    assert only(jacobi, "tiling", "band (i, j) of S0").done


def test_statements_that_no_cycle_ties_have_bands_of_their_own(softmax: Explanation) -> None:
    for name in ("S1", "S3", "S4", "S5"):
        f = only(softmax, "tiling", f"band (i, j) of {name}")
        assert (f.done, f.allowed, f.statements) == (True, True, (name,))


# -- fusion ---------------------------------------------------------------------------------------------------
def test_maximum_and_exponential_share_rows_but_not_columns(softmax: Explanation) -> None:
    f = only(softmax, "fusion", "S1 and S3 (largest, X)")
    assert (f.done, f.allowed) == (False, True)
    assert f.loops == (("S1", ("i",)), ("S3", ("i",)))
    assert pair(f) == ("flow", "S1[0, 1]", "S3[0, 0]")
    assert "dependences allow (i) to be shared, (i, j) is forbidden by the flow dependence" in f.reason
    assert "no cycle of dependences ties them together, so that the pass schedule runs them apart" in f.reason
    assert "us; " in f.reason


def test_initialisation_is_absorbed(matmul: Explanation) -> None:
    f = only(matmul, "fusion", "S0 and S1 (C)")
    assert (f.done, f.allowed) == (True, True)
    assert "one kernel: S0 computes the starting value of S1 (pass absorb)" in f.reason


def test_a_consumer_with_a_stencil_needs_a_delay() -> None:
    f = only(explained(STENCIL), "fusion", "P and Q (B)")
    assert (f.done, f.allowed) == (False, False)
    assert pair(f) == ("flow", "P[3]", "Q[1]")
    assert "dependences allow no loop to be shared, (i) is forbidden" in f.reason
    assert f.reason.endswith("delaying Q by (2) would make it legal")


def test_no_delay_helps_where_all_is_needed_first() -> None:
    text = STENCIL.replace("B[i - 1] + B[i + 2]", "B[i - 1] + B[N - 1 - i]")
    f = only(explained(text), "fusion", "P and Q (B)")
    assert f.allowed is False
    assert "delaying" not in f.reason


@pytest.mark.parametrize(("size", "helps"), [(4, False), (6, False), (7, True)])
def test_a_delay_of_most_of_the_loop_is_no_fusion(size: int, helps: bool) -> None:
    """Q has size - 3 iterations, of which at least half must run beside P's."""
    f = only(explained(STENCIL, {"N": size}), "fusion", "P and Q (B)")
    assert f.allowed is False
    assert ("delaying Q by (2)" in f.reason) is helps


def test_a_statement_between_that_has_no_loop() -> None:
    f = only(explained(CHAIN), "fusion", "P and Q (B)")
    assert (f.done, f.allowed, f.witness) == (False, False, None)
    assert "no more: M must run between them and has no further loop" in f.reason


def test_statements_that_run_in_one_sequential_loop(jacobi: Explanation) -> None:
    f = only(jacobi, "fusion", "S1 and S2 (B, A)")
    assert (f.done, f.allowed) == (True, True)
    assert "both run inside the sequential (t)" in f.reason
    assert pair(f) == ("flow", "S1[0, 2, 1]", "S2[0, 1, 1]")
    assert "delaying S2 by (0, 1) would make it legal" in f.reason


def test_a_substituted_temporary() -> None:
    text = STENCIL.replace("role: output}\n  C", "role: temp}\n  C").replace("B[i - 1] + B[i + 2]", "B[i]")
    f = only(explained(text), "fusion", "P with Q")
    assert f.done
    assert f.reason == "its result is computed inside Q, so that B needs no memory (pass substitute)"


# -- copies ---------------------------------------------------------------------------------------------------
def test_copies_of_a_matrix_product(matmul: Explanation) -> None:
    assert all(f.done for f in matmul.of("copy"))
    f = only(matmul, "copy", "load of B[k, j] for S1 in sbuf")
    assert f.reason == "copied once, outside all loops; reused by i_t, k_t; one buffer"


def test_copies_stay_inside_while_sizes_are_open() -> None:
    f = only(explained(suite("matmul")), "copy", "load of B[k, j] for S1 in sbuf")
    assert not f.done
    assert "i_t (about 4 iterations) does not move it" in f.reason
    assert "while sizes are open" in f.reason


def test_what_does_not_fit_is_copied_again() -> None:
    f = only(explained(suite("matmul"), {"M": 4096, "N": 8192, "K": 8192}), "copy", "load of B[k, j] for S1 in sbuf")
    assert (f.done, f.allowed) == (False, None)
    assert "a partition, more than the " in f.reason


def test_a_loop_that_writes_what_is_loaded(jacobi: Explanation) -> None:
    load = only(jacobi, "copy", "load of A[i, j] for S1 in sbuf")
    assert (load.done, load.allowed) == (False, False)
    assert pair(load) == ("flow", "S2[0, 1, 1]", "S1[1, 1, 1]")
    store = only(jacobi, "copy", "store of B[i, j] for S1 in sbuf")
    assert pair(store) == ("flow", "S1[0, 1, 1]", "S2[0, 1, 1]")
    assert store.reason.startswith("S2 reads B inside the loop t: ")


def test_what_a_sequential_loop_only_reads_could_stay() -> None:
    text = HEAT.replace("A[t % 2, i] +", "W[1]*A[t % 2, i] +").replace(
        "statements", "  W: {shape: [3], dtype: float32, role: input}\nstatements"
    )
    f = only(explained(text), "copy", "load of W[1] for S in sbuf")
    assert (f.done, f.allowed, f.witness) == (False, True, None)
    assert "the loop t does not move it, but the pass map places copies inside kernels only" in f.reason


@pytest.mark.parametrize("name", ["matmul", "conv2d", "attention", "lu"])
def test_buffers_are_as_large_as_the_program_makes_them(name: str) -> None:
    """The bytes that the explanation counts with, against the buffers of the generated program."""
    sizes = {"M": 300, "N": 260, "K": 200, "B": 2, "C": 16, "D": 20, "H": 8, "W": 10, "T": 130}
    scop = suite(name)
    compiled = po.compile(scop, at={p: sizes[p] for p in scop.params})
    made = sorted(b.copies * b.copy_bytes for b in compiled.program.buffers)
    for kernel in kernels(compiled.mapping.nodes):
        for p in kernel.placements:
            if isinstance(p.term, Access) and p.through is None and p.memory == "sbuf":
                assert held_bytes(p, kernel, p.depth) in made


# -- order ----------------------------------------------------------------------------------------------------
def test_no_other_order_is_tried_where_all_is_parallel(matmul: Explanation) -> None:
    (f,) = matmul.of("order")
    assert not f.done and "none of them has to run in sequence" in f.reason


def test_the_other_orders_with_their_estimates(jacobi: Explanation) -> None:
    (f,) = jacobi.of("order")
    assert not f.done
    for word in ("as written 33", "isl ", "feautrier ", " us"):
        assert word in f.reason


def test_another_order_is_explained_besides_the_written_one() -> None:
    passes = "fix-sizes,substitute,normalise,reschedule{algorithm=isl},deps,schedule,absorb,map,program"
    found = explained(HEAT, passes=passes)
    (order,) = found.of("order")
    assert order.done and order.reason.endswith("the pass reschedule was told to take isl")
    written = only(found, "tiling", "band (t, i) of S", "written")
    assert (written.done, written.allowed) == (False, False)
    (chosen,) = (f for f in found.of("tiling") if f.order == "chosen")
    assert chosen.allowed is True
    assert {f.order for f in found.of("parallel")} == {"written", "chosen"}
    assert {f.order for f in found.of("copy")} == {"chosen"}


def test_a_pipeline_without_a_mapping() -> None:
    found = explained(HEAT, passes="fix-sizes,substitute,normalise,deps,schedule")
    assert not found.of("copy")
    assert "the pipeline makes no mapping" in only(found, "tiling", "band (t, i) of S").reason
    assert "left parallel" in only(found, "parallel", "loop i of S").reason
    assert "the pipeline has no pass reschedule" in found.of("order")[0].reason


def test_a_pipeline_without_a_schedule_is_refused() -> None:
    with pytest.raises(InputError, match="a pass needs 'schedule'"):
        explain(po.compile(po.read_scop(HEAT), passes="fix-sizes,normalise"))


def test_the_answer_depends_on_the_sizes() -> None:
    f = only(explained(HEAT, {"T": 1, "N": 9}), "parallel", "loop t of S")
    assert f.allowed is True


def test_no_statement_and_no_loop() -> None:
    text = CHAIN.replace('  - {name: P, domain: "[i] : 0 <= i < N", order: "[0, i]", body: "B[i] = 2.0*X[i]"}\n', "")
    text = text.replace("role: output", "role: inout")
    found = explained(text, {"N": 4})
    assert {f.subject for f in found.of("parallel")} == {"loop i of Q"}
    assert not found.of("fusion")


def test_equal_for_equal_programs() -> None:
    assert explained(HEAT) == explained(HEAT)
