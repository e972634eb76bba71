"""Copies one iteration ahead.

    for i: copy(i); work(i)        ->        copy(first); for i: copy(i + step) if there is one; work(i)

Worth while where a copy passes through engines that the work needs too: in order behind the work it would leave them
idle. The buffers rotate already, so that the next copy never overwrites what the present work reads.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from polyopt.backend._names import Names
from polyopt.ir import Instr, Lane, Loop, Node, View
from polyopt.sets import Affine, Constraint, var

__all__ = ["ahead_of_loop"]


def ahead_of_loop(nodes: list[Node], loop: Loop, names: Names) -> tuple[list[Node], list[Node]]:
    """The nodes of one iteration of `loop` as (before the loop for its first, inside the loop for the next)."""
    first = _moved(tuple(nodes), {loop.var: loop.lower}, (Constraint(loop.upper - 1 - loop.lower),), Names())
    following = var(loop.var) + loop.step
    guard = (Constraint(loop.upper - 1 - following),)
    return list(first), list(_moved(tuple(nodes), {loop.var: following}, guard, names))


def _moved(
    nodes: tuple[Node, ...], values: Mapping[str, Affine], guards: tuple[Constraint, ...], names: Names
) -> tuple[Node, ...]:
    """The nodes with variables replaced, under further guards, loops and sites under new names."""
    out: list[Node] = []
    for n in nodes:
        if isinstance(n, Loop):
            name = names.new(n.var)
            inner = {**values, n.var: var(name)}
            lower, upper = n.lower.substitute(values), n.upper.substitute(values)
            out.append(Loop(name, lower, upper, _moved(n.body, inner, guards, names), n.step))
        else:
            out.append(_instr(n, values, guards, names))
    return tuple(out)


def _instr(n: Instr, values: Mapping[str, Affine], guards: tuple[Constraint, ...], names: Names) -> Instr:
    own = tuple(c.substitute(values) for c in n.guards)
    extra = tuple(g for g in guards if not (g.expr.is_constant and g.expr.const >= 0))
    return replace(
        n,
        site=names.new(n.site),
        lanes=tuple(Lane(x.name, x.role, x.extent.substitute(values)) for x in n.lanes),
        operands=tuple((k, _view(v, values)) for k, v in n.operands),
        guards=(*own, *extra),
        mask=tuple(c.substitute(values) for c in n.mask),
        index=None if n.index is None else n.index.substitute(values),
    )


def _view(v: View, values: Mapping[str, Affine]) -> View:
    indirect = tuple((axis, _view(index, values)) for axis, index in v.indirect)
    base = tuple(b.substitute(values) for b in v.base)
    return replace(v, base=base, copy=v.copy.substitute(values), indirect=indirect)
