"""Statements that a reduction's kernel takes over: the initialisation before it, an elementwise use of its result
behind it.

    C[i, j] = c                                    kernel:  total = sum over k of A[i, k]*B[k, j]
    C[i, j] += A[i, k]*B[k, j]           ->                 D[i, j] = f(c + total)
    D[i, j] = f(C[i, j])      (C a temporary)

The first needs the reduction to reach exactly the initialised cells, the second that nothing else reads C and that
the use covers exactly its cells; nothing between may touch the tensors involved.  All of it is proved on the access
relations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from polyopt.ir import (
    Access,
    Assign,
    Expr,
    Scop,
    Statement,
    access_relation,
    accesses,
    expr_iterators,
    substitute_access,
    substitute_expr,
)
from polyopt.schedule._distribute import Leaf, LoopTree, SequentialLoop
from polyopt.schedule._substitute import is_direct
from polyopt.sets import Affine, affine

__all__ = ["Absorbed", "absorb"]


@dataclass(frozen=True, slots=True)
class Absorbed:
    """What one reduction's kernel took over.

    before: the initialising leaf and its value in the reduction's iterators; behind: the using leaf and its
    assignment in the reduction's iterators.  None where there is none.
    """

    before: Leaf | None = None
    initial: Expr | None = None
    behind: Leaf | None = None
    finish: Assign | None = None


def absorb(scop: Scop, tree: tuple[LoopTree, ...]) -> tuple[tuple[LoopTree, ...], dict[str, Absorbed]]:
    """The tree without the absorbed leaves, and what each reduction took over."""
    found: dict[str, Absorbed] = {}
    without_initials = _absorb_initials(scop, tree, found)
    return _absorb_uses(scop, without_initials, found), found


def _absorb_initials(scop: Scop, tree: tuple[LoopTree, ...], found: dict[str, Absorbed]) -> tuple[LoopTree, ...]:
    kept: list[LoopTree] = []
    for k, node in enumerate(tree):
        if isinstance(node, SequentialLoop):
            kept.append(replace(node, body=_absorb_initials(scop, node.body, found)))
            continue
        reduction = _next_user(scop, tree[k + 1 :], scop.statement(node.statement))
        value = None if reduction is None else _starting_value(scop, node, reduction)
        if value is None or reduction is None or reduction.statement in found:
            kept.append(node)
        else:
            found[reduction.statement] = Absorbed(before=node, initial=value)
    return tuple(kept)


def _absorb_uses(scop: Scop, tree: tuple[LoopTree, ...], found: dict[str, Absorbed]) -> tuple[LoopTree, ...]:
    kept: list[LoopTree] = []
    gone: set[str] = set()
    for k, node in enumerate(tree):
        if isinstance(node, SequentialLoop):
            kept.append(replace(node, body=_absorb_uses(scop, node.body, found)))
        elif node.statement not in gone:
            kept.append(node)
            user = _only_user(scop, tree[k + 1 :], node)
            initial = found[node.statement].initial if node.statement in found else None
            finish = None if user is None else _finishing_assignment(scop, node, user, initial)
            if user is not None and finish is not None:
                gone.add(user.statement)
                found[node.statement] = replace(found.get(node.statement, Absorbed()), behind=user, finish=finish)
    return tuple(kept)


def _only_user(scop: Scop, rest: tuple[LoopTree, ...], node: Leaf) -> Leaf | None:
    """The leaf that alone reads the reduction's result, when it may be moved up to the reduction."""
    statement = scop.statement(node.statement)
    if statement.is_opaque or statement.assign.combine is None:
        return None
    name = statement.assign.target.tensor
    if scop.tensor(name).role != "temp" or _readers(scop, name) - {statement.name} != {
        _first_toucher(scop, rest, name)
    }:
        return None
    between: list[LoopTree] = []
    for later in rest:
        if name in _touched(scop, later):
            return later if isinstance(later, Leaf) and _may_move_up(scop, later, between) else None
        between.append(later)
    return None


def _first_toucher(scop: Scop, rest: Sequence[LoopTree], name: str) -> str | None:
    leaf = next((n for n in rest if name in _touched(scop, n)), None)
    return leaf.statement if isinstance(leaf, Leaf) else None


def _readers(scop: Scop, name: str) -> set[str]:
    found: set[str] = set()
    for s in scop.statements:
        reads = [a.tensor for a in s.body.reads()] if isinstance(s.body, Assign) else list(s.body.may_read)
        if name in reads:
            found.add(s.name)
    return found


def _may_move_up(scop: Scop, leaf: Leaf, between: Sequence[LoopTree]) -> bool:
    statement = scop.statement(leaf.statement)
    if statement.is_opaque:
        return False
    own = {statement.assign.target.tensor, *(a.tensor for a in statement.assign.reads())}
    for node in between:
        if own & _written(scop, node) or statement.assign.target.tensor in _touched(scop, node):
            return False
    return True


def _finishing_assignment(scop: Scop, node: Leaf, user: Leaf, initial: Expr | None) -> Assign | None:
    """The use in the reduction's iterators, or None when the two do not cover the same cells one to one, or when the
    kernel that starts from `initial` reads what the use writes.
    """
    first, second = scop.statement(node.statement), scop.statement(user.statement)
    body, made = second.assign, first.assign
    reads = {a for a in accesses(body.value) if a.tensor == made.target.tensor}
    if len(reads) != 1 or body.target.tensor == made.target.tensor or not body.target.is_exact:
        return None
    read = next(iter(reads))
    if not read.is_exact or not made.target.is_exact or not is_direct(body.value, made.target.tensor):
        return None
    if body.target.tensor in {r.tensor for r in (*made.reads(), *(() if initial is None else accesses(initial)))}:
        return None
    back = _positions(second, read)
    if back is None or set(back) != set(user.parallel) or not _written_once(second, user):
        return None
    if not _same_cells(scop, (first, made.target, node), (second, read, user)):
        return None
    values = {i: made.target.affine_subscripts[axis] - offset for i, (axis, offset) in back.items()}
    outer = dict(zip(_outer(second, user), map(affine, _outer(first, node)), strict=False))
    moved = {**outer, **values}
    return Assign(substitute_access(body.target, moved), substitute_expr(body.full_value(), moved))


def _written_once(statement: Statement, leaf: Leaf) -> bool:
    """Whether different parallel instances write different cells."""
    target = _positions(statement, statement.assign.target)
    return target is not None and set(leaf.parallel) <= set(target)


def _next_user(scop: Scop, rest: tuple[LoopTree, ...], first: Statement) -> Leaf | None:
    """The leaf that touches the target next, unless it is inside a loop."""
    if first.is_opaque:
        return None
    inputs = {a.tensor for a in first.assign.reads()}
    for node in rest:
        names = _touched(scop, node)
        if first.assign.target.tensor in names:
            return node if isinstance(node, Leaf) else None
        if inputs & _written(scop, node):
            return None
    return None


def _touched(scop: Scop, node: LoopTree) -> set[str]:
    if isinstance(node, SequentialLoop):
        return set().union(*(_touched(scop, n) for n in node.body))
    body = scop.statement(node.statement).body
    if not isinstance(body, Assign):
        return {*body.may_read, *body.may_write}
    return {body.target.tensor, *(a.tensor for a in body.reads())}


def _written(scop: Scop, node: LoopTree) -> set[str]:
    if isinstance(node, SequentialLoop):
        return set().union(*(_written(scop, n) for n in node.body))
    body = scop.statement(node.statement).body
    return {body.target.tensor} if isinstance(body, Assign) else set(body.may_write)


def _starting_value(scop: Scop, node: Leaf, reduction: Leaf) -> Expr | None:
    """The initial value in the reduction's dimensions, or None when the rewriting is not exact."""
    first, second = scop.statement(node.statement), scop.statement(reduction.statement)
    a, b = first.body, second.body
    if not isinstance(a, Assign) or not isinstance(b, Assign) or a.combine or b.combine is None:
        return None
    tensor = b.target.tensor
    if tensor != a.target.tensor or not a.target.is_exact or not b.target.is_exact:
        return None
    if tensor in {r.tensor for r in (*a.reads(), *accesses(b.value))}:
        return None
    back = _positions(first, a.target)
    used = set(expr_iterators(a.value)) & set(first.iterators)
    if back is None or not used <= set(back):
        return None
    if not _same_cells(scop, (first, a.target, node), (second, b.target, reduction)):
        return None
    values = {i: b.target.affine_subscripts[axis] - offset for i, (axis, offset) in back.items()}
    return substitute_expr(a.value, values)


def _positions(statement: Statement, access: Access) -> dict[str, tuple[int, Affine]] | None:
    """Iterators that stand alone in a subscript `iterator + offset`, as (axis, offset); None for other subscripts."""
    found: dict[str, tuple[int, Affine]] = {}
    for axis, s in enumerate(access.affine_subscripts):
        moving = [i for i in statement.iterators if i in s.variables()]
        if not moving:
            continue
        if len(moving) > 1 or s.coefficient(moving[0]) != 1:
            return None
        offset = s - affine(moving[0])
        if offset.variables() & set(statement.iterators):
            return None
        found.setdefault(moving[0], (axis, offset))
    return found


def _outer(statement: Statement, leaf: Leaf) -> list[str]:
    return [i for i in statement.iterators if i not in leaf.parallel]


def _same_cells(scop: Scop, a: tuple[Statement, Access, Leaf], b: tuple[Statement, Access, Leaf]) -> bool:
    """Whether both accesses name exactly the same cells in every iteration of the loops around them."""
    tensor = scop.tensor(a[1].tensor)
    cells = [f"cell{k}" for k in range(len(tensor.shape))]
    images = []
    for statement, access, leaf in (a, b):
        outer = _outer(statement, leaf)
        domain = statement.domain.intersect_params(scop.context)
        relation = access_relation(domain, access, tensor, scop.params)
        pairs = relation.wrapped(statement.iterators, cells).project_onto([*outer, *cells])
        images.append(pairs.rename(dims={o: f"outer{k}" for k, o in enumerate(outer)}))
    return images[0].dims == images[1].dims and images[0].is_equal(images[1])
