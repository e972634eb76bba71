"""Schedules and sizes for random programs: legal and deliberately illegal ones, in every form that the judge takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hypothesis import strategies as st

from polyopt.fuzz._case import FORMS, MAP, TREE, Case
from polyopt.fuzz._programs import chance, programs
from polyopt.ir import Scop
from polyopt.sets import Affine, affine, var

__all__ = ["MOST_ENUMERATED", "MOST_RUN", "cases"]

MOST_ENUMERATED = 90
"""Instances that are compared pair by pair."""

MOST_RUN = 1500
"""Instances that are executed one by one."""

SMALL = (3, 2, 4, 1, 0, 5)
LARGE = (129, 128, 127, 64, 31, 17, 7, 5, 3, 2, 1)
"""One more and one less than the machine's tiles, primes, one."""


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """A program, a schedule and sizes."""
    scop = draw(programs())
    form = draw(st.sampled_from([MAP, *FORMS]))
    vectors = _vectors(draw, scop)
    length = len(next(iter(vectors.values())))
    parallel: tuple[int, ...] = ()
    if form != TREE and length and chance(draw, 25):
        parallel = (draw(st.integers(0, length - 1)),)
    any_order = form == TREE and len(scop.statements) > 1 and chance(draw, 80)
    if any_order:  # every statement is a child of the outermost node
        vectors = {name: (affine(k), *v) for k, (name, v) in enumerate(vectors.items())}
    sizes = _fitting(draw, scop, SMALL, MOST_ENUMERATED)
    run_sizes = _fitting(draw, scop, LARGE, MOST_RUN)
    return Case(scop, vectors, form, parallel, any_order, sizes, run_sizes)


def _fitting(draw: st.DrawFn, scop: Scop, values: Sequence[int], most: int) -> dict[str, int]:
    """Sizes in the context, the wished ones made smaller until there are not too many instances."""
    wished = {p: draw(st.sampled_from(values)) for p in scop.params}
    smaller = sorted({*values, 2, 3}, reverse=True)
    while True:
        sizes = {p: max(v, _least(scop, p)) for p, v in wished.items()}
        if sum(s.domain.count(sizes) for s in scop.statements) <= most or not any(v > 1 for v in wished.values()):
            return sizes
        largest = max(wished, key=lambda p: wished[p])
        wished[largest] = next((v for v in smaller if v < wished[largest]), 1)


def _least(scop: Scop, param: str) -> int:
    smallest: Mapping[str, int] | None = scop.context.smallest(scop.params)
    return (smallest or {}).get(param, 0)


def _vectors(draw: st.DrawFn, scop: Scop) -> dict[str, tuple[Affine, ...]]:
    """The original order, unchanged in one of five; otherwise changed in up to three steps, for all statements alike or
    for one.
    """
    length = scop.order_length()
    vectors = {
        s.name: [*s.order, *[affine(0)] * (length - len(s.order)), affine(k)] for k, s in enumerate(scop.statements)
    }
    for _ in range(draw(st.sampled_from([2, 1, 3, 0, 2]))):
        everywhere = draw(st.booleans())
        names = list(vectors) if everywhere else [draw(st.sampled_from(list(vectors)))]
        what = draw(st.sampled_from(["swap", "shift", "reverse", "skew", "tile", "insert", "scale"]))
        at = draw(st.integers(0, length))
        other = draw(st.integers(0, length))
        amount = draw(st.sampled_from([1, 2, -1]))
        for name in names:
            vectors[name] = _changed(vectors[name], what, at, other, amount, scop.statement(name).iterators)
    longest = max(map(len, vectors.values()))
    return {n: (*v, *[affine(0)] * (longest - len(v))) for n, v in vectors.items()}


def _changed(
    entries: Sequence[Affine], what: str, at: int, other: int, amount: int, iterators: Sequence[str]
) -> list[Affine]:
    changed = list(entries)
    k, m = at % len(changed), other % len(changed)
    if what == "swap":
        changed[k], changed[m] = changed[m], changed[k]
    elif what == "shift":
        changed[k] = changed[k] + amount
    elif what == "reverse":
        changed[k] = -changed[k]
    elif what == "skew" and k != m:
        changed[k] = changed[k] + changed[m] * amount
    elif what == "tile":
        changed.insert(0, changed[k] // 2)
    elif what == "insert" and iterators:
        changed.insert(k, var(iterators[m % len(iterators)]) * amount)
    elif what == "scale":
        changed[k] = changed[k] * 2
    return changed
