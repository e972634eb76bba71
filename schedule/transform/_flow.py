"""Exact dataflow through one temporary tensor: which write each read finds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from polyopt.errors import InputError, UnsupportedError, nearest
from polyopt.ir import Scop, Tensor
from polyopt.schedule._touches import EXACT, Touch, order_of, touches
from polyopt.sets import Map, Set, last_sources

__all__ = ["Dataflow", "temporary", "tensor_flow"]


@dataclass(frozen=True, slots=True)
class Dataflow:
    """writes, reads: touches of the tensor.  sources: read (statement, position) -> writer -> {writer -> reader}."""

    writes: tuple[Touch, ...]
    reads: tuple[Touch, ...]
    sources: Mapping[Touch, tuple[Map, ...]]

    def unwritten(self, read: Touch) -> Set:
        """The instances of a read that find nothing that was written."""
        left = read.relation.domain()
        for m in self.sources[read]:
            left = left.subtract(m.range(left.dims).rename(name=left.name))
        return left


def temporary(scop: Scop, name: str) -> Tensor:
    """The temporary tensor called `name`.  Raises InputError when there is none or when others see its cells."""
    known = [t.name for t in scop.tensors]
    if name not in known:
        raise InputError(
            f"{scop.name} has no tensor {name!r}{nearest(name, known)}",
            help=f"tensors: {', '.join(known)}",
            id="tensor",
        )
    tensor = scop.tensor(name)
    if tensor.role != "temp":
        raise InputError(
            f"{name} is {tensor.role}, not temp: its cells are seen outside of the program",
            help="name a temporary tensor",
            id="tensor",
        )
    return tensor


def tensor_flow(scop: Scop, name: str) -> Dataflow:
    """The last write before each read of a tensor, in the original order, for all sizes in the context.

    Raises UnsupportedError when a data-dependent subscript or a call may touch the tensor.
    """
    found = [t for s in scop.statements for t in touches(scop, s, frozenset({name}))]
    unknown = next((t for t in found if t.access_class != EXACT), None)
    if unknown is not None:
        raise UnsupportedError(
            f"{unknown} may touch any cell: which value a read of {name} finds is not known",
            help="use tensors whose subscripts are known",
        )
    writes, reads = tuple(t for t in found if t.writes), tuple(t for t in found if t.reads)
    orders = [order_of(scop, s) for s in scop.statements]
    sources = {
        r: last_sources(sinks=[r.relation], must_sources=[w.relation for w in writes], orders=orders) for r in reads
    }
    return Dataflow(writes, reads, sources)
