"""The iteration space of one kernel: bounds of its dimensions inside any prefix of its tile loops, exactly and
symbolically.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from polyopt.errors import UnsupportedError
from polyopt.ir.mapping import Span
from polyopt.sets import Affine, Constraint, Set, affine, minimum

__all__ = ["LoopShape", "Space"]


@dataclass(frozen=True, slots=True)
class LoopShape:
    """A tile loop before its bounds are known: `var` steps over starts of `step` points of `dim`."""

    dim: str
    var: str
    step: int


@dataclass(frozen=True, slots=True)
class Space:
    """domain: the statement's instances; outer: its iterators that surrounding sequential loops fix; sizes: hints.

    box: bounds (upper excluded) of every dimension when they depend on parameters and outer iterators only, else None.
    """

    domain: Set
    outer: tuple[str, ...]
    sizes: Mapping[str, int]
    box: Mapping[str, tuple[Affine, Affine]] | None = None

    @staticmethod
    def of(domain: Set, outer: Sequence[str], sizes: Mapping[str, int]) -> Space:
        """The space of `domain`, its box found when it is one."""
        return Space(domain, tuple(outer), sizes, _box(domain, outer))

    def inside(self, loops: Sequence[LoopShape]) -> Set:
        """Instances with one dimension more for each loop variable: var <= dim < var + step."""
        extended = self.domain.add_dims([loop.var for loop in loops])
        rows: list[Constraint] = []
        for loop in loops:
            offset = affine(loop.dim) - loop.var
            rows += [Constraint(offset), Constraint(affine(loop.step - 1) - offset)]
        return extended.constrain(rows)

    def bounds(self, dim: str, loops: Sequence[LoopShape]) -> tuple[Affine, Affine]:
        """(lower, upper excluded) of `dim` in terms of parameters, outer iterators and the variables of `loops`.

        A loop over `dim` itself clips to its step without making the expressions longer than needed.
        """
        own = [loop for loop in loops if loop.dim == dim]
        if self.box is not None:
            low, high = self.box[dim]
            return (affine(own[-1].var), minimum(high, affine(own[-1].var) + own[-1].step)) if own else (low, high)
        others = [loop for loop in loops if loop.dim != dim]
        low, high = _bounds(self.inside(others), dim, (*self.outer, *(loop.var for loop in others)))
        if not own:
            return low, high
        start = affine(own[-1].var)
        stops = [affine(loop.var) + loop.step for loop in own[-1:]]
        return start, minimum(high, *stops)

    def span(self, dim: str, loops: Sequence[LoopShape], size: int) -> Span:
        """What a buffer inside `loops` covers of `dim`; `size` is the largest number of points."""
        low, high = self.bounds(dim, loops)
        return Span(dim, size, low, high)

    def residual(self, dims: Sequence[str], loops: Sequence[LoopShape]) -> tuple[Constraint, ...]:
        """Constraints of the projection on `dims` that the box of their bounds does not imply.

        Raises UnsupportedError when they are not one conjunction of inequalities without integer divisions.
        """
        if self.box is not None:
            return ()
        kept = [*self.outer, *(loop.var for loop in loops), *dims]
        whole = self.inside(loops)
        projected = whole.project_onto(kept)
        rows: list[Constraint] = []
        for d in dims:
            low, high = self.bounds(d, loops)
            rows += [Constraint(affine(d) - low), Constraint(high - 1 - d)]
        box = projected.project_out(dims).add_dims(dims).constrain(rows)
        if box.is_subset(projected):
            return ()
        parts = projected.gist(box).basic()
        if len(parts) != 1 or any(not c.expr.is_linear() for c in parts[0]):
            raise UnsupportedError("the domain is not a box with linear constraints", id="domain-shape")
        return tuple(parts[0])

    def hint(self, dim: str) -> int:
        """The number of points of `dim` at the hinted sizes, at most."""
        return max(0, self.extreme(dim, (), high=True) - self.extreme(dim, (), high=False) + 1)

    def extreme(self, dim: str, loops: Sequence[LoopShape], *, high: bool) -> int:
        fixed = self.domain.fix(self.sizes)
        if fixed.is_empty():
            return -1 if high else 0
        low_bound, high_bound = fixed.bounds(dim)
        return (high_bound if high else low_bound).evaluate(self.sizes)


def _box(domain: Set, outer: Sequence[str]) -> dict[str, tuple[Affine, Affine]] | None:
    parts = domain.basic()
    dims = [d for d in domain.dims if d not in outer]
    if len(parts) != 1:
        return None
    for row in parts[0]:
        inner = [v for v in row.expr.variables() if v in dims]
        if not row.expr.is_linear() or len(inner) > 1 or (inner and abs(row.expr.coefficient(inner[0])) != 1):
            return None
    return {d: (low, high + 1) for d in dims for low, high in [domain.bounds(d, outer)]}


def _bounds(domain: Set, dim: str, known: Sequence[str]) -> tuple[Affine, Affine]:
    if domain.is_empty():
        return affine(0), affine(0)
    low, high = domain.bounds(dim, known)
    return low, high + 1
