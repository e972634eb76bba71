"""Reading a schedule, in any of its forms, as an order vector for every statement instance."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from pathlib import Path

from polyopt.errors import InputError, nearest, require_type
from polyopt.ir import Scop, Statement, whole_size
from polyopt.schedule._named import check_arity, named_statement, refuse_missing
from polyopt.schedule._touches import sizes_context
from polyopt.schedule._tree import ScheduleTree
from polyopt.schedule._tree_build import read_tree
from polyopt.schedule._tree_order import tree_maps
from polyopt.schedule._tree_relations import CHANGING, relation_maps
from polyopt.sets import (
    AffineLike,
    Map,
    Set,
    affine,
    carried_by,
    differ_first_at,
    first_vectors,
    in_arity,
    not_before,
    pad_order,
    parse_tree,
    parse_union_map,
    restrict_range,
    with_in_dims,
)

__all__ = ["NewOrder", "ScheduleLike", "fixed_scop", "read_order", "tree_text"]

ScheduleLike = str | ScheduleTree | Mapping[str, Sequence[AffineLike]]
"""isl union map text, `@file` or text of an isl schedule tree, a tree, or statement -> order vector."""

_TREE = re.compile(r"""\s*(#[^\n]*\n\s*)*\{?\s*["']?domain["']?\s*:""")
"""How isl's YAML form of a schedule tree begins."""


@dataclass(frozen=True, slots=True)
class NewOrder:
    """An order vector for each instance, all `length` long, in the textual order of the statements.

    An instance that an extension node repeats has several vectors.
    parallel: entries that may not carry a dependence.  unordered: an entry and the instances among which a difference
    that comes first in that entry says nothing (children of a `set` node).
    """

    orders: tuple[Map, ...]
    length: int
    parallel: tuple[int, ...] = ()
    unordered: tuple[tuple[int, tuple[Set, ...]], ...] = ()

    def of(self, statement: str) -> Map:
        for order in self.orders:
            if order.in_name == statement:
                return order
        raise KeyError(statement)

    def orders_once(self) -> bool:
        """Whether no instance has several vectors."""
        return all(m.is_single_valued() for m in self.orders)

    def violated(self, source: str, sink: str, *, flow: bool = False) -> tuple[Map, ...]:
        """The pairs, dependence source and sink, that this order does not keep; empty relations are left out.

        Every run of the source must come before every run of the sink; for a value alone (`flow`) its first run, since
        the others write it once more.
        """
        a, b = self.of(source), self.of(sink)
        if flow and not a.is_single_valued():
            a = first_vectors(a)
        wrong = [not_before(a, b), *(carried_by(a, b, dim) for dim in self.parallel)]
        for dim, instances in self.unordered:
            by_name = {s.name: s for s in instances}
            if source in by_name and sink in by_name:
                differ = differ_first_at(a, b, dim).intersect_domain(by_name[source])
                wrong.append(restrict_range(differ, by_name[sink]))
        return tuple(w for w in wrong if not w.is_empty())


def fixed_scop(scop: Scop, at: Mapping[str, int] | None) -> Scop:
    """The program at the sizes `at`; InputError on an unknown name, a negative size or sizes outside the context."""
    if not at:
        return scop
    require_type(at, Mapping, "at", help="write at={'N': 64}")
    for name, size in at.items():
        if name not in scop.params:
            raise InputError(
                f"{scop.name} has no size called {name!r}{nearest(name, scop.params)}",
                help=f"sizes: {', '.join(scop.params) or 'none'}",
                id="size",
            )
        whole_size(name, size)
    fixed = scop.at({n: int(v) for n, v in at.items()})
    if sizes_context(fixed).is_empty():
        given = ", ".join(f"{n} = {v}" for n, v in at.items())
        raise InputError(
            f"{given} is outside the context of {scop.name}: {scop.context.text()}",
            help="choose sizes that fulfil the context",
            id="size",
        )
    return fixed


def read_order(scop: Scop, schedule: ScheduleLike, *, parallel: Sequence[int] = ()) -> NewOrder:
    """The order that `schedule` gives to the instances of `scop`.

    Raises InputError when it cannot be read, names a statement that does not exist, gives an instance no order vector
    or several, or when an entry of `parallel` is not one of its dimensions.
    """
    require_type(
        schedule,
        (str, ScheduleTree, Mapping),
        "schedule",
        help="give isl text such as '{ S[i] -> [i, 0] }', '@FILE' of a schedule tree, or {'S': [order vector]}",
    )
    if isinstance(schedule, ScheduleTree):
        return _from_tree(scop, schedule, parallel)
    if not isinstance(schedule, str):
        return _with_parallel(_from_vectors(scop, schedule), parallel)
    text = _text_of(schedule)
    if not _TREE.match(text):
        return _with_parallel(_from_maps(scop, parse_union_map(text, scop.params)), parallel)
    root = parse_tree(text)
    if root.has(*CHANGING):
        _refuse_parallel(parallel)
        maps, unordered = relation_maps(scop, root)
        return replace(_from_maps(scop, maps, repeats=True), unordered=unordered)
    return _from_tree(scop, read_tree(scop, root, coincident=False), parallel)


def _from_tree(scop: Scop, tree: ScheduleTree, parallel: Sequence[int]) -> NewOrder:
    _refuse_parallel(parallel)
    maps, unordered = tree_maps(tree)
    order = _from_maps(scop, maps)
    return NewOrder(order.orders, order.length, (), unordered)


def _refuse_parallel(parallel: Sequence[int]) -> None:
    if parallel:
        raise InputError(
            "parallel dimensions belong to a union map, not to a schedule tree",
            help="write the schedule as a union map, or mark the loop of the tree itself",
            id="parallel",
        )


def tree_text(schedule: str) -> str | None:
    """The text of an isl schedule tree, given as such or as `@FILE`; None when `schedule` is another form."""
    text = _text_of(schedule)
    return text if _TREE.match(text) else None


def _text_of(schedule: str) -> str:
    if not schedule.startswith("@"):
        return schedule
    try:
        return Path(schedule[1:]).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"cannot read the schedule file {schedule[1:]!r}: {error}",
            help="give the file of an isl schedule tree after @",
            id="schedule",
        ) from error


def _with_parallel(order: NewOrder, parallel: Sequence[int]) -> NewOrder:
    require_type(parallel, Sequence, "parallel", help="write parallel=[0]")
    for dim in parallel:
        if isinstance(dim, bool) or not isinstance(dim, Integral) or not 0 <= dim < order.length:
            raise InputError(
                f"dimension {dim!r} cannot be parallel: the schedule has {order.length} dimensions, counted from 0",
                help="name dimensions of the order vector, counted from 0",
                id="parallel",
            )
    return NewOrder(order.orders, order.length, tuple(sorted(set(parallel))), order.unordered)


def _from_vectors(scop: Scop, vectors: Mapping[str, Sequence[AffineLike]]) -> NewOrder:
    _check_names(scop, vectors)
    context = sizes_context(scop)
    maps = [
        Map.from_exprs(s.domain.intersect_params(context), "", [affine(e) for e in vectors[s.name]])
        for s in scop.statements
        if s.name in vectors
    ]
    return _from_maps(scop, maps)


def _check_names(scop: Scop, names: Sequence[str] | Mapping[str, object]) -> None:
    for name in names:
        named_statement(scop, name)
    refuse_missing(scop, names)


def _from_maps(scop: Scop, maps: Sequence[Map], *, repeats: bool = False) -> NewOrder:
    _check_names(scop, [m.in_name for m in maps])
    for name in dict.fromkeys(p for m in maps for p in m.params):
        if name not in scop.params:
            raise InputError(
                f"the schedule uses a size {name!r}, which {scop.name} does not have{nearest(name, scop.params)}",
                help=f"its sizes: {', '.join(scop.params) or 'none'}; write any other number out",
                id="schedule",
            )
    for m in maps:
        if m.out_name:
            raise InputError(
                f"the order vector of {m.in_name} has the name {m.out_name!r}: leave it out",
                help="write [..] without a name in front",
                id="schedule",
            )
    length = max((m.out_arity for m in maps), default=0)
    own = [[m for m in maps if m.in_name == s.name] for s in scop.statements]
    pairs = zip(scop.statements, own, strict=True)
    return NewOrder(tuple(_statement_order(scop, *p, length, repeats=repeats) for p in pairs), length)


def _statement_order(scop: Scop, statement: Statement, maps: Sequence[Map], length: int, *, repeats: bool) -> Map:
    """The padded order of one statement, restricted to its instances; checks that each has exactly one vector (with
    `repeats` at least one).
    """
    domain = statement.domain.intersect_params(sizes_context(scop))
    dims = statement.iterators
    for m in maps:
        check_arity(statement, in_arity(m))
    if not maps:  # no instance at any size: any vector will do
        return Map.from_exprs(domain, "", [affine(0)] * length)
    pieces = [pad_order(with_in_dims(m, dims).intersect_domain(domain), length) for m in maps]
    order = pieces[0]
    for piece in pieces[1:]:
        order = order.union(piece)
    if not repeats and not order.is_single_valued():
        raise InputError(
            f"the schedule gives an instance of {statement.name} several order vectors",
            help=f"use only {', '.join((*dims, *scop.params))} and numbers; any other name stands for every value",
            id="schedule",
        )
    left = domain.subtract(order.domain())
    if not left.is_empty():
        sizes = left.smallest(scop.params) or {}
        example = f"{statement.name}{[sizes[d] for d in dims]}"
        where = ", ".join(f"{p} = {sizes[p]}" for p in scop.params)
        raise InputError(
            f"the schedule gives no order vector to {example}{f' ({where})' if where else ''}",
            help=f"cover every instance of {statement.name}",
            id="schedule",
        )
    return order
