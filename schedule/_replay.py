"""Running a witness: the original order and the judged one, side by side, at the sizes of the witness."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from polyopt.ir import Access, Assign, Read, Scop, Statement, Tensor, Uninterpreted, walk
from polyopt.reference import inputs, interpret
from polyopt.schedule._dependences import FLOW, OUTPUT
from polyopt.schedule._orders import NewOrder, ScheduleLike, fixed_scop, read_order
from polyopt.schedule._verdict import Instance, Verdict, Witness
from polyopt.sets import Affine, Set, affine, function_exprs

__all__ = ["MAX_REPLAYED_INSTANCES", "Replay", "replay"]

MAX_REPLAYED_INSTANCES = 500_000
"""More than these are not interpreted, since that would take minutes."""

_SEEN, _PROBE = "_seen", "_probe"
_BEFORE, _DURING, _AFTER = 0, 1, 2
"""Last entry of every order vector: the probe runs just before or just after one instance."""

Value = int | float | bool | str


@dataclass(frozen=True, slots=True)
class Replay:
    """Two values that show the violation, or one value twice when the order is violated and the values are equal.

    tensor, cell: where they were read.  A value that is not finite is given as text.
    """

    differs: bool
    expected: Value
    got: Value
    tensor: str
    cell: tuple[int, ...]
    note: str

    def to_json(self) -> dict[str, object]:
        return {
            "differs": self.differs,
            "expected": self.expected,
            "got": self.got,
            "tensor": self.tensor,
            "cell": list(self.cell),
            "note": self.note,
        }


def replay(
    scop: Scop, verdict: Verdict, schedule: ScheduleLike, *, parallel: Sequence[int] = (), seed: int = 0
) -> Replay | None:
    """Interpret the program at the witness's sizes in the original order and in the order of `schedule`.

    The values compared are what the dependence is about: what the reading instance finds in the cell, or what two
    writes leave there; if these are equal, the outputs of the program.  Among instances that the schedule leaves open
    (equal vectors, parallel dimensions) the replay takes the reverse of the original order.  Cells that nothing has
    written hold arbitrary values.

    None when there is no witness, when a call or an uninterpreted function takes part, and for more instances than
    MAX_REPLAYED_INSTANCES.
    """
    witness = verdict.witness
    if witness is None or _is_uninterpreted(scop):
        return None
    sizes = dict(witness.params)
    if sum(s.domain.count(sizes) for s in scop.statements) > MAX_REPLAYED_INSTANCES:
        return None
    open_scop = replace(scop, tensors=tuple(replace(t, role="inout") for t in scop.tensors))
    given = inputs(open_scop, sizes, seed)
    old = _original_vectors(scop)
    order = read_order(fixed_scop(scop, sizes), schedule, parallel=parallel)
    if order.orders_once():
        new_scop, new = open_scop, _judged_vectors(scop, order, old)
        probe = _probe_place(scop, new, witness)
    else:
        new_scop, new = _repeating(open_scop, order, old)
        probe = _repeated_place(order, old, witness)
    runs = [
        interpret(
            _probed(open_scop, old, witness, _probe_place(scop, old, witness)), given, sizes, round_outputs=False
        ),
        interpret(_probed(new_scop, new, witness, probe), given, sizes, round_outputs=False),
    ]
    return _compare(scop, witness, *runs)


def _is_uninterpreted(scop: Scop) -> bool:
    return any(
        s.is_opaque or any(isinstance(node, Uninterpreted) for node in walk(s.assign.value)) for s in scop.statements
    )


def _original_vectors(scop: Scop) -> dict[str, list[Affine]]:
    length = scop.order_length()
    return {
        s.name: [*s.order, *[affine(0)] * (length - len(s.order)), affine(position)]
        for position, s in enumerate(scop.statements)
    }


def _judged_vectors(scop: Scop, order: NewOrder, old: Mapping[str, list[Affine]]) -> dict[str, list[Affine]]:
    """The schedule's vectors; what they leave open is decided against the original one."""
    vectors: dict[str, list[Affine]] = {}
    for s in scop.statements:
        relation = order.of(s.name)
        if relation.is_empty():
            entries = [affine(0)] * order.length
        else:
            entries = list(function_exprs(relation, s.iterators))
        for dim in (*order.parallel, *_unordered_dims(order, s)):
            entries[dim] = -entries[dim]
        vectors[s.name] = [*entries, *(-e for e in old[s.name])]
    return vectors


def _repeating(scop: Scop, order: NewOrder, old: Mapping[str, list[Affine]]) -> tuple[Scop, dict[str, list[Affine]]]:
    """The program with one more iterator for each entry of the order vectors: every run is an instance of its own."""
    made: list[Statement] = []
    vectors: dict[str, list[Affine]] = {}
    for s in scop.statements:
        entries = [_fresh(f"v{k}", (*s.iterators, *scop.params)) for k in range(order.length)]
        runs = order.of(s.name).wrapped(s.iterators, entries).rename(name=s.name)
        made.append(replace(s, domain=runs))
        vectors[s.name] = [*map(affine, entries), *(-e for e in old[s.name])]
    return replace(scop, statements=tuple(made)), vectors


def _fresh(name: str, taken: Sequence[str]) -> str:
    while name in taken:
        name += "_"
    return name


def _repeated_place(order: NewOrder, old: Mapping[str, list[Affine]], witness: Witness) -> tuple[tuple[int, ...], int]:
    """Where the difference shows: the first run of a sink that finds nothing yet, the last run of a source that reads
    too late and of an instance that finds its own result, after the last of two writes.
    """
    sizes = dict(witness.params)
    first, last = zip(*(_runs(order, i, sizes) for i in (witness.source, witness.sink)), strict=True)
    if witness.kind == OUTPUT:
        at, instance, slot = max((last[0], witness.source, _AFTER), (last[1], witness.sink, _AFTER), key=lambda p: p[0])
    elif witness.kind == FLOW and witness.source != witness.sink:
        at, instance, slot = first[1], witness.sink, _BEFORE
    else:
        at, instance, slot = last[0], witness.source, _BEFORE
    env = {**sizes, **dict(instance.at)}
    return (*at, *(-e.evaluate(env) for e in old[instance.statement])), slot


def _runs(order: NewOrder, instance: Instance, sizes: Mapping[str, int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The first and the last vector of an instance."""
    relation = order.of(instance.statement).fix_params(sizes)
    at = Set.universe(instance.statement, relation.in_dims).fix(dict(instance.at))
    vectors = relation.intersect_domain(at).range([f"d{k}" for k in range(order.length)]).points()
    return vectors[0], vectors[-1]


def _unordered_dims(order: NewOrder, s: Statement) -> list[int]:
    """Entries that come from a `set` node through which every instance of the statement goes."""
    own = order.of(s.name).domain()
    return [
        dim
        for dim, reaching in order.unordered
        if any(part.name == s.name and own.is_subset(part) for part in reaching)
    ]


def _probed(
    scop: Scop, vectors: Mapping[str, list[Affine]], witness: Witness, place: tuple[tuple[int, ...], int]
) -> Scop:
    """The program in the order of `vectors`, and one more statement that notes the value in the witness's cell."""
    at, slot = place
    tensor = scop.tensor(witness.tensor)
    seen = Tensor(_SEEN, (), tensor.dtype, "output")
    copy = Assign(Access(_SEEN, ()), Read(Access(tensor.name, tuple(affine(c) for c in witness.cell))))
    statements = [replace(s, order=(*vectors[s.name], affine(_DURING))) for s in scop.statements]
    probe = Statement(_PROBE, Set.universe(_PROBE, (), scop.params), (*map(affine, at), affine(slot)), copy)
    return replace(scop, tensors=(*scop.tensors, seen), statements=(*statements, probe))


def _probe_place(scop: Scop, vectors: Mapping[str, list[Affine]], witness: Witness) -> tuple[tuple[int, ...], int]:
    source, sink = (_place(vectors, i, witness) for i in (witness.source, witness.sink))
    if witness.kind == OUTPUT:
        return max(source, sink), _AFTER
    return (sink if witness.kind == FLOW else source), _BEFORE


def _place(vectors: Mapping[str, list[Affine]], instance: Instance, witness: Witness) -> tuple[int, ...]:
    env = {**dict(witness.params), **dict(instance.at)}
    return tuple(e.evaluate(env) for e in vectors[instance.statement])


def _compare(scop: Scop, witness: Witness, expected: Mapping[str, Any], got: Mapping[str, Any]) -> Replay:
    a, b = _value(expected[_SEEN][()]), _value(got[_SEEN][()])
    what = "left by the two writes" if witness.kind == OUTPUT else "found by the read"
    if a != b:
        return Replay(True, a, b, witness.tensor, witness.cell, what)
    for tensor in scop.with_role("output", "inout"):
        before, after = expected[tensor.name], got[tensor.name]
        for cell in itertools.product(*map(range, np.shape(before))):
            x, y = _value(before[cell]), _value(after[cell])
            if x != y:
                return Replay(True, x, y, tensor.name, cell, "at the end of the program")
    return Replay(False, a, b, witness.tensor, witness.cell, "order violated, value equal")


def _value(scalar: Any) -> Value:
    value: int | float | bool = scalar.item()
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
