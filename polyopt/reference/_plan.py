"""How the evaluator runs a program: blocks, sequential loops and leaves that run over whole arrays.

Recursion over the levels of the order vectors.  At one level the statements of a group are put in sequence when their
entries there are constants; else the level becomes an array axis when its iterations are independent (temps that every
iteration overwrites before reading get an axis of their own), and a sequential loop when they are not.  Reordering
reductions is allowed: float64 values may differ from the interpreter's in the last bits.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod

from polyopt.ir import Scop, Tensor
from polyopt.reference._independence import blocking_tensors, expand_over, is_private
from polyopt.reference._interpret import ambiguous_order
from polyopt.reference._part import Level, Part, bind_level, drop_level, level_bounds, make_parts
from polyopt.sets import Affine, Constraint, affine

__all__ = ["Block", "Leaf", "Plan", "PlanNode", "Repeat", "leaves", "make_plan"]

PRIVATE_LIMIT = 2**25
"""Elements that a temp may grow to when it gets an axis of its own."""


@dataclass(frozen=True, slots=True, eq=False)
class Leaf:
    """One statement over the box of its vector dimensions; dims in the order of the levels."""

    part: Part
    dims: tuple[str, ...]
    sequential: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """One after the other."""

    children: tuple[PlanNode, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Repeat:
    """For every value of level `name` from the smallest lower to the largest upper bound, in ascending order.

    outer: sequential levels around it.  alone: no level around it is a vector dimension.  parts: what runs in it.
    """

    name: str
    bounds: tuple[tuple[Affine, Affine], ...]
    body: PlanNode
    outer: tuple[str, ...]
    alone: bool
    parts: tuple[Part, ...]


PlanNode = Leaf | Block | Repeat


def leaves(node: PlanNode) -> Iterator[Leaf]:
    """Every leaf, in the order of execution."""
    if isinstance(node, Leaf):
        yield node
    else:
        for child in node.children if isinstance(node, Block) else (node.body,):
            yield from leaves(child)


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """tensors: as the leaves see them, private temps with their additional axes."""

    root: PlanNode
    tensors: tuple[Tensor, ...]


@lru_cache(maxsize=16)
def make_plan(scop: Scop, sizes: tuple[tuple[str, int], ...], keep_temps: bool) -> Plan:
    """The plan at fixed sizes.  Raises InputError when an order vector is ambiguous or a domain unbounded."""
    planner = _Planner({t.name: t for t in scop.tensors}, _users(scop), dict(sizes), keep_temps)
    parts = make_parts(scop, dict(sizes))
    root: PlanNode = planner.group(parts, ()) if parts else Block(())
    return Plan(root, tuple(planner.tensors.values()))


def _users(scop: Scop) -> dict[str, frozenset[int]]:
    """Tensor -> positions of the statements that access it."""
    users: dict[str, set[int]] = {}
    for position, s in enumerate(scop.statements):
        for access in (s.assign.target, *s.assign.reads()):
            users.setdefault(access.tensor, set()).add(position)
    return {t: frozenset(p) for t, p in users.items()}


@dataclass(slots=True)
class _Planner:
    tensors: dict[str, Tensor]
    users: Mapping[str, frozenset[int]]
    sizes: Mapping[str, int]
    keep_temps: bool

    def group(self, parts: Sequence[Part], levels: tuple[Level, ...]) -> PlanNode:
        if not parts[0].order:
            leaves = [self.leaf(p, levels) for p in sorted(parts, key=lambda p: p.position)]
            return leaves[0] if len(leaves) == 1 else Block(tuple(leaves))
        entries = [p.order[0] for p in parts]
        known = frozenset(v.name for v in levels)
        base = entries[0]
        if base.variables() <= known and all((e - base).is_constant for e in entries):
            return self.sequence(parts, [(e - base).const for e in entries], levels)
        return self.level(parts, levels)

    def sequence(self, parts: Sequence[Part], offsets: Sequence[int], levels: tuple[Level, ...]) -> PlanNode:
        """Parts whose entries differ by constants: smaller ones first."""
        groups: dict[int, list[Part]] = {}
        for p, offset in zip(parts, offsets, strict=True):
            groups.setdefault(offset, []).append(drop_level(p))
        children = [self.group(groups[offset], levels) for offset in sorted(groups)]
        return children[0] if len(children) == 1 else Block(tuple(children))

    def level(self, parts: Sequence[Part], levels: tuple[Level, ...]) -> PlanNode:
        name = self.fresh_name(parts, levels)
        bound = [bind_level(p, name) for p in parts]
        blocking = blocking_tensors(bound, levels, name)
        expanded = self.privatise(bound, blocking, levels, name) if blocking else bound
        if expanded is not None:
            return self.group(expanded, (*levels, Level(name, True)))
        known = tuple(v.name for v in levels if not v.vector)
        bounds = tuple(level_bounds(p, name, known) for p in bound)
        body = self.group(bound, (*levels, Level(name, False)))
        return Repeat(name, bounds, body, known, len(known) == len(levels), tuple(bound))

    def fresh_name(self, parts: Iterable[Part], levels: Sequence[Level]) -> str:
        """`L0`, `L1`, ...: no iterator has such a name in any of the parts."""
        taken = {i for p in parts for i, _ in p.values} | {v.name for v in levels}
        number = len(levels)
        while f"L{number}" in taken:
            number += 1
        return f"L{number}"

    def privatise(
        self, parts: list[Part], tensors: Sequence[str], levels: Sequence[Level], name: str
    ) -> list[Part] | None:
        """Give every tensor in `tensors` an axis of its own; None when one of them cannot have it."""
        positions = {p.position for p in parts}
        for t in tensors:
            mine = self.tensors[t].role == "temp" and not self.keep_temps and self.users[t] <= positions
            if not mine or not self.is_private(parts, t, (*levels, Level(name, True))):
                return None
        larger: dict[str, Tensor] = {}
        for t in tensors:
            ranges = [level_bounds(p, name, ()) for p in parts if any(a.tensor == t for a, _ in p.accesses())]
            low = min(lower.const for lower, _ in ranges)
            extent = max(upper.const for _, upper in ranges) - low + 1
            if extent * prod(self.tensors[t].sizes(self.sizes)) > PRIVATE_LIMIT:
                return None
            larger[t] = replace(self.tensors[t], shape=(affine(extent), *self.tensors[t].shape))
            parts = expand_over(parts, t, name, low)
        self.tensors.update(larger)
        return parts

    def is_private(self, parts: Sequence[Part], tensor: str, levels: tuple[Level, ...]) -> bool:
        """Whether each iteration of the last level, or of one inside it, overwrites the tensor before it reads it."""
        users = [p for p in parts if any(a.tensor == tensor for a, _ in p.accesses())]
        if is_private(users, tensor, levels[:-1], levels[-1].name):
            return True
        entries = {p.order[0] for p in users if p.order}
        if not entries or (len(entries) > 1 and all(e.is_constant for e in entries)):
            return False
        name = self.fresh_name(parts, levels)
        return self.is_private([bind_level(p, name) for p in users], tensor, (*levels, Level(name, False)))

    def leaf(self, part: Part, levels: Sequence[Level]) -> Leaf:
        sequential = tuple(v.name for v in levels if not v.vector)
        self.check_order(part, levels)
        return Leaf(part, (*(v.name for v in levels if v.vector), *part.free), sequential)

    def check_order(self, part: Part, levels: Sequence[Level]) -> None:
        """Iterators that no level has replaced must follow from the levels."""
        names = {f: f"{f}'" for f in part.free}
        for f in part.free:
            other = part.domain.rename(dims=names)
            own = part.domain.add_dims(list(names.values()))
            both = own.intersect(other.add_dims(list(names)))
            point = both.constrain([Constraint(affine(names[f]) - f - 1)]).smallest()
            if point is not None:
                first = tuple(e.evaluate(point) for _, e in part.values)
                second = tuple(e.substitute(names).evaluate(point) for _, e in part.values)
                raise ambiguous_order(part.name, first, second)
