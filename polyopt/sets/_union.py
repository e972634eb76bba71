"""Reading relations on several named tuples: isl union map text and isl schedule trees."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import islpy as isl

from polyopt.errors import InputError, nearest
from polyopt.sets._convert import pw_aff_to_affine
from polyopt.sets._map import Map
from polyopt.sets._order import pad_order
from polyopt.sets._set import Set
from polyopt.sets.affine import Affine

__all__ = ["TreeNode", "TreeOrder", "parse_tree", "parse_tree_order", "parse_union_map"]

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
    root = _read_tree(text).get_root()
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


def _read_tree(text: str) -> isl.Schedule:
    try:
        return isl.Schedule.read_from_str(isl.DEFAULT_CONTEXT, text)
    except isl.Error as error:
        raise InputError(
            f"cannot read the schedule tree{_where(error)}",
            help="write isl's YAML form: '{ domain: \"...\", child: ... }'",
        ) from error


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
            raise InputError(
                f"a band of the schedule tree says nothing about {name}",
                help="give every statement that reaches the band an iteration",
            )
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


@dataclass(frozen=True, slots=True)
class TreeNode:
    """One node of a schedule tree as read; dimensions of instances go by the program's names.

    kind: `band`, `sequence`, `set`, `filter`, `mark` or `leaf`.  name: of a mark.  instances: of a filter, one set for
    each statement.  members: of a band, (statement -> iteration, whether it is marked coincident) for each loop.
    """

    kind: str
    children: tuple[TreeNode, ...] = ()
    name: str = ""
    instances: tuple[Set, ...] = ()
    members: tuple[tuple[Mapping[str, Affine], bool], ...] = ()


def parse_tree(text: str, dims: Mapping[str, Sequence[str]]) -> TreeNode:
    """Read an isl schedule tree (its YAML form); `dims`: statement -> the names of its iterators.

    Raises InputError on other nodes than band, sequence, set, filter and mark, and on statements not in `dims`.
    """
    root = _read_tree(text).get_root()
    node = root.child(0) if isl.schedule_node_type(root.get_type()) == isl.schedule_node_type.domain else root
    return _tree_node(node, dims)


def _tree_node(node: isl.ScheduleNode, dims: Mapping[str, Sequence[str]]) -> TreeNode:
    kind = isl.schedule_node_type(node.get_type())
    if kind == isl.schedule_node_type.leaf:
        return TreeNode("leaf")
    below = tuple(_tree_node(node.child(k), dims) for k in range(node.n_children()))
    if kind in (isl.schedule_node_type.context, isl.schedule_node_type.guard):
        return below[0]
    if kind == isl.schedule_node_type.mark:
        return TreeNode("mark", below, name=str(node.mark_get_id().get_name()))
    if kind == isl.schedule_node_type.filter:
        return TreeNode("filter", below, instances=tuple(_with_dims(s, dims) for s in _sets(node.filter_get_filter())))
    if kind == isl.schedule_node_type.band:
        return TreeNode("band", below, members=tuple(_members(node, dims)))
    if kind in (isl.schedule_node_type.sequence, isl.schedule_node_type.set):
        return TreeNode(kind.name, below)
    raise InputError(
        f"the schedule tree has a node of kind {kind.name}, which changes the instances of the program",
        help="give a tree of domain, context, filter, sequence, set, band and mark nodes",
    )


def _members(node: isl.ScheduleNode, dims: Mapping[str, Sequence[str]]) -> Iterator[tuple[Mapping[str, Affine], bool]]:
    partial = _by_statement(node.band_get_partial_schedule_union_map())
    for k in range(node.band_n_member()):
        entries: dict[str, Affine] = {}
        for name, relation in partial.items():
            for position, d in enumerate(_dims_of(name, dims)):
                relation = relation.set_dim_name(_IN, position, d)
            entries[name] = pw_aff_to_affine(isl.PwMultiAff.from_map(relation).coalesce().get_pw_aff(k))
        yield entries, bool(node.band_member_get_coincident(k))


def _with_dims(instances: isl.Set, dims: Mapping[str, Sequence[str]]) -> Set:
    for position, d in enumerate(_dims_of(instances.get_tuple_name() or "", dims)):
        instances = instances.set_dim_name(_SET, position, d)
    return Set(instances)


def _dims_of(name: str, dims: Mapping[str, Sequence[str]]) -> Sequence[str]:
    if name not in dims:
        raise InputError(
            f"the schedule tree names {name!r}, which is no statement{nearest(name, sorted(dims))}",
            help=f"statements: {', '.join(dims)}",
            id="schedule",
        )
    return dims[name]
