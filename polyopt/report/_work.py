"""What a program has to do, whoever runs it: scalar operations, compulsory memory traffic, its element type."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from polyopt.ir import (
    Access,
    Apply,
    Assign,
    Const,
    Expr,
    Indirect,
    Scop,
    Statement,
    Tensor,
    Uninterpreted,
    access_relation,
    accesses,
    children,
)
from polyopt.machine import Machine
from polyopt.sets import Affine, Map, Set, last_sources

__all__ = ["Work", "compute_compulsory_bytes", "compute_work", "count_points", "operations_per_instance"]


@dataclass(frozen=True, slots=True)
class Work:
    """Sizes fixed.  `multiply_adds` are those among `flops` that a reduction `+=` of a product makes (2 flops each).

    dtype: the element type whose peak the program is measured against.  compulsory_bytes: every input cell that is read
    before it is written is loaded once, every cell of an output that is written is stored once.
    """

    flops: int
    multiply_adds: int
    dtype: str
    compulsory_bytes: int


def compute_work(
    scop: Scop, machine: Machine, sizes: Mapping[str, int], inputs: Mapping[str, npt.NDArray[Any]] | None = None
) -> Work:
    """Count over the domains as written.  An opaque call counts nothing.  inputs: see `compute_compulsory_bytes`."""
    flops: dict[str, int] = {}
    multiply_adds = 0
    for s in scop.statements:
        if isinstance(s.body, Assign):
            points = count_points(s.domain, sizes)
            flops[s.name] = points * operations_per_instance(s.body)
            multiply_adds += points * _is_multiply_add(s.body)
    return Work(
        sum(flops.values()),
        multiply_adds,
        _peak_dtype(scop, machine, flops),
        compute_compulsory_bytes(scop, sizes, inputs),
    )


def operations_per_instance(body: Assign) -> int:
    """1 per scalar operation that reads a value: arithmetic, function, comparison, selection, combination.

    Casts, subscripts and constants folded before the run count nothing.  A multiply-add counts 2.
    """
    return _operations(body.value) + (body.combine is not None)


def _operations(expr: Expr) -> int:
    below = sum(_operations(c) for c in children(expr))
    is_operation = isinstance(expr, (Apply, Uninterpreted)) and not _is_constant(expr)
    return below + is_operation


def _is_constant(expr: Expr) -> bool:
    parts = children(expr)
    return all(_is_constant(p) for p in parts) if parts else isinstance(expr, Const)


def _is_multiply_add(body: Assign) -> bool:
    value = body.value
    return body.combine == "+" and isinstance(value, Apply) and value.op == "*" and not _is_constant(value)


def count_points(points: Set, sizes: Mapping[str, int]) -> int:
    """The number of points at fixed sizes; dimensions that no constraint ties together are counted apart."""
    fixed = points.fix(sizes)
    parts = fixed.basic()
    if not parts:
        return 0
    if len(parts) > 1:
        return fixed.count()
    total = 1
    for group in _tied_dims(fixed.dims, [c.expr.variables() for c in parts[0]]):
        total *= fixed.project_onto(group).count()
    return total if fixed.dims else fixed.count()


def _tied_dims(dims: tuple[str, ...], rows: list[frozenset[str]]) -> list[tuple[str, ...]]:
    """The connected components of dimensions that occur together in a row."""
    groups: list[set[str]] = [{d} for d in dims]
    for row in rows:
        hit = [g for g in groups if g & row]
        if hit:
            groups = [g for g in groups if not g & row] + [set().union(*hit)]
    return sorted(tuple(d for d in dims if d in g) for g in groups)


def _peak_dtype(scop: Scop, machine: Machine, flops: Mapping[str, int]) -> str:
    """The type whose operands most operations read; the one with the lowest peak when none of them has a peak."""
    tensors = scop.tensor_map()
    totals = dict.fromkeys(machine.peaks, 0)
    for name, amount in flops.items():
        body = scop.statement(name).assign
        read = [tensors[a.tensor].dtype for a in accesses(body.value)] or [tensors[body.target.tensor].dtype]
        with_peak = [d for d in read if d in totals]
        if with_peak:
            totals[min(with_peak, key=lambda d: (machine.peaks[d], d))] += amount
    best = max(totals, key=lambda d: (totals[d], -machine.peaks[d], d))
    return best if totals[best] else min(machine.peaks, key=lambda d: (machine.peaks[d], d))


def compute_compulsory_bytes(
    scop: Scop, sizes: Mapping[str, int], inputs: Mapping[str, npt.NDArray[Any]] | None = None
) -> int:
    """Bytes that any run moves from and to device memory: see `Work`.

    inputs: the values of the tensors that subscript others, to know which rows a gather touches; without them a gather
    counts one cell, the least it can touch.  Opaque calls, of which nothing is known, count nothing.
    """
    total = 0
    for tensor in scop.tensors:
        cells = 0
        if tensor.role in ("input", "inout"):
            cells += _count_cells(_first_reads(scop, tensor, sizes), tensor, sizes)
        if tensor.role == "input":
            gathered = (_gathered_cells(s, a, scop, sizes, inputs or {}) for s, a in _gathers(scop, tensor))
            cells = max(cells, *gathered, 0)
        if tensor.role in ("output", "inout"):
            cells += _count_cells([r for _, r in _writes(scop, tensor, sizes)], tensor, sizes)
        total += cells * tensor.element.element_bytes
    return total


def _relation(scop: Scop, statement: Statement, access: Access, sizes: Mapping[str, int]) -> Map:
    domain = statement.domain.fix(sizes)
    return access_relation(domain, access, scop.tensor(access.tensor), scop.params).fix_params(sizes)


def _writes(scop: Scop, tensor: Tensor, sizes: Mapping[str, int]) -> list[tuple[Statement, Map]]:
    """Exact writes; one at a data-dependent place may as well not happen."""
    found = [s for s in scop.statements if isinstance(s.body, Assign) and s.assign.target.tensor == tensor.name]
    return [(s, _relation(scop, s, s.assign.target, sizes)) for s in found if s.assign.target.is_exact]


def _reads(scop: Scop, tensor: Tensor) -> list[tuple[Statement, Access]]:
    found = [(s, a) for s in scop.statements if isinstance(s.body, Assign) for a in s.body.reads()]
    return [(s, a) for s, a in found if a.tensor == tensor.name]


def _gathers(scop: Scop, tensor: Tensor) -> list[tuple[Statement, Access]]:
    return [(s, a) for s, a in _reads(scop, tensor) if not a.is_exact]


def _first_reads(scop: Scop, tensor: Tensor, sizes: Mapping[str, int]) -> list[Map]:
    """Exact reads, without those that find a value written before by the program itself."""
    writes = _writes(scop, tensor, sizes)
    orders = [scop.schedule_map(s).fix_params(sizes) for s in scop.statements]
    found: list[Map] = []
    for statement, access in _reads(scop, tensor):
        if access.is_exact:
            read = _relation(scop, statement, access, sizes)
            flow = last_sources(sinks=[read], must_sources=[w for _, w in writes], orders=orders)
            served = [f.range(statement.iterators) for f in flow]
            for part in served:
                read = read.intersect_domain(statement.domain.fix(sizes).subtract(part))
            found.append(read)
    return found


def _count_cells(relations: list[Map], tensor: Tensor, sizes: Mapping[str, int]) -> int:
    dims = [f"a{k}" for k in range(len(tensor.shape))]
    images = [r.range(dims) for r in relations]
    total = images[0] if images else None
    for image in images[1:]:
        total = image if total is None else total.union(image)
    return 0 if total is None else count_points(total, sizes)


def _gathered_cells(
    statement: Statement,
    access: Access,
    scop: Scop,
    sizes: Mapping[str, int],
    inputs: Mapping[str, npt.NDArray[Any]],
) -> int:
    """A lower bound on the cells touched, exact when the other subscripts vary freely from the data-dependent one."""
    domain = statement.domain.fix(sizes)
    indirect = [s for s in access.subscripts if isinstance(s, Indirect)]
    (first, *more) = indirect
    values = inputs.get(first.access.tensor)
    if domain.is_empty() or more or values is None or not first.access.is_exact:
        return 0 if domain.is_empty() else 1
    where, rest = first.access.affine_subscripts, [s for s in access.subscripts if isinstance(s, Affine)]
    places = Map.from_exprs(domain, "", list(where)).range([f"i{k}" for k in range(len(where))])
    others = Map.from_exprs(domain, "", rest).range([f"o{k}" for k in range(len(rest))])
    pairs = Map.from_exprs(domain, "", [*where, *rest]).range([*places.dims, *others.dims])
    chosen = np.array(places.points(sizes), dtype=np.int64).reshape(-1, len(where))
    distinct = len(np.unique(values[tuple(chosen.T)]))
    columns = count_points(others, sizes)
    is_product = count_points(pairs, sizes) == len(chosen) * columns
    return distinct * columns if is_product else max(distinct, 1)
