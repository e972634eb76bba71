"""Loop code from schedules: isl's AST generator, its result as values of polyopt.

isl's operators are translated by their meaning, not by their C text: the quotients `fdiv_q` (floor), `pdiv_q` (of what
is known to be non-negative) and `div` (exact) are floors, the remainders `pdiv_r` and `zdiv_r` (which only says whether
it is zero) are the non-negative ones.  Source: Grosser, Verdoolaege and Cohen, "Polyhedral AST generation is more than
scanning polyhedra", TOPLAS 2015; isl manual, "AST Expressions".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import islpy as isl

from polyopt.errors import InputError, InternalError
from polyopt.sets._flow import union_of
from polyopt.sets._loop_nodes import AllOf, AnyOf, Block, Call, Condition, For, If, LoopNode, negation
from polyopt.sets._map import Map
from polyopt.sets._set import Set
from polyopt.sets.affine import Affine, Constraint, affine, maximum, minimum, select, var

__all__ = ["LoopMember", "loops_of_orders", "loops_of_tree"]

_SEQUENTIAL, _PARALLEL = "sequential", "parallel"
_BAND = "polyopt band "
"""Begins the names of marks that say which band a loop comes from."""


@dataclass(frozen=True, slots=True)
class LoopMember:
    """What loops of one entry of the schedule are called (empty: c0, c1, ... by depth) and of which kind they are."""

    name: str = ""
    kind: str = _SEQUENTIAL


def loops_of_orders(
    orders: Sequence[Map],
    context: Set,
    *,
    members: Mapping[int, LoopMember],
    taken: Sequence[str] = (),
    options: str = "",
) -> LoopNode:
    """Loops that run every instance of `orders` (one map for each statement, vectors equally long) in their order.

    Instances with the same vector run in any order.  members: of some entries of the vectors.  taken: names that no
    iterator may have.  options: isl's AST options by schedule dimension, `{ [i, j] -> unroll[1] }`.  Raises InputError
    when isl finds no loops, above all when an iterator is unbounded.
    """
    union = union_of(orders)
    depth = max((m.out_arity + m.isl.dim(isl.dim_type.in_) for m in orders), default=0)
    names = _iterator_names(depth, taken)
    build = _build(context, names)
    if options:
        build = build.set_options(_read_options(options))
    return _translated(lambda: build.node_from_schedule_map(union), names, [(0, members)], taken)


def loops_of_tree(
    text: str,
    context: Set,
    *,
    domains: Sequence[Set] | None,
    members: Sequence[Sequence[LoopMember]] | None = None,
    taken: Sequence[str] = (),
) -> LoopNode:
    """Loops in the order of an isl schedule tree (YAML text), whose own options `separate`, `unroll`, ... are obeyed.

    domains: the instances to restrict the tree to (None: leave it as it is).  members: of every band, outer ones first,
    in textual order; None: parallel where the tree says coincident.  Raises InputError when the tree cannot be read or
    isl finds no loops for it.
    """
    try:
        schedule = isl.Schedule.read_from_str(isl.DEFAULT_CONTEXT, text)
        if domains is not None:
            schedule = schedule.intersect_domain(_union_set(domains))
    except isl.Error as error:
        raise InputError("cannot read the schedule tree", help="write isl's YAML form of a tree") from error
    bands = _Bands(members)
    marked = bands.mark(schedule.get_root(), 0).get_schedule()
    depth = bands.depth + max((s.isl.dim(isl.dim_type.set) for s in domains or ()), default=16)
    names = _iterator_names(depth, taken)
    build = _build(context, names)
    return _translated(lambda: build.node_from_schedule(marked), names, bands.found, taken)


def _union_set(domains: Sequence[Set]) -> isl.UnionSet:
    total = isl.UnionSet.from_set(domains[0].isl)
    for d in domains[1:]:
        total = total.union(isl.UnionSet.from_set(d.isl))
    return total


def _iterator_names(depth: int, taken: Sequence[str]) -> list[str]:
    """c0, c1, ...: the position in the list tells the depth of a loop."""
    names: list[str] = []
    for k in range(depth + 1):
        name = f"c{k}"
        while name in taken:
            name += "_"
        names.append(name)
    return names


def _build(context: Set, names: Sequence[str]) -> isl.AstBuild:
    ids = isl.IdList.alloc(isl.DEFAULT_CONTEXT, len(names))
    for name in names:
        ids = ids.add(isl.Id(name, isl.DEFAULT_CONTEXT))
    return isl.AstBuild.from_context(context.isl.params()).set_iterators(ids)


def _read_options(options: str) -> isl.UnionMap:
    try:
        return isl.UnionMap.read_from_str(isl.DEFAULT_CONTEXT, options)
    except isl.Error as error:
        raise InputError(
            f"cannot read the options {options!r} of the loops",
            help="write isl text such as '{ [i, j] -> separate[0]; [i, j] -> unroll[1] }'",
        ) from error


class _Bands:
    """Puts a mark on every band, so that the loops made from it can be told; collects (loops above, members)."""

    def __init__(self, members: Sequence[Sequence[LoopMember]] | None) -> None:
        self.given = members
        self.found: list[tuple[int, Mapping[int, LoopMember]]] = []
        self.depth = 0

    def mark(self, node: isl.ScheduleNode, above: int) -> isl.ScheduleNode:
        """The same place in the tree with marks from there on."""
        is_band = isl.schedule_node_type(node.get_type()) == isl.schedule_node_type.band
        if is_band:
            node, above = self._band(node, above)
        for k in range(node.n_children()):
            node = self.mark(node.child(k), above).parent()
        return node.parent() if is_band else node

    def _band(self, node: isl.ScheduleNode, above: int) -> tuple[isl.ScheduleNode, int]:
        count = node.band_n_member()
        own = self._members(node, count)
        mark = isl.Id(f"{_BAND}{len(self.found)}", isl.DEFAULT_CONTEXT)
        self.found.append((above, {above + k: m for k, m in enumerate(own)}))
        self.depth = max(self.depth, above + count)
        return node.insert_mark(mark).child(0), above + count

    def _members(self, node: isl.ScheduleNode, count: int) -> Sequence[LoopMember]:
        if self.given is None:
            marked = [bool(node.band_member_get_coincident(k)) for k in range(count)]
            return [LoopMember("", _PARALLEL if m else _SEQUENTIAL) for m in marked]
        number = len(self.found)
        if number >= len(self.given) or len(self.given[number]) != count:
            raise InternalError(f"band {number} of the schedule tree has {count} members, which nothing is known about")
        return self.given[number]


def _translated(
    generate: Callable[[], isl.AstNode],
    names: list[str],
    bands: Sequence[tuple[int, Mapping[int, LoopMember]]],
    taken: Sequence[str],
) -> LoopNode:
    try:
        root = generate()
    except isl.Error as error:
        raise InputError(
            f"isl finds no loops for this schedule{_words(error)}",
            help="bound every iterator in the domain; give separate, unroll and isolate only where they can be done",
            id="loops",
        ) from error
    return _Translator(names, bands, frozenset(taken)).node(root, {}, 0)


def _words(error: isl.Error) -> str:
    text = str(error)
    return f" ({text.split('failed: ')[1].split(' in /')[0]})" if "failed: " in text else ""


Names = Mapping[str, str]
"""isl's iterator -> ours, for the loops around a node."""


class _Translator:
    """isl's nodes as ours."""

    def __init__(
        self, names: list[str], bands: Sequence[tuple[int, Mapping[int, LoopMember]]], taken: frozenset[str]
    ) -> None:
        self.depth_of = {name: k for k, name in enumerate(names)}
        self.bands, self.taken = bands, taken

    def node(self, node: isl.AstNode, names: Names, band: int) -> LoopNode:
        kind = isl.ast_node_type(node.get_type()).name
        if kind == "for_":
            return self.loop(node, names, band)
        if kind == "if_":
            other = self.node(node.if_get_else_node(), names, band) if node.if_has_else_node() else Block()
            return If(_condition(node.if_get_cond(), names), self.node(node.if_get_then_node(), names, band), other)
        if kind == "mark":
            name = str(node.mark_get_id().get_name())
            inner = int(name.removeprefix(_BAND)) if name.startswith(_BAND) else band
            return self.node(node.mark_get_node(), names, inner)
        if kind == "block":
            listed = node.block_get_children()
            return _block([self.node(listed.get_at(k), names, band) for k in range(listed.n_ast_node())])
        if kind == "user":
            return _call(node.user_get_expr(), names)
        raise InternalError(f"isl generated a node of kind {kind}")

    def loop(self, node: isl.AstNode, names: Names, band: int) -> For:
        own = str(node.for_get_iterator().get_id().get_name())
        depth = self.depth_of.get(own, -1)
        member = self.bands[band][1].get(depth, LoopMember()) if band < len(self.bands) else LoopMember()
        iterator = member.name or own
        while iterator in self.taken or iterator in names.values():
            iterator += "_"
        inside = {**names, own: iterator}
        lower = _affine(node.for_get_init(), names)
        if node.for_is_degenerate():
            return For(iterator, lower, lower, self.node(node.for_get_body(), inside, band), 1, member.kind)
        step = _affine(node.for_get_inc(), names)
        if not step.is_constant:
            raise InternalError(f"isl generated a loop with the step {step}")
        upper = _last(node.for_get_cond(), own, names)
        return For(iterator, lower, upper, self.node(node.for_get_body(), inside, band), step.const, member.kind)


def _block(children: Sequence[LoopNode]) -> LoopNode:
    """Blocks in blocks flattened; one child needs none."""
    flat: list[LoopNode] = []
    for c in children:
        flat += c.children if isinstance(c, Block) else [c]
    return flat[0] if len(flat) == 1 else Block(tuple(flat))


def _call(expr: isl.AstExpr, names: Names) -> Call:
    op, args = _operation(expr)
    if op != "call":
        raise InternalError(f"isl generated {expr.to_C_str()} where a statement is called")
    return Call(str(args[0].get_id().get_name()), tuple(_affine(a, names) for a in args[1:]))


def _last(condition: isl.AstExpr, iterator: str, names: Names) -> Affine:
    """The largest `iterator` for which a loop goes on, from `iterator <= e`, `iterator < e` or a conjunction."""
    op, args = _operation(condition)
    if op in ("and_", "and_then"):
        return minimum(*(_last(a, iterator, names) for a in args))
    if op in ("le", "lt") and args[0].to_C_str() == iterator:
        return _affine(args[1], names) - (op == "lt")
    raise InternalError(f"isl generated a loop over {iterator} with the condition {condition.to_C_str()}")


def _operation(expr: isl.AstExpr) -> tuple[str, list[isl.AstExpr]]:
    """The operator's name in islpy and its arguments; an empty name when the expression is none."""
    if isl.ast_expr_type(expr.get_type()) != isl.ast_expr_type.op:
        return "", []
    return isl.ast_expr_op_type(expr.op_get_type()).name, [expr.op_get_arg(k) for k in range(expr.op_get_n_arg())]


def _affine(expr: isl.AstExpr, names: Names) -> Affine:
    kind = isl.ast_expr_type(expr.get_type())
    if kind == isl.ast_expr_type.int:
        return affine(int(expr.int_get_val().to_python()))
    if kind == isl.ast_expr_type.id:
        own = str(expr.id_get_id().get_name())
        return var(names.get(own, own))
    op, args = _operation(expr)
    if op in ("cond", "select"):
        return _chosen(_condition(args[0], names), _affine(args[1], names), _affine(args[2], names))
    values = [_affine(a, names) for a in args]
    if op == "minus":
        return -values[0]
    if op == "add":
        return values[0] + values[1]
    if op == "sub":
        return values[0] - values[1]
    if op == "mul":
        return values[0] * values[1]
    if op in ("min", "max"):
        return (minimum if op == "min" else maximum)(*values)
    if op in ("div", "fdiv_q", "pdiv_q", "pdiv_r", "zdiv_r") and values[1].is_constant:
        return values[0] % values[1].const if op.endswith("r") else values[0] // values[1].const
    raise InternalError(f"isl generated the operator {op} in {expr.to_C_str()}")


_COMPARE = {"eq": (1, 0, True), "ge": (1, 0, False), "gt": (1, 1, False), "le": (-1, 0, False), "lt": (-1, 1, False)}
"""Comparison -> (sign of left - right, what is subtracted, whether it is an equality)."""


def _condition(expr: isl.AstExpr, names: Names) -> Condition:
    if isl.ast_expr_type(expr.get_type()) == isl.ast_expr_type.int:
        return AllOf(()) if expr.int_get_val().to_python() else AnyOf(())
    op, args = _operation(expr)
    if op in _COMPARE:
        sign, less, equality = _COMPARE[op]
        left, right = (_affine(a, names) for a in args)
        return Constraint((left - right) * sign - less, equality)
    parts = [_condition(a, names) for a in args]
    if op in ("and_", "and_then"):
        return AllOf(tuple(parts))
    if op in ("or_", "or_else"):
        return AnyOf(tuple(parts))
    if op in ("cond", "select"):
        where, then, other = parts
        return AnyOf((AllOf((where, then)), AllOf((negation(where), other))))
    raise InternalError(f"isl generated the operator {op} in the condition {expr.to_C_str()}")


def _chosen(where: Condition, then: Affine, other: Affine) -> Affine:
    """`then` where the condition holds, else `other`, by selections, which hold conjunctions of plain constraints."""
    if isinstance(where, Constraint):
        return select([where], then, other)
    if isinstance(where, AnyOf):
        for part in reversed(where.parts):
            other = _chosen(part, then, other)
        return other
    for part in reversed(where.parts):
        then = _chosen(part, then, other)
    return then
