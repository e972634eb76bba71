"""Reading relations on several named tuples: isl union map text and isl schedule trees."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import islpy as isl

from polyopt.errors import InputError
from polyopt.sets._map import Map
from polyopt.sets._order import pad_order
from polyopt.sets._set import Set

__all__ = ["TreeOrder", "parse_tree_order", "parse_union_map"]

_IN, _OUT, _SET = isl.dim_type.in_, isl.dim_type.out, isl.dim_type.set


def parse_union_map(text: str, params: Sequence[str]) -> tuple[Map, ...]:
    """Read `{ S[i] -> [i, 0]; T[j] -> [j, 1] }`, one map for each pair of tuples; `params` are declared for the reader.

    Raises InputError with the text.
    """
    body = text.strip()
    prefix = f"[{', '.join(params)}] -> " if params and not body.startswith("[") else ""
    try:
        union = isl.UnionMap.read_from_str(isl.DEFAULT_CONTEXT, prefix + body)
    except isl.Error as error:
        raise InputError(
            f"cannot read the union map {body!r}{_where(error)}",
            help="write isl text such as '{ S[i] -> [floor(i/2), i]; T[j] -> [j, 0] }' "
            f"(sizes: {', '.join(params) or 'none'})",
        ) from error
    found: list[isl.Map] = []
    union.foreach_map(found.append)
    return tuple(sorted(map(Map, found), key=lambda m: (m.in_name, m.out_name)))


def _where(error: isl.Error) -> str:
    """isl prints the place of a syntax error itself; only its own words are worth repeating."""
    text = str(error)
    return f" ({text.split('failed: ')[1].split(' in /')[0]})" if "failed: " in text else ""


@dataclass(frozen=True, slots=True)
class TreeOrder:
    """The order that a schedule tree gives.

    orders: for each statement its instances -> order vector, all `length` long (zeros behind).  unordered: for each
    `set` node the entry in which its children differ and the instances that reach it, since their order is not fixed.
    """

    orders: tuple[Map, ...]
    length: int
    unordered: tuple[tuple[int, tuple[Set, ...]], ...]


def parse_tree_order(text: str) -> TreeOrder:
    """Read an isl schedule tree (its YAML form).  Raises InputError with what is wrong."""
    try:
        root = isl.Schedule.read_from_str(isl.DEFAULT_CONTEXT, text).get_root()
    except isl.Error as error:
        raise InputError(
            f"cannot read the schedule tree{_where(error)}",
            help="write isl's YAML form: '{ domain: \"...\", child: ... }'",
        ) from error
    leaves: list[tuple[isl.UnionSet, list[_Column]]] = []
    unordered: list[tuple[int, tuple[Set, ...]]] = []
    _visit(root, [], leaves, unordered)
    length = max((len(columns) for _, columns in leaves), default=0)
    orders: dict[str, Map] = {}
    for instances, columns in leaves:
        for part in _sets(instances):
            piece = pad_order(_leaf_order(part, columns), length)
            orders[piece.in_name] = orders[piece.in_name].union(piece) if piece.in_name in orders else piece
    return TreeOrder(tuple(orders[name] for name in sorted(orders)), length, tuple(unordered))


_Column = int | tuple[Mapping[str, isl.Map], int]
"""A constant, or one entry of a band's partial schedule."""

_TRANSPARENT = (
    isl.schedule_node_type.domain,
    isl.schedule_node_type.context,
    isl.schedule_node_type.guard,
    isl.schedule_node_type.mark,
    isl.schedule_node_type.filter,
)


def _visit(
    node: isl.ScheduleNode,
    columns: list[_Column],
    leaves: list[tuple[isl.UnionSet, list[_Column]]],
    unordered: list[tuple[int, tuple[Set, ...]]],
) -> None:
    kind = isl.schedule_node_type(node.get_type())
    if kind == isl.schedule_node_type.leaf:
        leaves.append((node.get_domain(), columns))
    elif kind in (isl.schedule_node_type.sequence, isl.schedule_node_type.set):
        if kind == isl.schedule_node_type.set:
            unordered.append((len(columns), tuple(named(s) for s in _sets(node.get_domain()))))
        for k in range(node.n_children()):
            _visit(node.child(k), [*columns, k], leaves, unordered)
    elif kind == isl.schedule_node_type.band:
        partial = _by_statement(node.band_get_partial_schedule_union_map())
        members = [(partial, k) for k in range(node.band_n_member())]
        _visit(node.child(0), [*columns, *members], leaves, unordered)
    elif kind in _TRANSPARENT:
        _visit(node.child(0), columns, leaves, unordered)
    else:
        raise InputError(
            f"the schedule tree has a node of kind {kind.name}, which changes the instances of the program",
            help="give a tree of domain, context, filter, sequence, set, band and mark nodes",
        )


def _by_statement(union: isl.UnionMap) -> dict[str, isl.Map]:
    found: list[isl.Map] = []
    union.foreach_map(found.append)
    return {m.get_tuple_name(_IN) or "": m for m in found}


def _sets(union: isl.UnionSet) -> list[isl.Set]:
    found: list[isl.Set] = []
    union.foreach_set(found.append)
    return sorted(found, key=lambda s: str(s.get_tuple_name()))


def _leaf_order(instances: isl.Set, columns: Sequence[_Column]) -> Map:
    name = instances.get_tuple_name() or ""
    order = isl.Map.from_domain(instances)
    for column in columns:
        if isinstance(column, int):
            order = order.add_dims(_OUT, 1)
            order = order.fix_val(_OUT, order.dim(_OUT) - 1, isl.Val(column))
            continue
        partial, member = column
        if name not in partial:
            raise InputError(f"a band of the schedule tree says nothing about {name}")
        entry = partial[name].reset_tuple_id(_OUT)
        entry = entry.project_out(_OUT, member + 1, entry.dim(_OUT) - member - 1).project_out(_OUT, 0, member)
        order = order.flat_range_product(entry)
    return Map(order)


def named(instances: isl.Set) -> Set:
    """A Set whose unnamed dimensions are called d0, d1, ..."""
    for k in range(instances.dim(_SET)):
        if not instances.get_dim_name(_SET, k):
            instances = instances.set_dim_name(_SET, k, f"d{k}")
    return Set(instances)
