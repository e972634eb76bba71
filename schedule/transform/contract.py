"""Array contraction: a temporary that keeps only the cells that are still needed."""

from __future__ import annotations

from dataclasses import dataclass, replace

from polyopt.errors import InputError, LegalityError
from polyopt.ir import Access, Assign, Read, Scop, Statement, Tensor, rewrite
from polyopt.schedule.transform._flow import Dataflow, temporary, tensor_flow
from polyopt.sets import affine

__all__ = ["MOST_WINDOW", "Contraction", "contract"]

MOST_WINDOW = 64
"""Windows that are tried; a longer one saves little."""


@dataclass(frozen=True, slots=True)
class Contraction:
    """scop: the program with the smaller tensor.  copies: its extent along the axis, the smallest that is legal."""

    scop: Scop
    copies: int


def contract(scop: Scop, tensor: str, axis: int) -> Contraction:
    """A temporary keeps a rotating window of its cells along an axis; the order of the program stays as it is.

    Rewrite, 2 copies:    T[i] = ...; ... = T[i] + T[i - 1]    ->    T[i % 2] = ...; ... = T[i % 2] + T[(i - 1) % 2]

    The number of copies is the smallest for which every read still finds the same write, by exact dataflow for all
    sizes; 1 makes the axis vanish in all but name.  To contract under another order, apply that first (`apply_tree`).
    Raises LegalityError when no constant number up to 64 suffices, InputError when the tensor is no temporary or has no
    such axis, UnsupportedError when data-dependent subscripts or calls touch it.  Source: Lefebvre and Feautrier,
    "Automatic storage management for parallel programs", Parallel Computing 1998.
    """
    found = temporary(scop, tensor)
    if not 0 <= axis < len(found.shape):
        raise InputError(
            f"{tensor} has {len(found.shape)} dimensions, there is no axis {axis}",
            help="count the axes from 0",
            id="tensor",
        )
    wanted = tensor_flow(scop, tensor)
    extent = found.shape[axis]
    most = min(extent.const, MOST_WINDOW) if extent.is_constant else MOST_WINDOW
    for copies in range(1, most + 1):
        folded = _folded(scop, found, axis, copies)
        if _same(wanted, tensor_flow(folded, tensor), axis, copies):
            return Contraction(folded, copies)
    raise LegalityError(
        f"{tensor} cannot be contracted along axis {axis}: no window of up to {most} cells keeps what is still read",
        help="contract another axis, or fuse the producer with its readers first",
    )


def _folded(scop: Scop, tensor: Tensor, axis: int, copies: int) -> Scop:
    shape = (*tensor.shape[:axis], affine(copies), *tensor.shape[axis + 1 :])
    tensors = tuple(replace(t, shape=shape) if t.name == tensor.name else t for t in scop.tensors)
    statements = tuple(_statement(s, tensor.name, axis, copies) for s in scop.statements)
    return replace(scop, tensors=tensors, statements=statements)


def _statement(s: Statement, tensor: str, axis: int, copies: int) -> Statement:
    if not isinstance(s.body, Assign):
        return s

    def fold(access: Access) -> Access:
        return _folded_access(access, axis, copies) if access.tensor == tensor else access

    value = rewrite(s.body.value, lambda e: Read(fold(e.access)) if isinstance(e, Read) else e)
    return replace(s, body=replace(s.body, target=fold(s.body.target), value=value))


def _folded_access(access: Access, axis: int, copies: int) -> Access:
    entry = access.affine_subscripts[axis]
    return Access(access.tensor, (*access.subscripts[:axis], entry % copies, *access.subscripts[axis + 1 :]))


def _same(wanted: Dataflow, found: Dataflow, axis: int, copies: int) -> bool:
    """Whether every read finds the same writes; reads that found nothing may find anything."""
    folded = {(b.statement, b.access): b for b in found.reads}
    for a in wanted.reads:
        assert a.access is not None  # no call touches the tensor
        b = folded[a.statement, _folded_access(a.access, axis, copies)]
        sources = {m.in_name: m for m in found.sources[b]}
        for m in wanted.sources[a]:
            if m.in_name not in sources or not m.is_subset(sources[m.in_name]):
                return False
    return True
