"""Where the copies of every kernel stand, and what keeps them from standing further out.

A copy is hoisted as far as it goes when every loop around it changes what it copies.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod

from polyopt.explain._finding import COPY, Finding
from polyopt.explain._judge import Court
from polyopt.explain._use import Uses
from polyopt.ir import Access, access_variables, dtype
from polyopt.ir.mapping import Kernel, Placement, Span, kernels
from polyopt.machine import Machine
from polyopt.schedule import SequentialLoop, Verdict, leaves
from polyopt.sets import affine, var
from polyopt.tiling import is_contraction

__all__ = ["explain_copies", "held_bytes"]


@dataclass(frozen=True, slots=True)
class _Around:
    """A loop around a copy.  name: the iterator, or the tile loop's variable; moves: whether the copied part changes
    with it.  depth: tile loops outside it; None for a sequential loop.
    """

    name: str
    moves: bool
    depth: int | None
    trips: float
    sequential: SequentialLoop | None = None


def explain_copies(court: Court, uses: Uses, machine: Machine, *, fixed: bool) -> Iterator[Finding]:
    """One finding for each copy to or from device memory.  fixed: whether all sizes were known to the search."""
    if uses.mapping is None:
        return
    for kernel in kernels(uses.mapping.nodes):
        for p in kernel.placements:
            if isinstance(p.term, Access) and p.direction != "temp":
                yield _finding(court, uses, machine, kernel, p, p.term, fixed)


def _finding(
    court: Court, uses: Uses, machine: Machine, kernel: Kernel, p: Placement, access: Access, fixed: bool
) -> Finding:
    name = kernel.statement.name
    around = list(_around(uses, kernel, p, access))
    idle = next((x for x in around if not x.moves), None)
    if idle is None:
        done, why, verdict = True, _hoisted(machine, kernel, p, around), None
    elif idle.sequential is not None:
        done, (why, verdict) = False, _inside_sequential(court, name, p, access, idle)
    else:
        done, why, verdict = False, _inside_tiles(machine, kernel, p, idle, fixed), None
    reused = [loop.var for loop in kernel.loops[p.depth :]]
    reuse = f"; reused by {', '.join(reused)}" if reused and p.direction == "load" else ""
    return Finding(
        kind=COPY,
        subject=f"{p.direction} of {access} for {name} in {p.memory}",
        done=done,
        reason=f"{why}{reuse}; {_buffers(p)}",
        allowed=None if idle is None or idle.sequential is None else verdict is None,
        witness=None if verdict is None else verdict.witness,
        loops=((name, (idle.name,)),) if idle is not None else (),
    )


def _around(uses: Uses, kernel: Kernel, p: Placement, access: Access) -> Iterator[_Around]:
    """The loops around a copy, outermost first."""
    moving = access_variables(access)
    for loop in uses.sequential(kernel.statement.name):
        iterator = dict(loop.iterators)[kernel.statement.name]
        yield _Around(iterator, iterator in moving, None, 0.0, loop)
    for k, tile in enumerate(kernel.loops[: p.depth]):
        yield _Around(tile.var, tile.dim in moving, k, tile.trips_hint)


def _hoisted(machine: Machine, kernel: Kernel, p: Placement, around: list[_Around]) -> str:
    """Why a copy that every loop around it moves stands where it does."""
    if not around:
        return "copied once, outside all loops"
    names = ", ".join(x.name for x in around)
    if p.depth == 0:
        return f"every iteration of {names} copies another part"
    whole = held_bytes(p, kernel, 0)
    free = _free_bytes(machine, kernel, p)
    fits = "which would fit" if whole <= free else f"more than the {free} left beside the other buffers"
    return f"every iteration of {names} copies another part; all of them at once are {whole} B a partition, {fits}"


def _inside_tiles(machine: Machine, kernel: Kernel, p: Placement, idle: _Around, fixed: bool) -> str:
    held = held_bytes(p, kernel, idle.depth or 0)
    free = _free_bytes(machine, kernel, p)
    what = f"{idle.name} (about {idle.trips:g} iterations) does not move it; outside it the copy holds {held} B"
    if held > free:
        return f"{what} a partition, more than the {free} left beside the other buffers"
    if not any(is_contraction(machine.spec(op.spec).forms[op.form]) for op in kernel.ops):
        return f"{what} a partition, which fits, but the pass map searches copy depths of contractions only"
    if not fixed:
        return f"{what} a partition at the sizes assumed, but while sizes are open the pass map does not search depths"
    return f"{what} a partition, which fits, but the cost model found no mapping of that kind faster"


def _inside_sequential(
    court: Court, name: str, p: Placement, access: Access, idle: _Around
) -> tuple[str, Verdict | None]:
    """A sequential loop does not move the copy: either a statement of it writes what is loaded or reads what is stored,
    or nothing forbids that the copy stands outside.
    """
    assert idle.sequential is not None
    inside = {leaf.statement for leaf in leaves(idle.sequential.body)}
    outer = court.loops(name).index(idle.name) if idle.name in court.loops(name) else 0
    tensor = access.tensor
    for other in (n for n, _ in idle.sequential.iterators if n in inside):
        if p.direction != "store":
            verdict = _flow(court, other, name, tensor, outer)
            if verdict.witness is not None:
                pair = court.witness_text(verdict.witness)
                return f"{other} writes {tensor} inside the loop {idle.name}: {pair}", verdict
        if p.direction != "load":
            verdict = _flow(court, name, other, tensor, outer)
            if verdict.witness is not None:
                pair = court.witness_text(verdict.witness)
                return f"{other} reads {tensor} inside the loop {idle.name}: {pair}", verdict
    return f"the loop {idle.name} does not move it, but the pass map places copies inside kernels only", None


def _flow(court: Court, writer: str, reader: str, tensor: str, outer: int) -> Verdict:
    """The judge's answer to `reader` running before `writer` in every iteration of the `outer` loops: illegal when a
    value flows from one to the other.
    """
    first, second = ([var(i) for i in court.loops(n)[:outer]] for n in (writer, reader))
    if writer == reader:
        vectors = {writer: [*first, *(affine(0) - i for i in court.loops(writer)[outer:])]}
    else:
        vectors = {
            writer: [*first, affine(1), *court.original(writer)],
            reader: [*second, affine(0), *court.original(reader)],
        }
    return court.judge(vectors, only=lambda d: d.tensor == tensor and "flow" in d.kinds)


def _buffers(p: Placement) -> str:
    if p.copies == 1:
        return "one buffer"
    work = "the last one is still stored" if p.direction == "store" else "this one is used"
    return f"{p.copies} buffers: the next is filled while {work}"


def _free_bytes(machine: Machine, kernel: Kernel, p: Placement) -> int:
    """Bytes a partition of the memory that the kernel's other buffers leave."""
    others = sum(held_bytes(q, kernel, q.depth) for q in kernel.placements if q is not p and q.memory == p.memory)
    return max(0, machine.memory(p.memory).bytes_per_partition - others)


def held_bytes(p: Placement, kernel: Kernel, depth: int) -> int:
    """Bytes a partition of a buffer that stands inside the first `depth` loops, at the hinted sizes: every dimension
    covers the step of its innermost loop there, or all its points.  Outside all loops one buffer suffices.  What a
    transposition on the way holds is included.
    """
    sizes = {s.dim: s.size if depth == p.depth else _covered(p, s, kernel, depth) for s in p.spans}
    points = prod(-(-n // p.partition_tile) if d == p.partition else n for d, n in sizes.items())
    element_bytes = dtype(p.dtype).element_bytes
    copies = p.copies if depth else 1
    return copies * _whole_words(points * element_bytes) + _staging_bytes(p, sizes)


def _staging_bytes(p: Placement, sizes: Mapping[str, int]) -> int:
    """The rows of a copy that is transposed on its way, twice for each direction."""
    if p.through is None:
        return 0
    points = prod(n for d, n in sizes.items() if d != p.through)
    return 2 * (1 + (p.direction == "update")) * _whole_words(points * dtype(p.dtype).element_bytes)


def _whole_words(size_bytes: int) -> int:
    return -(-size_bytes // 4) * 4


def _covered(p: Placement, span: Span, kernel: Kernel, depth: int) -> int:
    window = next((w.expr for w in p.windows if w.name == span.dim), None)
    if window is None:
        return _points(kernel, span.dim, depth)
    inside = [d.name for d in kernel.dims if window.coefficient(d.name)]
    return 1 + sum(abs(window.coefficient(d)) * (_points(kernel, d, depth) - 1) for d in inside)


def _points(kernel: Kernel, dim: str, depth: int) -> int:
    steps = [loop.step for loop in kernel.loops[:depth] if loop.dim == dim]
    extent = max(1, kernel.dim(dim).extent_hint)
    return min(steps[-1], extent) if steps else extent
