"""Which bands of loops may be cut into rectangular tiles, and which the mapping cut.

A band may be tiled when no dependence inside it goes backwards in any of its loops (Irigoin and Triolet, "Supernode
partitioning", POPL 1988).  Statements that a cycle of dependences ties together are tiled together: their loops at the
same depth are taken as one, and those that have only the outer loops of a band count as far as they have them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from polyopt.explain._edges import Edges
from polyopt.explain._finding import TILING, Finding
from polyopt.explain._judge import Court
from polyopt.explain._nest import LoopNode, loop_nests, names_text, path_of
from polyopt.explain._use import Uses
from polyopt.schedule import Verdict, Witness
from polyopt.sets import var

__all__ = ["explain_tiling"]


@dataclass(frozen=True, slots=True)
class _Bands:
    """The loops of a path cut into permutable bands (each by position), outermost first, and why the first cut."""

    bands: tuple[tuple[int, ...], ...]
    verdict: Verdict | None

    @property
    def witness(self) -> Witness | None:
        return None if self.verdict is None else self.verdict.witness


def explain_tiling(court: Court, uses: Uses | None) -> Iterator[Finding]:
    """One finding for each band of all loops around a statement; statements that a cycle ties together share one."""
    nests, edges = loop_nests(court.scop), Edges.of(court)
    seen: set[str] = set()
    for s in court.scop.statements:
        path = path_of(nests, s.name)
        if path and s.name not in seen:
            tied = edges.tied(path[0].members, 0, s.name)
            own = tuple(n for n in tied if path_of(nests, n) == path)
            seen.update(own)
            yield _finding(court, edges, path, own, tied, uses)


def _finding(
    court: Court,
    edges: Edges,
    path: tuple[LoopNode, ...],
    own: tuple[str, ...],
    tied: tuple[str, ...],
    uses: Uses | None,
) -> Finding:
    found = _bands(court, edges, path, own[0])
    whole = len(found.bands) == 1
    sizes = [] if uses is None else [t for n in own if (t := _tiles(uses, n))]
    undecided = found.verdict is not None and found.verdict.witness is None
    return Finding(
        kind=TILING,
        subject=f"band {_names(path, own[0], range(len(path)))} of {names_text(own)}",
        done=whole and bool(sizes) and uses is not None and not any(uses.sequential(n) for n in own),
        reason="; ".join([_why(court, path, own[0], found), *(sizes or [_untiled(own, uses)])]),
        allowed=None if undecided else whole,
        witness=found.witness,
        loops=tuple((n, court.loops(n)[: len(path)]) for n in tied),
        order="written" if uses is None else "chosen",
    )


def _bands(court: Court, edges: Edges, path: tuple[LoopNode, ...], statement: str) -> _Bands:
    bands: list[tuple[int, ...]] = []
    first: Verdict | None = None
    start = 0
    for k in range(1, len(path) + 1):
        if k < len(path):
            verdict = _backwards(court, edges.tied(path[start].members, start, statement), start, k)
            if verdict:
                continue
            first = verdict if first is None else first
        bands.append(tuple(range(start, k)))
        start = k
    return _Bands(tuple(bands), first)


def _backwards(court: Court, names: tuple[str, ...], start: int, k: int) -> Verdict:
    """Whether loop `k` may be moved outside the loops from `start` on, for all of `names` that have it."""
    vectors = {
        n: [*(var(i) for i in (*loops[:start], loops[k])), *court.original(n)]
        for n in names
        if len(loops := court.loops(n)) > k
    }
    return court.judge(vectors)


def _names(path: tuple[LoopNode, ...], statement: str, positions: range | tuple[int, ...]) -> str:
    return f"({', '.join(dict(path[k].iterators)[statement] for k in positions)})"


def _why(court: Court, path: tuple[LoopNode, ...], statement: str, found: _Bands) -> str:
    if len(path) == 1:
        return "a single loop can always be cut into strips"
    if found.verdict is None:
        return "permutable: no dependence goes backwards in any of its loops"
    apart = " and ".join(_names(path, statement, b) for b in found.bands)
    if found.witness is None:
        return f"not decided: {found.verdict.reason}; only {apart} apart are known to be permutable"
    pair = court.witness_text(found.witness)
    backwards = dict(path[found.bands[0][-1] + 1].iterators)[statement]
    return f"not permutable: the {pair} goes backwards in {backwards}; {apart} apart are"


def _tiles(uses: Uses, statement: str) -> str:
    """Tile sizes of the kernel that computes the statement; empty when it is not tiled."""
    host = uses.host(statement)
    kernel = uses.kernel(host[0] if host else statement)
    if kernel is None or not any(d.tile > 1 for d in kernel.dims):
        return ""
    sizes = ", ".join(f"{d.name} {d.tile} of {d.extent_hint}" for d in kernel.dims)
    around = [dict(loop.iterators)[statement] for loop in uses.sequential(statement)]
    inside = f" inside sequential {', '.join(around)} (the pass map tiles parallel loops only)" if around else ""
    part = f" in the kernel of {host[0]}" if host else ""
    return f"tiles of {statement}{part}{inside}: {sizes}"


def _untiled(own: tuple[str, ...], uses: Uses | None) -> str:
    if uses is None:
        return "the program runs in another order"
    if uses.mapping is None:
        return "the pipeline makes no mapping"
    told: dict[str, None] = {}
    for n in own:
        host = uses.host(n)
        kernel = uses.kernel(host[0] if host else n)
        if kernel is not None and kernel.remark:
            told[f"{n} runs point by point on the general engine ({kernel.remark})"] = None
        elif kernel is not None:
            told[f"every loop of {n} is sequential or one point long"] = None
        else:
            told[f"{n} has no instance"] = None
    return "; ".join(told)
