"""Schedule trees of programs: from the original order, from order vectors, from isl's text."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Sequence as Seq
from dataclasses import replace

from polyopt.ir import Scop
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
    exprs_of,
)
from polyopt.sets import Affine, AffineLike, Set, TreeNode, affine, parse_tree

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


def read_tree(scop: Scop, text: str) -> ScheduleTree:
    """isl's YAML form of a schedule tree, for the instances of `scop`.

    Iterators go by the names that the program gives them.  Raises InputError with what is wrong.
    """
    context = sizes_context(scop)
    domain = tuple(s.domain.intersect_params(context) for s in scop.statements)
    dims = {s.name: s.iterators for s in scop.statements}
    return ScheduleTree(domain, _from_isl(parse_tree(text, dims), tuple(dims)))


def _from_isl(node: TreeNode, names: tuple[str, ...]) -> Node:
    if node.kind == "leaf":
        return Leaf()
    if node.kind == "mark":
        return Mark(node.name, _from_isl(node.children[0], names))
    if node.kind == "band":
        members = tuple(
            Member(f"c{k}", exprs_of(exprs, names), PARALLEL if coincident else SEQUENTIAL)
            for k, (exprs, coincident) in enumerate(node.members)
        )
        return Band(_called(members), _from_isl(node.children[0], names))
    order = {n: k for k, n in enumerate(names)}
    filters = tuple(
        Filter(tuple(sorted(c.instances, key=lambda s: order[s.name])), _from_isl(c.children[0], names))
        for c in node.children
    )
    return Sequence(filters) if node.kind == "sequence" else Unordered(filters)


def _called(members: tuple[Member, ...]) -> tuple[Member, ...]:
    """Loops called as the iterator that they are for the first statement."""
    named: list[Member] = []
    for k, m in enumerate(members):
        name = _loop_name(dict(m.exprs), k)
        taken = {x.name for x in named}
        named.append(replace(m, name=name if name not in taken else f"c{k}"))
    return tuple(named)
