"""Planned kernels: tiles within the machine, every instance in one tile, every cell copied once."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from math import prod

import numpy as np
import pytest

from polyopt.bench import SUITES
from polyopt.errors import UnsupportedError
from polyopt.ir import Access, Program, Scop, dtype
from polyopt.ir.mapping import Kernel, MappingNode, Placement, Sequential, Temp, kernels
from polyopt.ir.mapping import Mapping as ProgramMapping
from polyopt.machine import Machine, machine
from polyopt.pipeline import Compiled, compile
from polyopt.reference import inputs, interpret
from polyopt.sets import affine, maximum, minimum, var
from polyopt.simulator import simulate
from polyopt.tiling._finish import _at_most
from tests.machines import small
from tests.unit.schedule._scops import program

TRN2 = machine("trn2")
WORKLOADS = {w.name: w for w in SUITES["main"]}
LINE, SQUARE, LOWER = "[i] : 0 <= i < N", "[i, j] : 0 <= i, j < N", "[i, j] : 0 <= i < N and 0 <= j <= i"


def gemm() -> Scop:
    return WORKLOADS["matmul"].scop()


def mapping_of(compiled: Compiled) -> ProgramMapping:
    return compiled.unit.product("mapping", ProgramMapping)


# -- within the machine ----------------------------------------------------------------------------------------------
def check_limits(mapping: ProgramMapping, target: Machine) -> None:
    for kernel in kernels(mapping.nodes):
        for op in kernel.ops:
            spec = target.spec(op.spec)
            for role, dims in op.lanes:
                limit = spec.lane(role).max
                points = prod(kernel.dim(d).tile for d in dims)
                assert limit is None or points <= limit, (kernel.statement.name, op.spec, role, dims)
        for p in kernel.placements:
            assert p.partition_tile <= target.memory(p.memory).partitions
            assert p.copies >= 1 and all(s.size >= 1 for s in p.spans)


def check_capacity(generated: Program, target: Machine) -> None:
    """The buffers of one kernel together; an accumulating operand inside one bank."""
    by_kernel: Counter[tuple[str, str]] = Counter()
    for b in generated.buffers:
        memory = target.memory(b.memory)
        used = prod(b.shape[1:]) * dtype(b.dtype).element_bytes
        assert b.shape[0] <= memory.partitions and used <= b.copy_bytes
        assert b.offset_bytes + b.copies * b.copy_bytes <= memory.bytes_per_partition
        by_kernel[b.memory, b.name.split("_")[0]] += b.copies * b.copy_bytes
    for (memory_name, _), total in by_kernel.items():
        assert total <= target.memory(memory_name).bytes_per_partition


@pytest.mark.parametrize("size", [0, 1, 2, 127, 128, 129, 131, 513])
@pytest.mark.parametrize("name", ["matmul", "softmax", "batched-matmul"])
def test_odd_sizes(name: str, size: int) -> None:
    sizes = {p: (2 if p == "B" else size) for p in WORKLOADS[name].sizes}
    compiled = compile(WORKLOADS[name].scop(), at=sizes)
    check_limits(mapping_of(compiled), TRN2)
    check_capacity(compiled.program, TRN2)
    if size:
        for kernel in kernels(mapping_of(compiled).nodes):
            for d in kernel.dims:
                assert 1 <= d.tile <= max(1, d.extent_hint) and d.extent_hint in (2, size)


@pytest.mark.parametrize("name", sorted(WORKLOADS))
def test_workloads_for_all_sizes(name: str) -> None:
    compiled = compile(WORKLOADS[name].scop())
    check_limits(mapping_of(compiled), TRN2)
    check_capacity(compiled.program, TRN2)
    assert not [r.message for r in compiled.unit.remarks if r.id == "general-engine"]


def test_long_rows_are_cut_to_the_scratchpad() -> None:
    scop = program(
        "X[N, M] float32 input; Y[N, M] float32 output",
        ("S", "[i, j] : 0 <= i < N and 0 <= j < M", "[i, j]", "Y[i, j] = exp(X[i, j]) + X[i, j]"),
        params="N, M",
    )
    for columns in (100, 100_000):
        compiled = compile(scop, at={"N": 130, "M": columns})
        (kernel,) = kernels(mapping_of(compiled).nodes)
        assert kernel.dim("j").tile == min(columns, 2048)
        check_capacity(compiled.program, TRN2)


@pytest.mark.parametrize("limit", [10, 11])
def test_the_size_of_a_buffer_is_bounded_for_every_size(limit: int) -> None:
    """2*h + r over a tile of at most 4 values of h and 3 of r: 11 at most, whatever N is."""
    tile = minimum(var("h") + 4, var("N")) - var("h")
    assert _at_most(tile * 2 + 3, limit) == (limit == 11)
    assert _at_most(affine(8) - maximum(var("h") - 3, var("N")) + var("h"), limit) == (limit == 11)
    assert not _at_most(var("N") - var("h"), limit)
    assert not _at_most(maximum(var("N"), 3), limit)


# -- every instance once ---------------------------------------------------------------------------------------------
Env = dict[str, int]


def outer_iterations(
    nodes: tuple[MappingNode, ...], env: Env, fixed: Mapping[str, Env]
) -> Iterator[tuple[Kernel, Env]]:
    """Every execution of every kernel, with its statement's outer iterators."""
    for node in nodes:
        if isinstance(node, Sequential):
            for value in range(node.lower.evaluate(env), node.upper.evaluate(env)):
                inner = {s: {**fixed.get(s, {}), it: value} for s, it in node.iterators}
                yield from outer_iterations(node.body, {**env, node.var: value}, {**fixed, **inner})
        else:
            own = {**env, **fixed.get(node.statement.name, {})}
            if all(c.holds(own) for c in node.guards):
                yield node, own


def tile_loops(kernel: Kernel, depth: int, env: Env) -> Iterator[Env]:
    """Every iteration of the first `depth` loops."""
    done = sum(loop.var in env for loop in kernel.loops)
    if done == depth:
        yield env
        return
    loop = kernel.loops[done]
    for value in range(loop.lower.evaluate(env), loop.upper.evaluate(env), loop.step):
        yield from tile_loops(kernel, depth, {**env, loop.var: value})


def tile_points(kernel: Kernel, env: Env) -> Iterator[Env]:
    """The box of one innermost tile."""
    depth = len(kernel.loops)
    spans = [kernel.span(depth, d.name) for d in kernel.dims]
    ranges = [range(s.start.evaluate(env), s.stop.evaluate(env)) for s in spans]
    assert all(len(r) <= s.size for r, s in zip(ranges, spans, strict=True))
    for point in itertools.product(*ranges):
        yield {**env, **{d.name: x for d, x in zip(kernel.dims, point, strict=True)}}


def copied_cells(p: Placement, env: Env) -> Counter[tuple[int, ...]]:
    """Cells of device memory that one copy touches."""
    ranges = []
    for s in p.spans:
        first, last = s.copy_start.evaluate(env), s.copy_stop.evaluate(env)
        assert last <= first or (s.start.evaluate(env) <= first and last <= s.stop.evaluate(env))
        assert s.stop.evaluate(env) - s.start.evaluate(env) <= s.size
        ranges.append(range(first, last))
    found: Counter[tuple[int, ...]] = Counter()
    for point in itertools.product(*ranges):
        at = {**env, **{s.dim: x for s, x in zip(p.spans, point, strict=True)}}
        if all(c.holds(at) for c in p.mask):
            found[tuple(e.evaluate(at) for e in p.copied.affine_subscripts)] += 1
    return found


def check_kernel(kernel: Kernel, runs: list[Env], sizes: Env) -> None:
    domain = kernel.statement.domain
    inside = set(domain.points(sizes))
    seen: Counter[tuple[int, ...]] = Counter()
    needed: dict[Placement, set[tuple[int, ...]]] = {}
    loads = [p for p in kernel.placements if isinstance(p.term, Access) and p.direction in ("load", "update")]
    for env in runs:
        for tile in tile_loops(kernel, len(kernel.loops), env):
            available = {}
            for p in loads:
                names = [loop.var for loop in kernel.loops[p.depth :]]
                available[p] = copied_cells(p, {k: v for k, v in tile.items() if k not in names})
            for point in tile_points(kernel, tile):
                instance = tuple(point[d] for d in domain.dims)
                if instance not in inside:
                    continue
                seen[instance] += 1
                for p in loads:
                    assert isinstance(p.term, Access)
                    cell = tuple(e.evaluate(point) for e in p.term.affine_subscripts)
                    assert cell in available[p], (kernel.statement.name, p.term, point)
                    needed.setdefault(p, set()).add(cell)
    assert seen == Counter(inside), kernel.statement.name
    for p in kernel.placements:
        if isinstance(p.term, Access) and p.direction in ("store", "update"):
            stored: Counter[tuple[int, ...]] = Counter()
            for env in runs:
                own: Counter[tuple[int, ...]] = Counter()
                for tile in tile_loops(kernel, p.depth, env):
                    own += copied_cells(p, tile)
                assert all(k == 1 for k in own.values())
                stored += own
            expected = {
                tuple(e.evaluate({**sizes, **dict(zip(domain.dims, x, strict=True))}) for e in p.term.affine_subscripts)
                for x in inside
            }
            assert set(stored) == expected


NESTS: dict[str, Scop] = {
    "elementwise": program(
        "X[N, N] float32 input; v[N] float32 input; Y[N, N] float32 output",
        ("S", SQUARE, "[i, j]", "Y[i, j] = exp(X[i, j] + v[i])"),
    ),
    "transposed": program(
        "X[N, N] float32 input; Y[N, N] float32 output", ("S", SQUARE, "[i, j]", "Y[i, j] = X[j, i] * 2 + X[i, j]")
    ),
    "triangle": program(
        "X[N, N] float32 input; Y[N, N] float32 inout", ("S", LOWER, "[i, j]", "Y[i, j] = relu(X[i, j]) + X[j, i]")
    ),
    "a row and a column missing": program(
        "X[N, N] float32 input; Y[N, N] float32 inout",
        ("S", "[i, j] : 1 <= i < N - 1 and 2 <= j < N", "[i, j]", "Y[i - 1, j] = X[i + 1, j - 2] - X[i, j]"),
        context="N >= 1",
    ),
    "row sums": program(
        "X[N, N] float32 input; y[N] float32 inout",
        ("S", SQUARE, "[i, j]", "y[i] += X[i, j] * X[j, i]"),
        reassociate=True,
    ),
    "sums below the diagonal": program(
        "X[N, N] float32 input; y[N] float32 inout",
        ("S", LOWER, "[i, j]", "y[i] += X[i, j] * X[i, j]"),
        reassociate=True,
    ),
    "sums above the diagonal": program(
        "X[N, N] float32 input; y[N] float32 inout", ("S", LOWER, "[i, j]", "y[j] += X[i, j]"), reassociate=True
    ),
    "the whole triangle": program(
        "X[N, N] float32 input; s[1] float32 inout", ("S", LOWER, "[i, j]", "s[0] += X[i, j]"), reassociate=True
    ),
    "product": program(
        "A[N, N] float32 input; B[N, N] float32 input; C[N, N] float32 inout",
        ("S", "[i, j, k] : 0 <= i, j, k < N", "[i, j, k]", "C[i, j] += A[i, k] * B[k, j]"),
        reassociate=True,
    ),
    "triangular product": program(
        "A[N, N] float32 input; B[N, N] float32 input; C[N, N] float32 inout",
        ("S", "[i, j, k] : 0 <= i, j < N and 0 <= k <= i", "[i, j, k]", "C[i, j] += A[i, k] * B[k, j]"),
        reassociate=True,
    ),
    "windows": program(
        "X[2*N + 3] float32 input; w[3] float32 input; y[N] float32 inout",
        ("S", "[h, r] : 0 <= h < N and 0 <= r < 3", "[h, r]", "y[h] += X[2*h + r] * w[r]"),
        reassociate=True,
    ),
    "clipped windows": program(
        "X[N] float32 input; w[3] float32 input; y[N] float32 inout",
        ("S", "[h, r] : 0 <= h < N and 0 <= r < 3 and 0 <= h + r - 1 < N", "[h, r]", "y[h] += X[h + r - 1] * w[r]"),
        reassociate=True,
    ),
    "recurrence": program(
        "X[N, N] float32 inout",
        ("S", "[i, j] : 1 <= i < N and 1 <= j < N", "[i, j]", "X[i, j] = X[i - 1, j] * 2 - X[i - 1, j - 1]"),
    ),
    "elimination": program(
        "A[N, N] float32 inout",
        ("S", "[k, i] : 0 <= k < i < N", "[k, 0, i]", "A[i, k] = A[i, k] / A[k, k]"),
        ("T", "[k, i, j] : 0 <= k < i < N and k < j < N", "[k, 1, i, j]", "A[i, j] = A[i, j] - A[i, k] * A[k, j]"),
    ),
    "reshaped": program(
        "X[N, 3, 4] float32 input; Y[N, 12] float32 output",
        ("S", "[i, c] : 0 <= i < N and 0 <= c < 12", "[i, c]", "Y[i, c] = X[i, c // 4, c % 4] + c"),
    ),
}


@pytest.mark.parametrize("fixed", [True, False], ids=["fixed", "open"])
@pytest.mark.parametrize("name", NESTS)
def test_every_instance_once_and_every_cell_once(name: str, fixed: bool) -> None:
    """On a machine so small that every loop is tiled; the code computes the same as well."""
    scop, n = NESTS[name], 6
    sizes = {"N": n}
    compiled = compile(scop, small(), sizes if fixed else None)
    mapping = mapping_of(compiled)
    check_limits(mapping, small())
    check_capacity(compiled.program, small())
    runs: dict[int, list[Env]] = {}
    for kernel, env in outer_iterations(mapping.nodes, dict(sizes), {}):
        runs.setdefault(id(kernel), []).append(env)
    for kernel in kernels(mapping.nodes):
        if not kernel.remark:
            check_kernel(kernel, runs[id(kernel)], sizes)
    arrays = inputs(scop, sizes, mode="exact")
    expected = interpret(scop, arrays, sizes, "exact")
    result = simulate(compiled.program, small(), arrays, sizes, mode="exact")
    assert result.races == ()
    assert all(np.array_equal(result.outputs[k], v) for k, v in expected.items())


# -- shapes that everybody knows -------------------------------------------------------------------------------------
def kernel_of(name: str, target: Machine = TRN2, **sizes: int) -> Kernel:
    (kernel,) = kernels(mapping_of(compile(NESTS[name], target, sizes or None)).nodes)
    return kernel


def test_a_triangle_is_masked_on_its_way_to_memory() -> None:
    kernel = kernel_of("triangle", N=50)
    (target,) = (p for p in kernel.placements if p.direction == "store")
    assert [c.expr for c in target.mask] == [var("i") - "j"]
    assert all(not op.mask for op in kernel.ops)
    box = kernel_of("elementwise", N=50)
    assert all(not p.mask and p.fill is None for p in box.placements)


def test_a_reduction_over_a_triangle_masks_its_values() -> None:
    kernel = kernel_of("the whole triangle", N=50)
    masked = [op for op in kernel.ops if op.mask]
    assert masked or any(p.mask and p.fill == 0.0 for p in kernel.placements if p.direction == "load")


def test_windows_are_copied_once() -> None:
    """Rows of a depthwise convolution: three taps along each axis, one copy of the rows they reach."""
    sizes = {"C": 32, "H": 10, "W": 20}
    (kernel,) = kernels(mapping_of(compile(WORKLOADS["depthwise-conv"].scop(), at=sizes)).nodes)
    (image,) = (p for p in kernel.placements if p.windows)
    assert isinstance(image.term, Access) and image.term.tensor == "X" and image.partition == "c"
    assert {str(w.expr) for w in image.windows} == {"h + r", "s + w"}
    names = {w.axis: w.name for w in image.windows}
    assert image.copied == Access("X", (var("c"), var(names[1]), var(names[2])))
    for w, extent in zip(image.windows, (10, 20), strict=True):
        span = image.span(w.name)
        assert span is not None and span.size == extent + 2


def test_a_contraction_has_its_reduced_dimension_on_the_partitions_of_both_factors() -> None:
    (kernel,) = kernels(mapping_of(compile(NESTS["product"], at={"N": 300})).nodes)
    (main,) = (op for op in kernel.ops if op.spec == "matmul")
    lanes = dict(main.lanes)
    assert lanes["k"] == ("k",) and {*lanes["m"], *lanes["n"]} == {"i", "j"}
    for _, term in main.operands:
        assert kernel.placement(term).partition == "k"
    assert isinstance(main.target, Temp) and kernel.accumulator == main.target
    assert kernel.placement(main.target).memory == "psum"
    assert kernel.placement(main.target).partition == lanes["m"][0]


@pytest.mark.parametrize("names", [("i", "j", "k"), ("a", "b", "c"), ("k", "j", "i"), ("n", "m", "p")])
@pytest.mark.parametrize("swapped", [False, True])
def test_a_contraction_is_found_whatever_its_dimensions_are_called(names: tuple[str, str, str], swapped: bool) -> None:
    i, j, k = names
    product = f"B[{k}, {j}] * A[{i}, {k}]" if swapped else f"A[{i}, {k}] * B[{k}, {j}]"
    scop = program(
        "A[N, N] float32 input; B[N, N] float32 input; C[N, N] float32 inout",
        ("S", f"[{i}, {j}, {k}] : 0 <= {i}, {j}, {k} < N", f"[{i}, {j}, {k}]", f"C[{i}, {j}] += {product}"),
        reassociate=True,
    )
    (kernel,) = kernels(mapping_of(compile(scop, at={"N": 200})).nodes)
    assert "matmul" in [op.spec for op in kernel.ops]


def test_loops_around_a_reduction_begin_with_what_is_kept() -> None:
    (kernel,) = kernels(mapping_of(compile(NESTS["product"], at={"N": 700})).nodes)
    reduced = [loop.dim == "k" for loop in kernel.loops]
    assert reduced == sorted(reduced)
    assert kernel.reduce_depth == reduced.index(True)


# -- what is not planned runs on the general engine ------------------------------------------------------------------
GENERAL: dict[str, tuple[Scop, str]] = {
    "scatter": (
        program("A[N] float32 inout; k[N] int32 input", ("S", LINE, "[i]", "A[k[i]] = 3"), context="N >= 1"),
        r"the write A\[k\[i\]\] is data-dependent",
    ),
    "a subscript that is not linear": (
        program("A[N] float32 input; Y[N] float32 output", ("S", LINE, "[i]", "Y[i] = A[i // 2]")),
        r"the subscript \(\(i\)//2\) of A is not linear",
    ),
    "a domain with holes": (
        program("Y[N, N] float32 inout", ("S", f"{SQUARE} and (i + j) mod 2 = 0", "[i, j]", "Y[i, j] = 1")),
        "the domain is not a box with linear constraints",
    ),
    "no instruction": (
        program("n[N] int32 inout", ("S", LINE, "[i]", "n[i] = relu(n[i])")),
        "no instruction of trn2 computes operator 'relu' as int32",
    ),
}


@pytest.mark.parametrize("name", GENERAL)
def test_general_statements_say_why(name: str) -> None:
    scop, reason = GENERAL[name]
    compiled = compile(scop, at={"N": 5})
    (kernel,) = kernels(mapping_of(compiled).nodes)
    assert not kernel.ops
    (remark,) = (r for r in compiled.unit.remarks if r.id == "general-engine")
    assert re.search(reason, remark.message)
    assert remark.message == f"S runs on the general engine: {kernel.remark}"
    arrays = inputs(scop, {"N": 5}, mode="exact")
    expected = interpret(scop, arrays, {"N": 5}, "exact")
    found = simulate(compiled.program, TRN2, arrays, {"N": 5}, mode="exact").outputs
    assert all(np.array_equal(found[k], v) for k, v in expected.items())


def test_writes_that_only_the_shape_of_the_domain_keeps_apart() -> None:
    """i and j name one cell with i + j, and the instances lie on a line: the box of a tile would hold others too."""
    scop = program(
        "X[2*N, 2*N] float32 input; Y[2*N] float32 inout",
        ("S", "[i, j] : 0 <= i < N and i <= j <= i + 1 and 3*j <= 4*i", "[i, j]", "Y[i + j] = X[i, j]"),
    )
    compiled = compile(scop, small(), {"N": 5})
    arrays = inputs(scop, {"N": 5}, mode="exact")
    expected = interpret(scop, arrays, {"N": 5}, "exact")
    found = simulate(compiled.program, small(), arrays, {"N": 5}, mode="exact").outputs
    assert all(np.array_equal(found[k], v) for k, v in expected.items())


def test_calls_cannot_be_compiled() -> None:
    scop = program(
        "A[N] float32 inout", ("S", "[]", "[0]", "{may_read: [A], may_write: [A]}"), ("T", LINE, "[1, i]", "A[i] += 1")
    )
    with pytest.raises(UnsupportedError, match="S is an opaque call: nothing is known about what it computes"):
        compile(scop, at={"N": 5})


def test_two_gathers_in_one_access_run_on_the_general_engine() -> None:
    scop = program(
        "A[N, N] float32 input; k[N] int32 input; Y[N] float32 output",
        ("S", LINE, "[i]", "Y[i] = A[k[i], k[i]]"),
        context="N >= 1",
    )
    (remark,) = compile(scop, at={"N": 5}).remarks
    assert "A[k[i], k[i]] has data-dependent subscripts side by side or nested" in remark.message


def test_a_use_that_no_instruction_computes_leaves_the_reduction_alone() -> None:
    """The reduction keeps its kernel, the use gets one of its own."""
    scop = program(
        "X[N, N] int32 input; C[N] int32 temp; D[N] int32 output",
        ("S", LINE, "[0, i]", "C[i] = 0"),
        ("R", SQUARE, "[1, i, j]", "C[i] += X[i, j]"),
        ("U", LINE, "[2, i]", "D[i] = relu(C[i])"),
    )
    compiled = compile(scop, at={"N": 5})
    first, second = kernels(mapping_of(compiled).nodes)
    assert [op.spec for op in first.ops] and not second.ops
    assert second.statement.name == "U" and "relu" in second.remark


def test_the_extent_hint_of_an_open_size_is_a_guess_for_ranking_only() -> None:
    kernel = kernel_of("elementwise")
    assert kernel.dim("i").extent_hint == 512
    assert [loop.upper for loop in kernel.loops] and all("N" in loop.upper.variables() for loop in kernel.loops)
