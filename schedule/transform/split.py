"""Index-set splitting and peeling."""

from __future__ import annotations

from collections.abc import Mapping

from polyopt.errors import InputError, nearest
from polyopt.ir import Scop
from polyopt.schedule._tree import Member, Node, Path, ScheduleTree, node_at
from polyopt.schedule.transform._edit import (
    Loop,
    LoopAt,
    find_loop,
    outer_exprs,
    reaching,
    replaced,
    sequence_of,
    time_of,
    whole,
    with_members,
)
from polyopt.schedule.transform._legal import require_legal
from polyopt.sets import Affine, AffineLike, Constraint, Set, affine, maximum, minimum

__all__ = ["index_set_split", "loop_range", "peel", "split_loop"]


def index_set_split(scop: Scop, tree: ScheduleTree, path: Path, conditions: Mapping[str, str]) -> ScheduleTree:
    """The instances for which a condition holds run first, all others after them, each part as the node at `path` says.

    conditions: statement -> constraints on its iterators and sizes (set text); statements without one run first.

    Rewrite, conditions {S: "i < N//2"}:    loop i: S    ->    in sequence
                                                                 loop i: S if i < N//2
                                                                 loop i: S if i >= N//2

    Raises LegalityError with the witness when a dependence forbids it.  Source: Griebl, Feautrier and Lengauer, "Index
    set splitting", IJPP 2000.
    """
    node = node_at(tree, path)
    sets = reaching(tree, path)
    known = {s.name: s for s in sets}
    for name in conditions:
        if name not in known:
            raise InputError(
                f"no instance of {name!r} reaches {list(path)}{nearest(name, known)}",
                help=f"statements there: {', '.join(known)}",
                id="tree-path",
            )
    first = tuple(_where(s, conditions[s.name]) if s.name in conditions else s for s in sets)
    rest = tuple(s.subtract(f) for s, f in zip(sets, first, strict=True))
    changed = replaced(tree, path, sequence_of([(first, node), (rest, node)]))
    return require_legal(scop, changed, f"splitting {', '.join(conditions)}")


def _where(instances: Set, condition: str) -> Set:
    text = f"[{', '.join(instances.dims)}] : {condition}"
    return instances.intersect(Set.parse(text, name=instances.name, params=instances.params))


def split_loop(scop: Scop, tree: ScheduleTree, loop: Loop, at: AffineLike) -> ScheduleTree:
    """The iterations of a loop below `at` (numbers and sizes) and those from there on become loops of their own.

    Rewrite, at 5:    loop i: i    ->    in sequence: loop i if i < 5; loop i if i >= 5

    The order stays as it is.  Raises InputError when `at` is not made of sizes and numbers.
    """
    found, limit = find_loop(tree, loop), affine(at)
    for name in sorted(limit.variables()):
        if name not in scop.params:
            raise InputError(
                f"{name!r} is no size of {scop.name}{nearest(name, scop.params)}",
                help=f"sizes: {', '.join(scop.params) or 'none'}",
                id="unknown-name",
            )
    changed = replaced(tree, found.path, _parts(found, reaching(tree, found.path), [limit]))
    return require_legal(scop, changed, f"splitting {found.member.name} at {limit}")


def peel(scop: Scop, tree: ScheduleTree, loop: Loop, *, first: int = 0, last: int = 0) -> ScheduleTree:
    """The `first` and the `last` iterations of a loop become loops of their own, whatever the loops around say.

    Rewrite, first 1, last 2, loop from 0 to N - 1:    loop i: i    ->    in sequence
                                                                            loop i if i < 1
                                                                            loop i if 1 <= i < N - 2
                                                                            loop i if i >= N - 2

    The order stays as it is.  Raises TileSizeError on negative numbers.
    """
    found = find_loop(tree, loop)
    head, tail = (whole(f"what is peeled off {found.member.name}", n, 0) for n in (first, last))
    sets = reaching(tree, found.path)
    bounds = loop_range(tree, found, sets)
    after_head = {name: low + head for name, (low, _) in bounds.items()}
    before_tail = {name: maximum(after_head[name], high + 1 - tail) for name, (_, high) in bounds.items()}
    changed = replaced(tree, found.path, _parts(found, sets, [after_head, before_tail]))
    return require_legal(scop, changed, f"peeling {found.member.name}")


def loop_range(tree: ScheduleTree, found: LoopAt, sets: tuple[Set, ...]) -> dict[str, tuple[Affine, Affine]]:
    """Statement -> the first and the last iteration of a loop, over all statements in it, in its own iterators.

    They depend on the iterations of the loops around.
    """
    around = {s.name: (*outer_exprs(tree, found.path, s.name), *_of(found.outer, s.name)) for s in sets}
    dims = [f"o{k}" for k in range(max(map(len, around.values()), default=0))]
    loop = dict(found.member.exprs)
    spans = [time_of(s, [*around[s.name], loop[s.name]], [*dims, "v"]) for s in sets if not s.is_empty()]
    if not spans:
        return {s.name: (affine(0), affine(-1)) for s in sets}
    bounds = [span.bounds("v", dims) for span in spans]
    low, high = minimum(*(b[0] for b in bounds)), maximum(*(b[1] for b in bounds))
    own = {s.name: dict(zip(dims, around[s.name], strict=True)) for s in sets}
    return {s.name: (low.substitute(own[s.name]), high.substitute(own[s.name])) for s in sets}


def _of(members: tuple[Member, ...], statement: str) -> list[Affine]:
    return [dict(m.exprs)[statement] for m in members]


def _parts(found: LoopAt, sets: tuple[Set, ...], limits: list[Affine] | list[dict[str, Affine]]) -> Node:
    """The loop, once for the iterations below each limit and once for the rest, inside of the loops around it."""
    exprs = dict(found.member.exprs)
    node = with_members(found, (found.member, *found.inner))
    parts: list[tuple[tuple[Set, ...], Node]] = []
    left = sets
    for limit in limits:
        below = tuple(
            s.constrain([Constraint((limit[s.name] if isinstance(limit, dict) else limit) - 1 - exprs[s.name])])
            for s in left
        )
        parts.append((below, node))
        left = tuple(s.subtract(b) for s, b in zip(left, below, strict=True))
    parts.append((left, node))
    return with_members(found, found.outer, sequence_of(parts))
