"""Layouts of intermediate tensors and shapes of loop nests, chosen so that accesses are affine and loops are whole.

Only tensors whose layout is free change; parameters, inputs and outputs keep theirs.  Three rewrites:

- `retarget_outputs`: a temporary that is only copied into an output becomes that output;
- `merge_store`: dimensions (p, q) of a temporary become one of index n_q*p + q, where an access needs floors to tell
  them apart, or where they were one dimension of an operator (`Draft.runs`) and every access lets them be one loop;
- `merge_loops`: iterators (u, v) that occur only as n_v*u + v become one iterator.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from polyopt.frontend.torch._draft import Draft, Store
from polyopt.ir import Access, Indirect, Read
from polyopt.sets import Affine, Floor, Interval, simplify, var

__all__ = ["choose_layouts"]

Stores = dict[str, Store]
Drafts = list[Draft]
Pair = tuple[str, int, int]
"""A tensor and two of its dimensions, the outer one first."""


def choose_layouts(stores: Mapping[str, Store], drafts: Sequence[Draft]) -> tuple[Stores, Drafts]:
    """Apply the rewrites of this module until nothing changes."""
    tables, statements = retarget_outputs(dict(stores), list(drafts))
    tables, statements = _merge_floors(tables, statements)
    progress = True
    while progress:
        progress = False
        for k in range(len(statements)):
            merged = _merge_run(tables, statements, k) or _merge_loop(tables, statements, k)
            if merged is not None:
                (tables, statements), progress = merged, True
    return tables, statements


# -- outputs ----------------------------------------------------------------------------------------------------------


def retarget_outputs(stores: Stores, drafts: Drafts) -> tuple[Stores, Drafts]:
    """Drop statements `O[w(i)] = T[i]` that copy a whole temporary T into an output: T's cells become O's."""
    k = 0
    while k < len(drafts):
        moved = _copied_whole(stores, drafts, k)
        if moved is None:
            k += 1
            continue
        name, order = moved
        target = drafts[k].target
        change = functools.partial(_moved, name=name, order=order, target=target)
        drafts = [d.map_accesses(change) for j, d in enumerate(drafts) if j != k]
        stores = {n: s for n, s in stores.items() if n != name}
    return stores, drafts


def _copied_whole(stores: Stores, drafts: Drafts, k: int) -> tuple[str, tuple[str, ...]] | None:
    """The temporary that draft `k` copies whole, and the iterators that index it."""
    d = drafts[k]
    if stores[d.target.tensor].role != "output" or not isinstance(d.value, Read) or d.guards or d.combine:
        return None
    source = d.value.access
    store = stores[source.tensor]
    names = [s.variables() for s in source.subscripts if isinstance(s, Affine)]
    order = tuple(next(iter(n)) for n in names if len(n) == 1)
    plain = len(order) == len(source.subscripts) and source.subscripts == tuple(var(i) for i in order)
    whole = {i: (0, n - 1) for i, n in zip(order, store.shape, strict=False)} == dict(d.ranges)
    if not (store.free and plain and whole and len(set(order)) == len(order)):
        return None
    if store.dtype != stores[d.target.tensor].dtype or any(_gathers(x, source.tensor) for x in drafts):
        return None
    written = [j for j, x in enumerate(drafts) if x.target.tensor == d.target.tensor]
    return (source.tensor, order) if written == [k] else None


def _moved(access: Access, *, name: str, order: Sequence[str], target: Access) -> Access:
    if access.tensor != name:
        return access
    values = {i: s for i, s in zip(order, access.subscripts, strict=True) if isinstance(s, Affine)}
    return Access(target.tensor, tuple(s.substitute(values) for s in target.affine_subscripts))


def _gathers(draft: Draft, name: str) -> bool:
    """Whether `draft` reads tensor `name` at a data-dependent subscript."""
    return any(a.tensor == name and not a.is_exact for a in draft.accesses())


# -- layouts of temporaries -------------------------------------------------------------------------------------------


def _merge_floors(stores: Stores, drafts: Drafts) -> tuple[Stores, Drafts]:
    """Merge dimensions of temporaries that some access tells apart with floors only."""
    while True:
        pair = next(_floored_pairs(stores, drafts), None)
        if pair is None:
            return stores, drafts
        stores, drafts = merge_store(stores, drafts, pair)


def _floored_pairs(stores: Stores, drafts: Drafts) -> Iterator[Pair]:
    for d in drafts:
        for a in d.accesses():
            store = stores[a.tensor]
            if not store.free or not a.is_exact:
                continue
            subscripts = a.affine_subscripts
            for p, q in _dimension_pairs(len(subscripts)):
                apart = _floors(subscripts[p]) + _floors(subscripts[q])
                if not apart or any(_gathers(x, a.tensor) for x in drafts):
                    continue
                joined = simplify(subscripts[p] * store.shape[q] + subscripts[q], d.intervals())
                if _floors(joined) < apart:
                    yield a.tensor, p, q


def _dimension_pairs(rank: int) -> Iterator[tuple[int, int]]:
    return ((p, q) for p in range(rank) for q in range(rank) if p != q)


def _floors(expr: Affine) -> int:
    return sum(isinstance(atom, Floor) for atom, _ in expr.terms)


def merge_store(stores: Stores, drafts: Drafts, pair: Pair) -> tuple[Stores, Drafts]:
    """Give tensor T one dimension for two: T[.., a, .., b, ..] -> T[.., n_q*a + b, ..] at the outer one's place."""
    name, p, q = pair
    old = stores[name]
    extent = old.shape[q]

    def joined(draft: Draft) -> Draft:
        ranges = draft.intervals()

        def change(access: Access) -> Access:
            if access.tensor != name:
                return access
            own = list(access.affine_subscripts)
            own[p] = simplify(own[p] * extent + own[q], ranges)
            del own[q]
            return Access(name, tuple(own))

        return draft.map_accesses(change)

    shape = [n * (extent if k == p else 1) for k, n in enumerate(old.shape) if k != q]
    changed = [joined(d) for d in drafts]
    return {**stores, name: replace(old, shape=tuple(shape))}, changed


# -- loops ------------------------------------------------------------------------------------------------------------


def _merge_run(stores: Stores, drafts: Drafts, k: int) -> tuple[Stores, Drafts] | None:
    """Make two iterators of draft `k` one loop, where that is wanted, merging dimensions of temporaries as needed.

    Wanted: neighbours in a run, and iterators that already index one dimension together.
    """
    draft = drafts[k]
    for u, v in _wanted(draft):
        pairs = _needed_pairs(stores, drafts, draft, u, v)
        if pairs is None:
            continue
        for pair in pairs:
            stores, drafts = merge_store(stores, drafts, pair)
        drafts = list(drafts)
        drafts[k] = merge_loops(drafts[k], u, v)
        return stores, drafts
    return None


def _wanted(draft: Draft) -> Iterator[tuple[str, str]]:
    for run in draft.runs:
        yield from itertools.pairwise(run)
    together = [e for a in draft.accesses() for e in _affines(a)]
    for u in draft.ranges:
        for v, (_, high) in draft.ranges.items():
            if u != v and any(e.coefficient(v) and _whole(e, u, v, high + 1) for e in together):
                yield u, v


def _merge_loop(stores: Stores, drafts: Drafts, k: int) -> tuple[Stores, Drafts] | None:
    """Make two iterators of draft `k` one that occur only as n_v*u + v."""
    draft = drafts[k]
    for u in draft.ranges:
        for v in draft.ranges:
            if _needed_pairs({}, drafts, draft, u, v) == []:
                changed = list(drafts)
                changed[k] = merge_loops(draft, u, v)
                return stores, changed
    return None


def merge_loops(draft: Draft, u: str, v: str) -> Draft:
    """Replace n_v*u + v by one iterator, called u."""
    extent = draft.ranges[v][1] + 1
    ranges = {i: r for i, r in draft.ranges.items() if i != v}
    low, high = ranges[u]
    ranges[u] = (low * extent, high * extent + extent - 1)
    box: dict[str, Interval] = dict(ranges)
    values = {u: var(u) // extent, v: var(u) - (var(u) // extent) * extent}
    runs = tuple(tuple(i for i in run if i != v) for run in draft.runs)
    merged = replace(draft, ranges=ranges, runs=tuple(r for r in runs if len(r) > 1))
    return merged.map_affine(lambda e: simplify(e.substitute(values), box))


def _needed_pairs(stores: Stores, drafts: Drafts, draft: Draft, u: str, v: str) -> list[Pair] | None:
    """Dimensions of temporaries to merge so that (u, v) can be one loop of `draft`; None when they cannot."""
    low, high = draft.ranges[v]
    if low != 0 or u == v:
        return None
    extent = high + 1
    if not all(_whole(e, u, v, extent) for e in draft.plain_affines()):
        return None
    pairs: list[Pair] = []
    used = False
    for access in draft.accesses():
        found = _access_pair(stores, drafts, access, u, v, extent)
        if found is None:
            return None
        pairs += [p for p in found if p not in pairs]
        used = used or any(u in e.variables() for e in _affines(access))
    clash = any(a[0] == b[0] for a in pairs for b in pairs if a != b)
    return None if clash or not used else pairs


def _access_pair(stores: Stores, drafts: Drafts, access: Access, u: str, v: str, extent: int) -> list[Pair] | None:
    """The merge that `access` needs, [] for none, None when (u, v) cannot be one loop."""
    if all(_whole(e, u, v, extent) for e in _affines(access)):
        return []
    store = stores.get(access.tensor)
    if store is None or not store.free or any(_gathers(d, access.tensor) for d in drafts):
        return None
    own = access.affine_subscripts
    if var(u) not in own or var(v) not in own:
        return None
    p, q = own.index(var(u)), own.index(var(v))
    alone = all(not {u, v} & e.variables() for j, e in enumerate(own) if j not in (p, q))
    return [(access.tensor, p, q)] if alone and store.shape[q] == extent else None


def _whole(expr: Affine, u: str, v: str, extent: int) -> bool:
    """Whether u and v occur in `expr` only as a multiple of extent*u + v."""
    hidden = any(not isinstance(atom, str) and {u, v} & Affine(((atom, 1),)).variables() for atom, _ in expr.terms)
    return not hidden and expr.coefficient(u) == extent * expr.coefficient(v)


def _affines(access: Access) -> Iterator[Affine]:
    for s in access.subscripts:
        if isinstance(s, Indirect):
            yield from _affines(s.access)
            yield s.offset
        else:
            yield s
