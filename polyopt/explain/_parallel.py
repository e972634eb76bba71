"""Which loops may run in parallel, and which the generated program runs so."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from polyopt.explain._finding import PARALLEL, Finding
from polyopt.explain._judge import Court
from polyopt.explain._nest import LoopNode, all_nodes, loop_nests, names_text
from polyopt.explain._use import Uses
from polyopt.schedule import Verdict

__all__ = ["explain_parallel"]

COMBINED = {"+": "sum", "*": "product", "min": "minimum", "max": "maximum"}


def explain_parallel(court: Court, uses: Uses | None) -> Iterator[Finding]:
    """One finding for each loop.  uses: None when the program was not compiled in this order."""
    for node in all_nodes(loop_nests(court.scop)):
        verdict = court.judge({n: court.original(n) for n in node.members}, parallel=[node.level])
        done, how = _use(node, uses)
        yield Finding(
            kind=PARALLEL,
            subject=f"loop {node.name} of {names_text(node.members)}",
            done=done and bool(verdict),
            reason=f"{_why(court, node, verdict)}; {how}",
            allowed=None if verdict.verdict == "unknown" else bool(verdict),
            witness=verdict.witness,
            loops=tuple((n, (i,)) for n, i in node.iterators),
            outer=sum(1 for e in court.original(node.members[0])[: node.level] if not e.is_constant),
            order="written" if uses is None else "chosen",
        )


def _why(court: Court, node: LoopNode, verdict: Verdict) -> str:
    if verdict.witness is not None:
        return f"it carries the {court.witness_text(verdict.witness)}{_with_axiom(court, node)}"
    if verdict.verdict == "unknown":
        return f"not decided: {verdict.reason}"
    totals: dict[str, None] = {}
    for d in court.free_across(node.members, node.level):
        combined = COMBINED[d.source_touch.combine or "+"]
        totals[f"the {combined} into {d.tensor}, which may be reordered ({d.axiom or 'exact'})"] = None
    return f"it carries {' and '.join(totals)}" if totals else "no dependence crosses its iterations"


def _with_axiom(court: Court, node: LoopNode) -> str:
    """Says so when only the order of a float reduction, which may be given up on request, keeps the loop in order."""
    if court.scop.reassociate:
        return ""
    granted = Court.of(replace(court.scop, reassociate=True))
    verdict = granted.judge({n: court.original(n) for n in node.members}, parallel=[node.level])
    return f"; with {' and '.join(verdict.axioms)} granted (--reassociate) it may be parallel" if verdict else ""


def _use(node: LoopNode, uses: Uses | None) -> tuple[bool, str]:
    if uses is None:
        return False, "the program runs in another order"
    found = {n: uses.of_loop(n, i) for n, i in node.iterators}
    texts: dict[str, list[str]] = {}
    for n, use in found.items():
        texts.setdefault(use.text, []).append(n)
    if len(texts) == 1:
        return all(u.parallel for u in found.values()), next(iter(texts))
    told = "; ".join(f"{names_text(tuple(names))}: {text}" for text, names in texts.items())
    return all(u.parallel for u in found.values()), told
