"""What `absorb` claims, written out as a program: the reduction in a tensor of its own, then one statement that
combines its total with the starting value and finishes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from polyopt.ir import Access, Apply, Assign, Const, Expr, Read, Scop, Statement, Tensor, rewrite
from polyopt.schedule import Absorbed, Leaf, LoopTree
from polyopt.sets import Affine, affine, var

IDENTITY = {"+": 0.0, "*": 1.0, "min": float("inf"), "max": float("-inf")}


def written_out(scop: Scop, tree: tuple[LoopTree, ...], absorbed: Mapping[str, Absorbed]) -> Scop:
    """The instances in the order of `tree`, the absorbed leaves replaced by what the reductions' kernels do."""
    made: list[Statement] = []
    tensors = list(scop.tensors)

    def visit(nodes: tuple[LoopTree, ...], inside: Mapping[str, tuple[Affine, ...]], above: tuple[Affine, ...]) -> None:
        for position, node in enumerate(nodes):
            if not isinstance(node, Leaf):
                inner = {n: (*inside.get(n, above), affine(position), var(i)) for n, i in node.iterators}
                visit(node.body, inner, ())
                continue
            statement = scop.statement(node.statement)
            prefix = (*inside.get(node.statement, above), affine(position))
            if node.statement not in absorbed:
                made.append(replace(statement, order=(*prefix, *map(var, node.parallel))))
                continue
            total = f"total_{statement.name}"
            shape = scop.tensor(statement.assign.target.tensor)
            tensors.append(Tensor(total, shape.shape, shape.dtype, "temp"))
            made.extend(_parts(statement, node, absorbed[node.statement], prefix, total))

    visit(tree, {}, ())
    return replace(scop, tensors=tuple(tensors), statements=tuple(made))


def _parts(s: Statement, leaf: Leaf, taken: Absorbed, prefix: tuple[Affine, ...], total: str) -> list[Statement]:
    body = s.assign
    assert body.combine is not None
    cell = Access(total, body.target.subscripts)
    moving = {v for e in body.target.affine_subscripts for v in e.variables()}
    reduced = [d for d in leaf.parallel if d not in moving]
    kept = [d for d in leaf.parallel if d in moving]

    def part(number: int, dims: list[str], domain: Statement, assign: Assign) -> Statement:
        name = f"{s.name}_{number}"
        order = (*prefix, affine(number), *map(var, dims))
        return replace(domain, name=name, domain=domain.domain.rename(name=name), order=order, body=assign)

    start: Expr = taken.initial if taken.initial is not None else Read(body.target)
    value: Expr = Apply(body.combine, (start, Read(cell)))
    last = Assign(body.target, value)
    if taken.finish is not None:
        last = Assign(taken.finish.target, _with_total(taken.finish.value, body.target.tensor, value))
    smaller = replace(s, domain=s.domain.project_out(reduced))
    return [
        part(0, list(leaf.parallel), s, Assign(cell, Const(IDENTITY[body.combine]))),
        part(1, list(leaf.parallel), s, Assign(cell, body.value, body.combine)),
        part(2, kept, smaller, last),
    ]


def _with_total(value: Expr, tensor: str, total: Expr) -> Expr:
    return rewrite(value, lambda e: total if isinstance(e, Read) and e.access.tensor == tensor else e)
