"""From a compiled program to findings."""

from __future__ import annotations

from collections.abc import Iterator

from polyopt.explain._copies import explain_copies
from polyopt.explain._finding import KINDS, Explanation, Finding
from polyopt.explain._fusion import explain_fusion, explain_substituted
from polyopt.explain._judge import Court
from polyopt.explain._nest import plain_scop
from polyopt.explain._order import explain_order
from polyopt.explain._parallel import explain_parallel
from polyopt.explain._tiling import explain_tiling
from polyopt.explain._use import Uses
from polyopt.ir import Scop
from polyopt.pipeline import Compiled, LoopSchedule
from polyopt.schedule import normalise
from polyopt.sets import Affine

__all__ = ["chosen_scop", "explain", "written_scop"]


def explain(compiled: Compiled) -> Explanation:
    """Why each fusion, tiling, parallel loop and copy of a compiled program was or was not done.

    Judged at the sizes that it was compiled for.  Where another order than the written one was chosen, the loops of
    both are reported.  Raises InputError when the pipeline makes no schedule.
    """
    found = sorted(_findings(compiled), key=lambda f: KINDS.index(f.kind))
    at = tuple(compiled.at.items())
    return Explanation(compiled.source.name, compiled.machine.name, at, tuple(found))


def written_scop(compiled: Compiled) -> Scop:
    """The source at the sizes of the compilation, its order vectors plain."""
    return plain_scop(normalise(compiled.source.at(compiled.at)))


def chosen_scop(compiled: Compiled) -> Scop:
    """The program whose loops the generated one runs."""
    return plain_scop(compiled.unit.product("schedule", LoopSchedule).scop.at(compiled.at))


def _findings(compiled: Compiled) -> Iterator[Finding]:
    chosen, written = chosen_scop(compiled), written_scop(compiled)
    changed = _orders(written, chosen) != _orders(chosen, written)
    yield explain_order(compiled, changed=changed)
    yield from explain_substituted(written, chosen)
    if changed:
        yield from _loops(Court.of(written), None)
    court, uses = Court.of(chosen), Uses.of(compiled)
    yield from _loops(court, uses)
    fixed = all(p in compiled.at for p in compiled.source.params)
    yield from explain_copies(court, uses, compiled.machine, fixed=fixed)


def _loops(court: Court, uses: Uses | None) -> Iterator[Finding]:
    yield from explain_fusion(court, uses)
    yield from explain_tiling(court, uses)
    yield from explain_parallel(court, uses)


def _orders(scop: Scop, other: Scop) -> dict[str, tuple[Affine, ...]]:
    """Order vectors, without zeros at their ends, of the statements that both programs have."""
    common = {s.name for s in other.statements}
    found: dict[str, tuple[Affine, ...]] = {}
    for s in scop.statements:
        if s.name in common:
            order = list(s.order)
            while order and order[-1].is_constant and order[-1].const == 0:
                order.pop()
            found[s.name] = tuple(order)
    return found
