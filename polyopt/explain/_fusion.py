"""Which statements run together in the generated program, which could, and which dependence keeps the others apart."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from polyopt.explain._edges import Edges
from polyopt.explain._finding import FUSION, Finding
from polyopt.explain._fusible import Fusible, Fusions
from polyopt.explain._judge import Court
from polyopt.explain._nest import loop_nests, names_text
from polyopt.explain._use import Uses
from polyopt.ir import Assign, Scop, Statement

__all__ = ["explain_fusion", "explain_substituted"]


@dataclass(frozen=True, slots=True)
class _Together:
    """How much of two statements runs together in the generated program: nothing when not `done`."""

    done: bool
    text: str


def explain_fusion(court: Court, uses: Uses | None) -> Iterator[Finding]:
    """One finding for each pair of statements that have loops and share a tensor, written or only read."""
    fusions = Fusions(court, Edges.of(court), loop_nests(court.scop))
    with_loops = [s for s in court.scop.statements if court.loops(s.name)]
    for k, a in enumerate(with_loops):
        for b in with_loops[k + 1 :]:
            shared = [t for t in touched(a) if t in touched(b)]
            if shared:
                yield _finding(court, a, b, fusions.of(a.name, b.name), uses, shared)


def explain_substituted(written: Scop, chosen: Scop) -> Iterator[Finding]:
    """One finding for each statement that is computed inside the only statement that read its result."""
    left = {s.name for s in chosen.statements}
    for s in written.statements:
        if s.name not in left and isinstance(s.body, Assign):
            name = s.body.target.tensor
            readers = tuple(r.name for r in written.statements if r.name != s.name and name in touched(r))
            into = f"inside {names_text(readers)}" if readers else "nowhere"
            reason = f"its result is computed {into}, so that {name} needs no memory (pass substitute)"
            yield Finding(FUSION, f"{s.name} with {names_text(readers)}" if readers else s.name, True, reason, True)


def touched(s: Statement) -> tuple[str, ...]:
    """Tensors that a statement reads or writes, each once."""
    if not isinstance(s.body, Assign):
        return tuple(dict.fromkeys((*s.body.may_write, *s.body.may_read)))
    return tuple(dict.fromkeys((s.body.target.tensor, *(a.tensor for a in s.body.reads()))))


def _finding(
    court: Court, a: Statement, b: Statement, found: Fusible, uses: Uses | None, tensors: list[str]
) -> Finding:
    names = (a.name, b.name)
    together = _together(names, uses)
    return Finding(
        kind=FUSION,
        subject=f"{names_text(names)} ({', '.join(tensors)})",
        done=together.done,
        reason=f"{together.text}; {_limit(court, names, found)}",
        allowed=None if found.verdict is not None and found.verdict.witness is None else found.depth > 0,
        witness=None if found.verdict is None else found.verdict.witness,
        loops=tuple((n, court.loops(n)[: found.depth]) for n in names),
        order="written" if uses is None else "chosen",
    )


def _together(names: tuple[str, str], uses: Uses | None) -> _Together:
    if uses is None:
        return _Together(False, "the program runs in another order")
    for guest, other in (names, names[::-1]):
        host = uses.host(guest)
        if host is not None and (host[0] == other or uses.host(other) == (host[0], "behind")):
            does = "computes the starting value" if host[1] == "before" else "finishes the result"
            return _Together(True, f"one kernel: {guest} {does} of {host[0]} (pass absorb)")
    common = [x for x in uses.sequential(names[0]) if x in uses.sequential(names[1])]
    if common:
        loops = ", ".join("/".join(dict.fromkeys(i for n, i in x.iterators if n in names)) for x in common)
        return _Together(True, f"both run inside the sequential ({loops}), which dependences tie together")
    apart = "no cycle of dependences ties them together, so that the pass schedule runs them apart"
    return _Together(False, f"{apart}{_estimates(names, uses)}")


def _estimates(names: tuple[str, str], uses: Uses) -> str:
    """What the cost model expects of each kernel; empty where the two do not have one each."""
    found = [k for n in names if (k := uses.kernel((uses.host(n) or (n, ""))[0])) is not None]
    if len(found) < 2:
        return ""
    return f", in kernels of about {' and '.join(f'{k.estimated_ns / 1000:.2f}' for k in found)} us"


def _limit(court: Court, names: tuple[str, str], found: Fusible) -> str:
    """How many loops the two may share, and what forbids more."""
    loops = [court.loops(n) for n in names]
    may = _loops_text(loops, found.depth) if found.depth else "no loop"
    with_others = f", with {names_text(found.between)}" if found.between and found.depth > found.shared else ""
    given = f"dependences allow {may} to be shared{with_others}"
    if found.short:
        return f"{given}, no more: {found.short} must run between them and has no further loop"
    if found.verdict is None:
        return given
    more = _loops_text(loops, found.depth + 1)
    if found.verdict.witness is None:
        return f"{given}, {more} is not decided: {found.verdict.reason}"
    text = f"{given}, {more} is forbidden by the {court.witness_text(found.verdict.witness)}"
    if not found.shift:
        return text
    delays = " and ".join(f"{n} by ({', '.join(map(str, s))})" for n, s in found.shift)
    return f"{text}; delaying {delays} would make it legal"


def _loops_text(loops: list[tuple[str, ...]], depth: int) -> str:
    """`(i, j/k)`: the outermost loops, with the names that both statements have for them."""
    return f"({', '.join('/'.join(dict.fromkeys(pair)) for pair in list(zip(*loops, strict=False))[:depth])})"
