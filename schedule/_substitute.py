"""Fusion by forward substitution: a temporary that one statement computes and one statement reads disappears.

    T[i, j] = f(x[i, j])                          y[i, j] = g(cast(T's type, f(x[i, j])))
    y[i, j] = g(T[i, j])              ->

Legal because the producer's operands are not written between the two, which is decided from the original order; exact
because every cell that the consumer reads was written by the instance that is substituted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from polyopt.ir import (
    Access,
    Assign,
    Cast,
    Expr,
    Read,
    Scop,
    Statement,
    access_relation,
    accesses,
    rewrite,
    substitute_expr,
    walk,
)
from polyopt.sets import Affine, affine

__all__ = ["is_direct", "plain_inverse", "substitute_forward"]

MAX_NODES = 48
"""Largest expression that substitution may build, so that one statement never needs too many tiles at once."""


@dataclass(frozen=True, slots=True)
class _Users:
    """Who writes and who reads every tensor."""

    writers: Mapping[str, tuple[Statement, ...]]
    readers: Mapping[str, tuple[Statement, ...]]


def substitute_forward(scop: Scop) -> Scop:
    """Substitute until nothing more can be; temporaries that vanish are dropped from the program."""
    changed = True
    while changed:
        changed = False
        users = _users(scop)
        for producer in scop.statements:
            consumer = _consumer(scop, users, producer)
            if consumer is not None:
                scop = _merged(scop, producer, consumer)
                changed = True
                break
    return scop


def plain_inverse(statement: Statement) -> dict[str, tuple[int, Affine]] | None:
    """Each iterator as (axis, offset) of a target subscript `iterator + offset`; None unless every iterator has one."""
    body = statement.assign
    if not body.target.is_exact:
        return None
    own = set(statement.iterators)
    found: dict[str, tuple[int, Affine]] = {}
    for axis, s in enumerate(body.target.affine_subscripts):
        moving = [i for i in statement.iterators if i in s.variables()]
        if not moving:
            continue
        if len(moving) > 1 or s.coefficient(moving[0]) != 1 or moving[0] in found:
            return None
        offset = s - affine(moving[0])
        if offset.variables() & own:
            return None
        found[moving[0]] = (axis, offset)
    return found if own == set(found) else None


def _users(scop: Scop) -> _Users:
    writers: dict[str, list[Statement]] = {t.name: [] for t in scop.tensors}
    readers: dict[str, list[Statement]] = {t.name: [] for t in scop.tensors}
    for s in scop.statements:
        if isinstance(s.body, Assign):
            writers[s.body.target.tensor].append(s)
            for name in dict.fromkeys(a.tensor for a in s.body.reads()):
                readers[name].append(s)
        else:
            for name in s.body.may_write:
                writers[name].append(s)
            for name in s.body.may_read:
                readers[name].append(s)
    return _Users({k: tuple(v) for k, v in writers.items()}, {k: tuple(v) for k, v in readers.items()})


def _consumer(scop: Scop, users: _Users, producer: Statement) -> Statement | None:
    body = producer.body
    if not isinstance(body, Assign) or body.combine is not None:
        return None
    name = body.target.tensor
    readers = users.readers[name]
    if scop.tensor(name).role != "temp" or users.writers[name] != (producer,) or len(readers) != 1:
        return None
    consumer = readers[0]
    if consumer is producer or not isinstance(consumer.body, Assign) or plain_inverse(producer) is None:
        return None
    reads = {a for a in accesses(consumer.body.value) if a.tensor == name}
    if len(reads) != 1 or not is_direct(consumer.body.value, name) or not _worth_while(producer, consumer):
        return None
    if not _operands_stay(users, producer, consumer) or not _covered(scop, producer, consumer, next(iter(reads))):
        return None
    return consumer


def is_direct(value: Expr, tensor: str) -> bool:
    """Whether every read of `tensor` is a value, not a subscript."""
    direct = sum(1 for n in walk(value) if isinstance(n, Read) and n.access.tensor == tensor and n.access.is_exact)
    return direct == sum(1 for a in accesses(value) if a.tensor == tensor)


def _worth_while(producer: Statement, consumer: Statement) -> bool:
    """Not into a factor of a sum of products, which would be computed again for every tile; not beyond MAX_NODES."""
    made, used = producer.assign, consumer.assign
    size = sum(1 for _ in walk(made.value)) + sum(1 for _ in walk(used.value))
    if size > MAX_NODES:
        return False
    plain_copy = isinstance(made.value, Read) and made.value.access.is_exact
    return plain_copy or used.combine is None or len(set(consumer.iterators)) == len(_target_iterators(consumer))


def _target_iterators(statement: Statement) -> set[str]:
    target = statement.assign.target
    if not target.is_exact:
        return set()
    return {i for s in target.affine_subscripts for i in s.variables() if i in statement.iterators}


def _leading(statement: Statement) -> int | None:
    """The constant that the order vector begins with, or None."""
    first = statement.order[0] if statement.order else affine(0)
    return first.const if first.is_constant else None


def _operands_stay(users: _Users, producer: Statement, consumer: Statement) -> bool:
    """Whether no operand of the producer is written after it, as far as the consumer."""
    here, there = _leading(producer), _leading(consumer)
    if here is None or there is None or here >= there:
        return False
    for name in {a.tensor for a in producer.assign.reads()}:
        for writer in users.writers[name]:
            when = _leading(writer)
            if when is None or not (when < here or when > there):
                return False
    return True


def _covered(scop: Scop, producer: Statement, consumer: Statement, read: Access) -> bool:
    """Whether the producer wrote every cell that the consumer reads."""
    tensor = scop.tensor(read.tensor)
    cells = [f"cell{k}" for k in range(len(tensor.shape))]
    images = []
    for statement, access in ((producer, producer.assign.target), (consumer, read)):
        domain = statement.domain.intersect_params(scop.context)
        images.append(access_relation(domain, access, tensor, scop.params).range(cells))
    return images[1].is_subset(images[0])


def _merged(scop: Scop, producer: Statement, consumer: Statement) -> Scop:
    made, used = producer.assign, consumer.assign
    name = made.target.tensor
    inverse = plain_inverse(producer) or {}
    element = scop.tensor(name).dtype

    def replace_read(e: Expr) -> Expr:
        if not isinstance(e, Read) or e.access.tensor != name:
            return e
        subscripts = e.access.affine_subscripts
        values = {i: subscripts[axis] - offset for i, (axis, offset) in inverse.items()}
        return Cast(element, substitute_expr(made.value, values))

    value = rewrite(used.value, replace_read)
    merged = replace(consumer, body=Assign(used.target, value, used.combine))
    kept = tuple(merged if s is consumer else s for s in scop.statements if s is not producer)
    return replace(scop, statements=kept, tensors=tuple(t for t in scop.tensors if t.name != name))
