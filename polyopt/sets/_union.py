"""Reading relations on several named tuples: isl union map text and isl schedule trees."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import islpy as isl

from polyopt.errors import InputError, NotAffineError
from polyopt.sets._map import Map
from polyopt.sets._set import Set

__all__ = ["TreeNode", "parse_tree", "parse_union_map"]

_PRODUCT = re.compile(r"[A-Za-z_]\w*'?\s*\*\s*[A-Za-z_]\w*|/\s*[A-Za-z_]\w*|%\s*[A-Za-z_]\w*")
"""A product of two names, or a division by one."""

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
        product = _PRODUCT.search(body)
        if product is not None:
            raise NotAffineError(
                f"{product[0]} in the union map is not affine",
                help="multiply, divide and take remainders by constants only",
            ) from error
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
class TreeNode:
    """One node of a schedule tree as read.

    kind: `domain`, `band`, `sequence`, `set`, `filter`, `mark`, `extension`, `expansion` or `leaf`.  name: of a mark.
    instances: of a domain or filter, one set for each statement.  members: of a band, for each loop (statement ->
    instances to iteration, whether it is marked coincident).  relations: of an extension, the iterations of all bands
    above -> instances that run there as well; of an expansion, instances -> the instances that run in their place.
    """

    kind: str
    children: tuple[TreeNode, ...] = ()
    name: str = ""
    instances: tuple[Set, ...] = ()
    members: tuple[tuple[Mapping[str, Map], bool], ...] = ()
    relations: tuple[Map, ...] = ()

    def has(self, *kinds: str) -> bool:
        """Whether this node or one below is of one of the kinds."""
        return self.kind in kinds or any(c.has(*kinds) for c in self.children)


def parse_tree(text: str) -> TreeNode:
    """Read an isl schedule tree (its YAML form); context and guard nodes are left out.

    Raises InputError with what is wrong.
    """
    try:
        root = isl.Schedule.read_from_str(isl.DEFAULT_CONTEXT, text).get_root()
    except isl.Error as error:
        raise InputError(
            f"cannot read the schedule tree{_where(error)}",
            help="write isl's YAML form: '{ domain: \"...\", child: ... }'",
        ) from error
    return _node(root)


def _node(node: isl.ScheduleNode) -> TreeNode:
    kind = isl.schedule_node_type(node.get_type())
    if kind == isl.schedule_node_type.leaf:
        return TreeNode("leaf")
    below = tuple(_node(node.child(k)) for k in range(node.n_children()))
    if kind in (isl.schedule_node_type.context, isl.schedule_node_type.guard):
        return below[0]
    if kind == isl.schedule_node_type.domain:
        return TreeNode("domain", below, instances=_sets(node.domain_get_domain()))
    if kind == isl.schedule_node_type.filter:
        return TreeNode("filter", below, instances=_sets(node.filter_get_filter()))
    if kind == isl.schedule_node_type.mark:
        return TreeNode("mark", below, name=str(node.mark_get_id().get_name()))
    if kind == isl.schedule_node_type.band:
        return TreeNode("band", below, members=tuple(_members(node)))
    if kind in (isl.schedule_node_type.sequence, isl.schedule_node_type.set):
        return TreeNode(kind.name, below)
    if kind == isl.schedule_node_type.extension:
        return TreeNode("extension", below, relations=_relations(node.extension_get_extension()))
    if kind == isl.schedule_node_type.expansion:
        return TreeNode("expansion", below, relations=_relations(node.expansion_get_expansion()))
    raise InputError(
        f"the schedule tree has a node of kind {kind.name}",
        help="give a tree of domain, context, filter, sequence, set, band, mark, extension and expansion nodes",
    )


def _relations(union: isl.UnionMap) -> tuple[Map, ...]:
    found: list[isl.Map] = []
    union.foreach_map(found.append)
    return tuple(sorted(map(Map, found), key=lambda m: (m.in_name, m.out_name)))


def _members(band: isl.ScheduleNode) -> Iterator[tuple[Mapping[str, Map], bool]]:
    found: list[isl.Map] = []
    band.band_get_partial_schedule_union_map().foreach_map(found.append)
    partial = {m.get_tuple_name(_IN) or "": m.reset_tuple_id(_OUT) for m in found}
    count = band.band_n_member()
    for k in range(count):
        entries = {n: m.project_out(_OUT, k + 1, count - k - 1).project_out(_OUT, 0, k) for n, m in partial.items()}
        yield {n: Map(m) for n, m in entries.items()}, bool(band.band_member_get_coincident(k))


def _sets(union: isl.UnionSet) -> tuple[Set, ...]:
    """By name; unnamed dimensions are called d0, d1, ..."""
    found: list[isl.Set] = []
    union.foreach_set(found.append)
    return tuple(named(s) for s in sorted(found, key=lambda s: str(s.get_tuple_name())))


def named(instances: isl.Set) -> Set:
    """A Set whose unnamed dimensions are called d0, d1, ..."""
    for k in range(instances.dim(_SET)):
        if not instances.get_dim_name(_SET, k):
            instances = instances.set_dim_name(_SET, k, f"d{k}")
    return Set(instances)
