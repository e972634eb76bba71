"""Random small programs and schedules, and the verdict by enumeration: shares nothing with isl."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hypothesis import strategies as st

from polyopt.ir import (
    Access,
    Apply,
    Assign,
    Const,
    Expr,
    Indirect,
    OpaqueCall,
    Read,
    Scop,
    Statement,
    Tensor,
    access_chain,
)
from polyopt.ir import accesses as value_accesses
from polyopt.sets import Affine, Constraint, Set, affine, var

EXTENT = 28
"""Extent of every dimension of a tensor of a random program; subscripts lie inside for sizes up to LARGEST."""
LARGEST = 4
REACH = range(-1, LARGEST + 3)
"""Values that an iterator of a random program may have for sizes up to LARGEST."""


@dataclass(frozen=True, slots=True)
class RandomProgram:
    """A program and the constraints of its domains, once more as plain values."""

    scop: Scop
    rows: tuple[tuple[str, tuple[Constraint, ...]], ...]

    def instances(self, sizes: Mapping[str, int]) -> dict[str, list[tuple[int, ...]]]:
        """Every instance of each statement, found by trying all values."""
        found: dict[str, list[tuple[int, ...]]] = {}
        for name, rows in self.rows:
            dims = self.scop.statement(name).iterators
            found[name] = [
                point
                for point in itertools.product(REACH, repeat=len(dims))
                if all(row.holds({**sizes, **dict(zip(dims, point, strict=True))}) for row in rows)
            ]
        return found


# -- the oracle -------------------------------------------------------------------------------------------------------
Cell = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Use:
    """Cells that one access of one instance may touch; `sure` when it touches all of them."""

    tensor: int
    cells: frozenset[Cell]
    kind: str  # exact | may | call
    reads: bool
    writes: bool
    combine: str | None


@dataclass(frozen=True, slots=True)
class Event:
    key: tuple[tuple[int, ...], int]
    statement: str
    point: tuple[int, ...]
    vector: tuple[int, ...]
    uses: tuple[Use, ...]


@dataclass(frozen=True, slots=True)
class Answer:
    """verdict, and for illegal the pair: kind, tensor, cell, source, sink."""

    verdict: str
    witness: tuple[str, str, Cell, str, tuple[int, ...], str, tuple[int, ...]] | None = None


def enumerate_verdict(
    scop: Scop,
    instances: Mapping[str, Sequence[tuple[int, ...]]],
    vectors: Mapping[str, Sequence[Affine]],
    sizes: Mapping[str, int],
    parallel: Sequence[int] = (),
) -> Answer:
    """The verdict at fixed sizes by looking at every pair of instances."""
    events = _events(scop, instances, vectors, sizes)
    perhaps = False
    for a, b in itertools.combinations(events, 2):
        if _kept(a.vector, b.vector, parallel):
            continue
        certain, uncertain = _conflicts(scop, a, b)
        if certain:
            rank, tensor, cell = min(certain)
            kind = ("flow", "anti", "output")[rank]
            name = scop.tensors[tensor].name
            return Answer("illegal", (kind, name, cell, a.statement, a.point, b.statement, b.point))
        perhaps = perhaps or uncertain
    return Answer("unknown" if perhaps else "legal")


def conflicting_pairs(
    scop: Scop, instances: Mapping[str, Sequence[tuple[int, ...]]], sizes: Mapping[str, int]
) -> tuple[list[tuple[Event, Event]], list[tuple[Event, Event]]]:
    """(pairs of instances, earlier first, that must keep their order, pairs that perhaps must)."""
    sure: list[tuple[Event, Event]] = []
    perhaps: list[tuple[Event, Event]] = []
    events = _events(scop, instances, {s.name: s.order for s in scop.statements}, sizes)
    for a, b in itertools.combinations(events, 2):
        certain, uncertain = _conflicts(scop, a, b)
        sure += [(a, b)] if certain else []
        perhaps += [(a, b)] if uncertain and not certain else []
    return sure, perhaps


def _kept(a: tuple[int, ...], b: tuple[int, ...], parallel: Sequence[int]) -> bool:
    for k, (x, y) in enumerate(zip(a, b, strict=True)):
        if x != y:
            return x < y and k not in parallel
    return False


def _conflicts(scop: Scop, a: Event, b: Event) -> tuple[list[tuple[int, int, Cell]], bool]:
    certain: list[tuple[int, int, Cell]] = []
    uncertain = False
    for u, w in itertools.product(a.uses, b.uses):
        common = u.cells & w.cells
        if u.tensor != w.tensor or not common or not (u.writes or w.writes) or _may_swap(scop, u, w):
            continue
        if "may" in (u.kind, w.kind) and "call" not in (u.kind, w.kind):
            uncertain = True
            continue
        ranks = [u.writes and w.reads, u.reads and w.writes, u.writes and w.writes]
        certain.append((ranks.index(True), u.tensor, min(common)))
    return certain, uncertain


def _may_swap(scop: Scop, u: Use, w: Use) -> bool:
    if u.combine is None or u.combine != w.combine:
        return False
    exact = scop.tensors[u.tensor].dtype == "int32" or u.combine in ("min", "max")
    return exact or scop.reassociate


def _events(
    scop: Scop,
    instances: Mapping[str, Sequence[tuple[int, ...]]],
    vectors: Mapping[str, Sequence[Affine]],
    sizes: Mapping[str, int],
) -> list[Event]:
    old_length = max(len(s.order) for s in scop.statements)
    new_length = max(len(v) for v in vectors.values())
    events: list[Event] = []
    for position, s in enumerate(scop.statements):
        for point in instances[s.name]:
            env = {**sizes, **dict(zip(s.iterators, point, strict=True))}
            old = [e.evaluate(env) for e in s.order] + [0] * (old_length - len(s.order))
            new = [e.evaluate(env) for e in vectors[s.name]] + [0] * (new_length - len(vectors[s.name]))
            events.append(Event((tuple(old), position), s.name, point, tuple(new), tuple(_uses(scop, s, env))))
    return sorted(events, key=lambda e: e.key)


def _uses(scop: Scop, s: Statement, env: Mapping[str, int]) -> list[Use]:
    names = [t.name for t in scop.tensors]
    if isinstance(s.body, OpaqueCall):
        reads, writes = set(s.body.may_read), set(s.body.may_write)
        return [
            Use(names.index(n), _anywhere(scop, n), "call", n in reads, n in writes, None)
            for n in sorted(reads | writes)
        ]
    target, combine = s.body.target, s.body.combine
    own = None if _wraps(scop, s.body) else combine
    found = [Use(names.index(target.tensor), *_cells(scop, target, env), combine is not None, True, own)]
    for access in (*access_chain(target)[1:], *value_accesses(s.body.value)):
        found.append(Use(names.index(access.tensor), *_cells(scop, access, env), True, False, None))
    return found


def _wraps(scop: Scop, body: Assign) -> bool:
    """Whether a sum that may not fit its integer type is combined by minimum or maximum: then the order matters."""
    integral = scop.tensor(body.target.tensor).dtype == "int32"
    return integral and body.combine in ("min", "max") and isinstance(body.value, Apply)


def _anywhere(scop: Scop, name: str) -> frozenset[Cell]:
    extents = [range(e.const) for e in scop.tensor(name).shape]
    return frozenset(itertools.product(*extents))


def _cells(scop: Scop, access: Access, env: Mapping[str, int]) -> tuple[frozenset[Cell], str]:
    axes: list[Sequence[int]] = []
    for s, extent in zip(access.subscripts, scop.tensor(access.tensor).shape, strict=True):
        axes.append([s.evaluate(env)] if isinstance(s, Affine) else range(extent.const))
    return frozenset(itertools.product(*axes)), "exact" if access.is_exact else "may"


# -- the strategies ---------------------------------------------------------------------------------------------------
@st.composite
def programs(draw: st.DrawFn, *, data_dependent: bool = True) -> RandomProgram:
    """One to three statements of up to two iterators on two small tensors, one size N."""
    tensors = (
        Tensor("A", (affine(EXTENT),), draw(st.sampled_from(["float32", "int32"])), "inout"),
        Tensor("B", (affine(EXTENT), affine(EXTENT)), "float32", "inout"),
        Tensor("idx", (affine(EXTENT),), "int32", "input"),
    )
    count = draw(st.integers(1, 3))
    statements: list[Statement] = []
    rows: list[tuple[str, tuple[Constraint, ...]]] = []
    for k in range(count):
        name = f"S{k}"
        dims = ("i", "j")[: draw(st.integers(0 if count > 1 else 1, 2))]
        own = _domain_rows(draw, dims)
        domain = Set.from_constraints(name, dims, own, ("N",))
        body = _body(draw, tensors, dims, data_dependent)
        statements.append(Statement(name, domain, _order(draw, dims, k), body))
        rows.append((name, own))
    context = Set.from_constraints("", (), [Constraint(var("N") - draw(st.integers(0, 2)))], ("N",))
    scop = Scop("random", ("N",), context, tensors, tuple(statements), draw(st.booleans()))
    return RandomProgram(scop, tuple(rows))


def _domain_rows(draw: st.DrawFn, dims: Sequence[str]) -> tuple[Constraint, ...]:
    rows: list[Constraint] = []
    for k, d in enumerate(dims):
        low = draw(st.sampled_from([affine(0), affine(1), *([var(dims[0])] if k else [])]))
        high = draw(st.sampled_from([affine(2), var("N"), var("N"), var("N") + 1, *([var(dims[0]) + 1] if k else [])]))
        rows += [Constraint(var(d) - low), Constraint(high - 1 - var(d))]
    return tuple(rows)


def _subscript(draw: st.DrawFn, dims: Sequence[str]) -> Affine:
    total = affine(draw(st.integers(9, 11)))
    for d in dims:
        total = total + var(d) * draw(st.sampled_from([0, 1, 1, -1, 2]))
    if draw(st.integers(0, 5)) == 0:
        total = total % 2
    elif draw(st.integers(0, 5)) == 0:
        total = total // 2
    return total


def _access(draw: st.DrawFn, tensor: Tensor, dims: Sequence[str], data_dependent: bool) -> Access:
    subscripts: list[Affine | Indirect] = [_subscript(draw, dims) for _ in tensor.shape]
    if data_dependent and draw(st.integers(0, 7)) == 0:
        subscripts[0] = Indirect(Access("idx", (_subscript(draw, dims),)))
    return Access(tensor.name, tuple(subscripts))


def _body(draw: st.DrawFn, tensors: Sequence[Tensor], dims: Sequence[str], data_dependent: bool) -> Assign | OpaqueCall:
    written = tensors[:2]
    if data_dependent and draw(st.integers(0, 9)) == 0:
        names = draw(st.lists(st.sampled_from([t.name for t in written]), min_size=1, max_size=2, unique=True))
        return OpaqueCall(tuple(names), tuple(names[:1]))
    target = draw(st.sampled_from(written))
    combine = draw(st.sampled_from([None, None, None, "+", "+", "max"]))
    whole = combine == "+" and target.dtype == "int32"
    sources = [t for t in tensors[:2] if not (whole and t.dtype == "float32")]
    value: Expr = Const(1)
    for _ in range(draw(st.integers(0, 2))):
        if sources:
            value = Apply("+", (Read(_access(draw, draw(st.sampled_from(sources)), dims, data_dependent)), value))
    return Assign(_access(draw, target, dims, data_dependent), value, combine)


def _order(draw: st.DrawFn, dims: Sequence[str], position: int) -> tuple[Affine, ...]:
    entries = [var(d) * draw(st.sampled_from([1, 1, 1, -1])) for d in draw(st.permutations(dims))]
    if draw(st.booleans()):
        entries.insert(0, affine(draw(st.integers(0, position))))
    return tuple(entries)


@st.composite
def schedules(draw: st.DrawFn, scop: Scop) -> dict[str, tuple[Affine, ...]]:
    """The original order changed a little: shifted, skewed, reversed, interchanged, tiled, fused or distributed."""
    vectors: dict[str, tuple[Affine, ...]] = {}
    style = draw(st.sampled_from(["padded", "padded", "free"]))
    length = scop.order_length()
    for k, s in enumerate(scop.statements):
        padded = [*s.order, *[affine(0)] * (length - len(s.order)), affine(k)]
        entries = padded if style == "padded" else [var(d) for d in s.iterators]
        for _ in range(draw(st.integers(0, 2))):
            entries = _change(draw, entries, s.iterators)
        vectors[s.name] = tuple(entries) or (affine(draw(st.integers(0, 2))),)
    return vectors


def _change(draw: st.DrawFn, entries: list[Affine], dims: Sequence[str]) -> list[Affine]:
    if not entries:
        return entries
    k = draw(st.integers(0, len(entries) - 1))
    what = draw(st.sampled_from(["shift", "skew", "reverse", "swap", "tile", "insert", "drop"]))
    changed = list(entries)
    if what == "shift":
        changed[k] = changed[k] + draw(st.sampled_from([-1, 1, 2]))
    elif what == "skew" and dims:
        changed[k] = changed[k] + var(draw(st.sampled_from(list(dims))))
    elif what == "reverse":
        changed[k] = -changed[k]
    elif what == "swap":
        other = draw(st.integers(0, len(entries) - 1))
        changed[k], changed[other] = changed[other], changed[k]
    elif what == "tile":
        changed.insert(0, changed[k] // 2)
    elif what == "insert":
        changed.insert(0, affine(draw(st.integers(0, 2))))
    elif what == "drop" and len(changed) > 1:
        del changed[k]
    return changed
