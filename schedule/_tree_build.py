"""Schedule trees of programs: from the original order, from order vectors, from isl's text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from collections.abc import Sequence as Seq
from dataclasses import dataclass, replace

from polyopt.errors import InputError
from polyopt.ir import Scop
from polyopt.schedule._named import check_arity, named_statement
from polyopt.schedule._touches import sizes_context
from polyopt.schedule._tree import (
    PARALLEL,
    SEQUENTIAL,
    Band,
    Filter,
    Leaf,
    Mark,
    Member,
    Node,
    ScheduleTree,
    Sequence,
    Unordered,
    filtered,
)
from polyopt.sets import Affine, AffineLike, Map, Set, TreeNode, affine, function_exprs, parse_tree, with_in_dims

__all__ = ["original_tree", "read_tree", "tree_of_vectors"]


def original_tree(scop: Scop) -> ScheduleTree:
    """The program's own order as a tree: a band for each nest, a sequence where constants tell statements apart."""
    return tree_of_vectors(scop, {s.name: s.order for s in scop.statements})


def tree_of_vectors(scop: Scop, vectors: Mapping[str, Seq[AffineLike]]) -> ScheduleTree:
    """The order of `vectors` (statement -> order vector, textual position last) as a tree.

    An entry that is constant for all statements that reach it becomes a sequence, another one a loop, called as its
    iterator where it is one.
    """
    context = sizes_context(scop)
    domain = tuple(s.domain.intersect_params(context) for s in scop.statements)
    length = max((len(v) for v in vectors.values()), default=0)
    padded = {n: (*map(affine, v), *[affine(0)] * (length - len(v))) for n, v in vectors.items()}
    return ScheduleTree(domain, _nest({s.name: s for s in domain}, padded, 0))


def _nest(sets: Mapping[str, Set], vectors: Mapping[str, tuple[Affine, ...]], level: int) -> Node:
    names = list(sets)
    if level == len(next(iter(vectors.values()), ())):
        return _in_sequence({k: [n] for k, n in enumerate(names)}, sets, vectors, level)
    entries = {n: vectors[n][level] for n in names}
    if all(e.is_constant for e in entries.values()):
        groups: dict[int, list[str]] = {}
        for n in names:
            groups.setdefault(entries[n].const, []).append(n)
        return _in_sequence(dict(sorted(groups.items())), sets, vectors, level + 1)
    below = _nest(sets, vectors, level + 1)
    member = Member(_loop_name(entries, level), tuple(entries.items()))
    if isinstance(below, Band):
        return replace(below, members=(_apart(member, below), *below.members))
    return Band((member,), below)


def _in_sequence(
    groups: Mapping[int, list[str]], sets: Mapping[str, Set], vectors: Mapping[str, tuple[Affine, ...]], level: int
) -> Node:
    """The groups one after the other; one group alone needs no sequence."""
    last = level >= len(next(iter(vectors.values()), ()))

    def below(names: list[str]) -> Node:
        inside = {n: sets[n] for n in names}
        return Leaf() if last and len(names) <= 1 else _nest(inside, vectors, level)

    if len(groups) <= 1:
        return next((below(names) for names in groups.values()), Leaf())
    return Sequence(tuple(Filter(tuple(sets[n] for n in names), below(names)) for names in groups.values()))


def _loop_name(entries: Mapping[str, Affine], level: int) -> str:
    """The iterator that the first statement's entry is, or `c<level>`."""
    for e in entries.values():
        if len(e.variables()) == 1 and e == affine(next(iter(e.variables()))):
            return next(iter(e.variables()))
    return f"c{level}"


def _apart(member: Member, band: Band) -> Member:
    name = member.name
    while name in band.names():
        name += "_"
    return replace(member, name=name)


def read_tree(scop: Scop, text: str | TreeNode, *, coincident: bool = True) -> ScheduleTree:
    """isl's YAML form of a schedule tree (or what `parse_tree` made of it), for the statements of `scop` that it names,
    with the program's own iterators.  Extension and expansion nodes are refused: only the judge takes those.

    coincident: whether the loops that the text marks so become parallel loops.  Raises InputError with what is wrong.
    """
    root = parse_tree(text) if isinstance(text, str) else text
    context = sizes_context(scop)
    sets = [_of_program(scop, s) for s in root.instances]
    domain = {s.name: s.intersect(scop.statement(s.name).domain.intersect_params(context)) for s in sets}
    in_order = tuple(domain[s.name] for s in scop.statements if s.name in domain)
    return ScheduleTree(in_order, _Reader(scop, coincident).node(root.children[0], in_order))


def _of_program(scop: Scop, instances: Set) -> Set:
    """The same instances with the names that the program gives to their dimensions."""
    statement = named_statement(scop, instances.name)
    check_arity(statement, len(instances.dims))
    return instances.rename(dims=dict(zip(instances.dims, statement.iterators, strict=True)))


@dataclass(frozen=True, slots=True)
class _Reader:
    scop: Scop
    coincident: bool

    def node(self, node: TreeNode, reaching: tuple[Set, ...]) -> Node:
        if node.kind == "leaf":
            return Leaf()
        if node.kind == "mark":
            return Mark(node.name, self.node(node.children[0], reaching))
        if node.kind in ("extension", "expansion"):
            raise InputError(
                f"the schedule tree has a node of kind {node.kind}, which changes the instances of the program",
                help="give a tree of domain, context, filter, sequence, set, band and mark nodes",
            )
        if node.kind == "band":
            return Band(tuple(self.members(node, reaching)), self.node(node.children[0], reaching))
        filters = tuple(self.filter(c, reaching) for c in node.children)
        return Sequence(filters) if node.kind == "sequence" else Unordered(filters)

    def filter(self, node: TreeNode, reaching: tuple[Set, ...]) -> Filter:
        passed = {s.name: _of_program(self.scop, s) for s in node.instances}
        instances = tuple(passed[s.name] for s in reaching if s.name in passed)
        return Filter(instances, self.node(node.children[0], filtered(reaching, Filter(instances))))

    def members(self, node: TreeNode, reaching: tuple[Set, ...]) -> Iterator[Member]:
        """Loops called as the iterator that they are for the first statement, otherwise by their position."""
        taken: set[str] = set()
        for k, (maps, coincident) in enumerate(node.members):
            exprs = {s.name: self.entry(maps, s) for s in reaching}
            name = _loop_name(exprs, k)
            name = name if name not in taken else f"c{k}"
            taken.add(name)
            yield Member(name, tuple(exprs.items()), PARALLEL if coincident and self.coincident else SEQUENTIAL)

    def entry(self, maps: Mapping[str, Map], instances: Set) -> Affine:
        """The iteration of the instances of one statement."""
        if instances.name not in maps:
            raise InputError(
                f"a band of the schedule tree says nothing about {instances.name}",
                help="give every statement that reaches the band an iteration",
                id="schedule",
            )
        relation = with_in_dims(maps[instances.name], instances.dims)
        if instances.is_empty():
            return affine(0)
        left = instances.subtract(relation.domain())
        if not left.is_empty():
            raise InputError(
                f"a band of the schedule tree says nothing about {left.smallest() or left} of {instances.name}",
                help="let the loops of the band cover every instance that reaches them",
                id="schedule",
            )
        (entry,) = function_exprs(relation.intersect_domain(instances), instances.dims)
        return entry
