"""The judge's question answered by looking at every pair of instances: shares nothing with the judge.

Only the instances themselves come from `polyopt.sets`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from polyopt.ir import (
    Access,
    Apply,
    Const,
    Expr,
    Index,
    OpaqueCall,
    Read,
    Scop,
    Statement,
    access_chain,
    accesses,
)
from polyopt.sets import Affine

__all__ = ["Answer", "Instances", "enumerate_verdict", "instances_at", "is_whole"]

Cell = tuple[int, ...]
Point = tuple[int, ...]
Instances = Mapping[str, Sequence[Point]]

EXACT, MAY, CALL = "exact", "may", "call"
BITS = {"int64": 64, "int32": 32, "int16": 16, "int8": 8}


@dataclass(frozen=True, slots=True)
class Answer:
    """verdict, and for illegal the pair: kind, tensor, cell, source, its point, sink, its point."""

    verdict: str
    witness: tuple[str, str, Cell, str, Point, str, Point] | None = None


@dataclass(frozen=True, slots=True)
class _Use:
    """Cells that one access of one instance may touch; `how` says whether it touches all of them."""

    tensor: int
    cells: frozenset[Cell]
    how: str
    reads: bool
    writes: bool
    combine: str | None
    value: Expr | None


@dataclass(frozen=True, slots=True)
class _Event:
    key: tuple[Point, int]
    statement: str
    point: Point
    vector: Point
    uses: tuple[_Use, ...]


def instances_at(scop: Scop, sizes: Mapping[str, int]) -> dict[str, list[Point]]:
    """Every instance of each statement."""
    return {s.name: s.domain.points(sizes) for s in scop.statements}


def enumerate_verdict(
    scop: Scop,
    vectors: Mapping[str, Sequence[Affine]],
    sizes: Mapping[str, int],
    free: Sequence[int] = (),
) -> Answer:
    """The verdict at fixed sizes.  free: entries of the vectors that may carry nothing."""
    events = sorted(_events(scop, vectors, sizes), key=lambda e: e.key)
    perhaps = False
    for a, b in itertools.combinations(events, 2):
        if _is_kept(a.vector, b.vector, free):
            continue
        certain, uncertain = _conflicts(scop, a, b)
        if certain:
            rank, tensor, cell = min(certain)
            kind = ("flow", "anti", "output")[rank]
            name = scop.tensors[tensor].name
            return Answer("illegal", (kind, name, cell, a.statement, a.point, b.statement, b.point))
        perhaps = perhaps or uncertain
    return Answer("unknown" if perhaps else "legal")


def _is_kept(a: Point, b: Point, free: Sequence[int]) -> bool:
    for k, (x, y) in enumerate(zip(a, b, strict=True)):
        if x != y:
            return x < y and k not in free
    return False


def _conflicts(scop: Scop, a: _Event, b: _Event) -> tuple[list[tuple[int, int, Cell]], bool]:
    """(rank of the kind, tensor, smallest common cell) of sure conflicts, and whether there may be others."""
    certain: list[tuple[int, int, Cell]] = []
    uncertain = False
    for u, w in itertools.product(a.uses, b.uses):
        common = u.cells & w.cells
        if u.tensor != w.tensor or not common or not (u.writes or w.writes) or _may_swap(scop, u, w):
            continue
        if MAY in (u.how, w.how) and CALL not in (u.how, w.how):
            uncertain = True
            continue
        ranks = [u.writes and w.reads, u.reads and w.writes, u.writes and w.writes]
        certain.append((ranks.index(True), u.tensor, min(common)))
    return certain, uncertain


def _events(scop: Scop, vectors: Mapping[str, Sequence[Affine]], sizes: Mapping[str, int]) -> Iterator[_Event]:
    length = max((len(s.order) for s in scop.statements), default=0)
    for position, s in enumerate(scop.statements):
        for point in instances_at(scop, sizes)[s.name]:
            env = {**sizes, **dict(zip(s.iterators, point, strict=True))}
            old = [e.evaluate(env) for e in s.order] + [0] * (length - len(s.order))
            new = tuple(e.evaluate(env) for e in vectors[s.name])
            yield _Event((tuple(old), position), s.name, point, new, tuple(_uses(scop, s, env, sizes)))


def _uses(scop: Scop, s: Statement, env: Mapping[str, int], sizes: Mapping[str, int]) -> Iterator[_Use]:
    names = [t.name for t in scop.tensors]
    if isinstance(s.body, OpaqueCall):
        reads, writes = set(s.body.may_read), set(s.body.may_write)
        for n in sorted(reads | writes):
            everything = _box([range(e) for e in scop.tensor(n).sizes(sizes)])
            yield _Use(names.index(n), everything, CALL, n in reads, n in writes, None, None)
        return
    target, combine = s.body.target, s.body.combine
    where = _cells(scop, target, env, sizes)
    yield _Use(names.index(target.tensor), *where, combine is not None, True, combine, s.body.value)
    for access in (*access_chain(target)[1:], *accesses(s.body.value)):
        yield _Use(names.index(access.tensor), *_cells(scop, access, env, sizes), True, False, None, None)


def _cells(scop: Scop, access: Access, env: Mapping[str, int], sizes: Mapping[str, int]) -> tuple[frozenset[Cell], str]:
    extents = scop.tensor(access.tensor).sizes(sizes)
    axes: list[Sequence[int]] = [
        [e.evaluate(env)] if isinstance(e, Affine) else range(n)
        for e, n in zip(access.subscripts, extents, strict=True)
    ]
    return _box(axes), EXACT if access.is_exact else MAY


def _box(axes: Sequence[Sequence[int]]) -> frozenset[Cell]:
    return frozenset(itertools.product(*axes))


def _may_swap(scop: Scop, u: _Use, w: _Use) -> bool:
    """Two combinations into a cell by the same operator, where every step stores into the cell's type."""
    if u.combine is None or u.combine != w.combine:
        return False
    dtype = scop.tensors[u.tensor].dtype
    values = [x.value for x in (u, w) if x.value is not None]
    if dtype not in BITS and dtype not in ("uint8", "bool"):
        return u.combine in ("min", "max") or scop.reassociate
    if u.combine in ("min", "max"):
        return all(_fits(v, _span(dtype), scop) for v in values)
    return dtype != "bool" and all(is_whole(v, scop) for v in values)


def _span(dtype: str) -> tuple[int, int]:
    if dtype in BITS:
        return -(2 ** (BITS[dtype] - 1)), 2 ** (BITS[dtype] - 1) - 1
    return (0, 255) if dtype == "uint8" else (0, 1)


def _fits(value: Expr, span: tuple[int, int], scop: Scop) -> bool:
    """Whether the value surely is one of the cell's type: nothing wraps."""
    if isinstance(value, Const):
        return isinstance(value.value, int) and span[0] <= value.value <= span[1]
    if isinstance(value, Read):
        dtype = scop.tensor(value.access.tensor).dtype
        if dtype not in BITS and dtype not in ("uint8", "bool"):
            return False
        low, high = _span(dtype)
        return span[0] <= low and high <= span[1]
    if isinstance(value, Apply) and value.op in ("min", "max", "select"):
        return all(_fits(a, span, scop) for a in (value.args[1:] if value.op == "select" else value.args))
    return False


def is_whole(value: Expr, scop: Scop) -> bool:
    """Whether the value surely is an integer, computed without rounding."""
    if isinstance(value, Const):
        return isinstance(value.value, int)
    if isinstance(value, Read):
        return scop.tensor(value.access.tensor).dtype in (*BITS, "uint8", "bool")
    if isinstance(value, Apply):
        args = value.args[1:] if value.op == "select" else value.args
        known = ("+", "-", "*", "neg", "abs", "min", "max", "select", "floor")
        return value.op in known and all(is_whole(a, scop) for a in args)
    return isinstance(value, Index)
