"""The order of schedule trees that change instances: extension nodes run some again, expansion nodes run groups.

Here an order is a relation: an instance that an extension repeats has several order vectors.  Semantics: isl manual,
"Schedule Trees".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from polyopt.errors import InputError
from polyopt.ir import Scop
from polyopt.schedule._named import check_arity, named_statement
from polyopt.schedule._touches import sizes_context
from polyopt.sets import (
    Map,
    Set,
    TreeNode,
    append_constant,
    append_entries,
    insert_constants,
    pad_order,
    plain_in_dims,
    restrict_vectors,
    with_in_dims,
)

__all__ = ["CHANGING", "relation_maps"]

CHANGING = ("extension", "expansion")
"""Kinds of nodes that only this reader of trees takes."""

_Unordered = tuple[int, tuple[Set, ...]]


@dataclass(frozen=True, slots=True)
class _Reached:
    """What reaches a node: tuple name -> (instances -> order vector so far).

    constants: position in the vector -> the value that a sequence put there; the other entries come from bands.
    length: of the vectors.
    """

    prefix: Mapping[str, Map]
    constants: tuple[tuple[int, int], ...] = ()
    length: int = 0

    def instances(self) -> tuple[Set, ...]:
        return tuple(m.domain() for m in self.prefix.values())


def relation_maps(scop: Scop, root: TreeNode) -> tuple[tuple[Map, ...], tuple[_Unordered, ...]]:
    """(for each statement its instances -> order vectors, all equally long; unordered entries).

    Raises InputError when a node says nothing about an instance that reaches it, and when the tree ends in instances of
    no statement of the program.
    """
    unordered: list[_Unordered] = []
    start = _Reached({s.name: _no_entries(s) for s in root.instances})
    found: dict[str, list[Map]] = {}
    for leaf in _walk(root.children[0], start, unordered):
        for name, order in leaf.prefix.items():
            found.setdefault(name, []).append(order)
    for name in found:
        named_statement(scop, name)
    length = max((m.out_arity for maps in found.values() for m in maps), default=1)
    orders = [_joined(scop, s.name, found[s.name], length) for s in scop.statements if s.name in found]
    return tuple(orders), tuple((dim, _named(scop, sets)) for dim, sets in unordered)


def _joined(scop: Scop, name: str, maps: Sequence[Map], length: int) -> Map:
    """The order of one statement, its dimensions called as in the program; instances that it does not have left out."""
    statement = scop.statement(name)
    domain = statement.domain.intersect_params(sizes_context(scop))
    total: Map | None = None
    for m in maps:
        check_arity(statement, len(m.in_dims))
        own = pad_order(with_in_dims(m, statement.iterators).intersect_domain(domain), length)
        total = own if total is None else total.union(own)
    assert total is not None
    return total


def _named(scop: Scop, sets: Sequence[Set]) -> tuple[Set, ...]:
    known = {s.name: s.iterators for s in scop.statements}
    return tuple(s.rename(dims=dict(zip(s.dims, known[s.name], strict=True))) for s in sets if s.name in known)


def _walk(node: TreeNode, reached: _Reached, unordered: list[_Unordered]) -> Iterator[_Reached]:
    if node.kind == "leaf":
        yield reached
    elif node.kind == "mark":
        yield from _walk(node.children[0], reached, unordered)
    elif node.kind == "band":
        yield from _walk(node.children[0], _through_band(node, reached), unordered)
    elif node.kind == "extension":
        yield from _walk(node.children[0], _extended(node, reached), unordered)
    elif node.kind == "expansion":
        yield from _walk(node.children[0], _expanded(node, reached), unordered)
    else:
        if node.kind == "set":
            unordered.append((reached.length, reached.instances()))
        yield from _through_children(node, reached, unordered)


def _through_children(node: TreeNode, reached: _Reached, unordered: list[_Unordered]) -> Iterator[_Reached]:
    left = dict(reached.prefix)
    for k, child in enumerate(node.children):
        passed = {s.name: s for s in child.instances}
        inside = {n: m.intersect_domain(passed[n]) for n, m in reached.prefix.items() if n in passed}
        for n in inside:
            left[n] = _without(left[n], passed[n])
        below = {n: append_constant(m, k) for n, m in inside.items() if not m.is_empty()}
        constants = (*reached.constants, (reached.length, k))
        yield from _walk(child.children[0], _Reached(below, constants, reached.length + 1), unordered)
    _refuse_left(left, "no child of a sequence runs")


def _no_entries(instances: Set) -> Map:
    """Every instance with the empty vector."""
    dims = {d: f"d{k}" for k, d in enumerate(instances.dims)}
    return Map.from_exprs(instances.rename(dims=dims), "", [])


def _without(order: Map, part: Set) -> Map:
    """The order of the instances outside of `part`."""
    domain = order.domain()
    same = part.rename(dims=dict(zip(part.dims, domain.dims, strict=True)))
    return order.intersect_domain(domain.subtract(same))


def _refuse_left(left: Mapping[str, Map], what: str) -> None:
    for name, m in left.items():
        if not m.is_empty():
            raise InputError(
                f"{what} {m.domain().smallest() or m.domain()} of {name}",
                help="let every node cover the instances that reach it",
                id="schedule",
            )


def _through_band(node: TreeNode, reached: _Reached) -> _Reached:
    below: dict[str, Map] = {}
    for name, prefix in reached.prefix.items():
        entries = [maps[name] for maps, _ in node.members if name in maps]
        if len(entries) < len(node.members):
            raise InputError(
                f"a band of the schedule tree says nothing about {name}",
                help="give every statement that reaches the band an iteration",
                id="schedule",
            )
        below[name] = append_entries(prefix, entries)
        _refuse_left({name: _without(prefix, below[name].domain())}, "a band of the schedule tree says nothing about")
    return replace(reached, prefix=below, length=reached.length + len(node.members))


def _extended(node: TreeNode, reached: _Reached) -> _Reached:
    """The instances of the extension run as well, at the iterations of the bands above that really run."""
    below = dict(reached.prefix)
    for extension in node.relations:
        order = plain_in_dims(extension.reverse())
        loops = reached.length - len(reached.constants)
        if order.out_arity != loops:
            raise InputError(
                f"the extension of {extension.out_name} has {order.out_arity} iterations in front, "
                f"the bands above it have {loops} loops",
                help="give one entry for each loop of the bands above",
                id="schedule",
            )
        added = restrict_vectors(insert_constants(order, reached.constants), tuple(reached.prefix.values()))
        name = extension.out_name
        below[name] = below[name].union(added) if name in below else added
    return replace(reached, prefix=below)


def _expanded(node: TreeNode, reached: _Reached) -> _Reached:
    """Each instance gives way to the instances that it stands for."""
    below: dict[str, Map] = {}
    left = dict(reached.prefix)
    for expansion in node.relations:
        prefix = reached.prefix.get(expansion.in_name)
        if prefix is None:
            continue
        order = plain_in_dims(expansion.reverse().apply_range(prefix))
        name = expansion.out_name
        below[name] = below[name].union(order) if name in below else order
        left[expansion.in_name] = _without(left[expansion.in_name], plain_in_dims(expansion).domain())
    _refuse_left(left, "an expansion says nothing about")
    return replace(reached, prefix={n: m for n, m in below.items() if not m.is_empty()})
