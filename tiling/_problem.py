"""What the planner of one kernel knows: the statement in linear form, its space, sizes and the machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from polyopt.ir import Access, Assign, Expr, Indirect, Read, Statement, Tensor, access_variables, walk
from polyopt.machine import Machine
from polyopt.tiling._space import Space

__all__ = ["ACCUMULATED", "Problem"]

ACCUMULATED = "$sum"
"""Name of the pseudo tensor that stands for a reduction's result inside its finishing expression."""


@dataclass(frozen=True, slots=True)
class Problem:
    """dims: parallel dimensions of the kernel in statement order; reduced: those that only the reduction runs over.

    initial: the value that an absorbed initialisation would have written, in the statement's own dimensions, or None.
    finish: an absorbed elementwise use of the reduction's result, in the statement's own dimensions, or None.
    whole: tensors every cell of which has a value before the kernel runs.
    limits: dimension -> the largest tile that the user allows.
    fixed: whether `sizes` are the only sizes (then spans may be as long as a whole dimension).
    """

    machine: Machine
    statement: Statement
    space: Space
    dims: tuple[str, ...]
    reduced: tuple[str, ...]
    tensors: Mapping[str, Tensor]
    sizes: Mapping[str, int]
    fixed: bool
    initial: Expr | None = None
    finish: Assign | None = None
    whole: frozenset[str] = frozenset()
    limits: Mapping[str, int] = field(default_factory=dict)

    @property
    def body(self) -> Assign:
        return self.statement.assign

    @property
    def target(self) -> Access:
        """What the kernel writes to device memory."""
        return self.finish.target if self.finish else self.body.target

    @property
    def element(self) -> str:
        """The element type of `target`."""
        return self.tensors[self.target.tensor].dtype

    @property
    def dtypes(self) -> dict[str, str]:
        return {n: t.dtype for n, t in self.tensors.items()}

    def extent(self, dim: str) -> int:
        """Points of `dim` at the hinted sizes, at most."""
        return self.space.hint(dim)

    def longest(self, dim: str) -> int:
        """The largest tile of `dim` before the machine is asked: its points, or the user's limit."""
        return max(1, min(self.extent(dim), self.limits.get(dim, self.extent(dim))))

    def is_long(self, dim: str, tile: int) -> bool:
        """Whether a loop over tiles is needed: more points than a tile, or not known to be fewer."""
        if self.extent(dim) > tile:
            return True
        return not self.fixed and not self.has_constant_extent(dim)

    def has_constant_extent(self, dim: str) -> bool:
        low, high = self.space.bounds(dim, ())
        return (high - low).is_constant

    def dims_of(self, access: Access) -> tuple[str, ...]:
        """Kernel dimensions that move an access, in statement order."""
        used = access_variables(access)
        return tuple(d for d in self.dims if d in used)

    def reads(self, value: Expr) -> tuple[Access, ...]:
        """Direct read accesses of an expression, each once."""
        return tuple(dict.fromkeys(n.access for n in walk(value) if isinstance(n, Read)))

    def contiguous_dim(self, access: Access) -> str | None:
        """The dimension along which neighbouring points are neighbours in memory (the innermost axis that moves)."""
        tensor = self.tensors[access.tensor]
        for axis in range(len(access.subscripts) - 1, -1, -1):
            subscript = access.subscripts[axis]
            if isinstance(subscript, Indirect):
                return None
            moving = [d for d in self.dims if subscript.coefficient(d)]
            if moving:
                return moving[-1] if abs(subscript.coefficient(moving[-1])) == 1 else None
            if tensor.shape[axis].is_constant and tensor.shape[axis].const == 1:
                continue
            return None
        return None
