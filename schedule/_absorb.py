"""Initialisations that a reduction takes over.

`C[i, j] = c` directly before `C[i, j] += ...` becomes the reduction's starting value when the reduction reaches every
initialised cell and nothing touches C in between.  The rewriting is exact: it is proved on the access relations.
"""

from __future__ import annotations

from dataclasses import replace

from polyopt.ir import Access, Assign, Expr, Scop, Statement, access_relation, accesses, expr_iterators, substitute_expr
from polyopt.schedule._distribute import Leaf, LoopTree, SequentialLoop
from polyopt.sets import Affine, affine

__all__ = ["absorb_initialisations"]


def absorb_initialisations(scop: Scop, tree: tuple[LoopTree, ...]) -> tuple[tuple[LoopTree, ...], dict[str, Expr]]:
    """The tree without absorbed initialisations, and the starting value of each reduction that took one over."""
    found: dict[str, Expr] = {}
    return _absorb(scop, tree, found), found


def _absorb(scop: Scop, tree: tuple[LoopTree, ...], found: dict[str, Expr]) -> tuple[LoopTree, ...]:
    kept: list[LoopTree] = []
    for k, node in enumerate(tree):
        if isinstance(node, SequentialLoop):
            kept.append(replace(node, body=_absorb(scop, node.body, found)))
            continue
        reduction = _next_user(scop, tree[k + 1 :], scop.statement(node.statement))
        value = None if reduction is None else _starting_value(scop, node, reduction)
        if value is None or reduction is None or reduction.statement in found:
            kept.append(node)
        else:
            found[reduction.statement] = value
    return tuple(kept)


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
    if not a.target.is_exact or not b.target.is_exact or tensor in {r.tensor for r in (*a.reads(), *_value_reads(b))}:
        return None
    back = _inverse(first, a)
    if back is None or not _same_cells(scop, first, second, node, reduction):
        return None
    values = {i: b.target.affine_subscripts[axis] - offset for i, (axis, offset) in back.items()}
    return substitute_expr(a.value, values)


def _value_reads(body: Assign) -> tuple[Access, ...]:
    return accesses(body.value)


def _inverse(statement: Statement, body: Assign) -> dict[str, tuple[int, Affine]] | None:
    """Each iterator that the value or the target uses as (axis, offset) of a subscript `iterator + offset`."""
    found: dict[str, tuple[int, Affine]] = {}
    for axis, s in enumerate(body.target.affine_subscripts):
        moving = [i for i in statement.iterators if s.coefficient(i)]
        if len(moving) == 1 and s.coefficient(moving[0]) == 1 and s.is_linear():
            offset = s - affine(moving[0])
            if not offset.variables() & set(statement.iterators):
                found.setdefault(moving[0], (axis, offset))
    used = set(expr_iterators(body.value)) & set(statement.iterators)
    return found if used <= set(found) else None


def _same_cells(scop: Scop, first: Statement, second: Statement, node: Leaf, reduction: Leaf) -> bool:
    """Whether both write exactly the same cells in every iteration of the loops around them."""
    a, b = first.assign, second.assign
    tensor = scop.tensor(a.target.tensor)
    outer_a = [i for i in first.iterators if i not in node.parallel]
    outer_b = [i for i in second.iterators if i not in reduction.parallel]
    if len(outer_a) != len(outer_b):
        return False
    cells = [f"cell{k}" for k in range(len(tensor.shape))]
    images = []
    for statement, body, outer in ((first, a, outer_a), (second, b, outer_b)):
        domain = statement.domain.intersect_params(scop.context)
        relation = access_relation(domain, body.target, tensor, scop.params)
        pairs = relation.wrapped(statement.iterators, cells).project_onto([*outer, *cells])
        images.append(pairs.rename(dims={o: f"outer{k}" for k, o in enumerate(outer)}))
    return images[0].is_equal(images[1])
