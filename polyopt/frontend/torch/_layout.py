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
from dataclasses import dataclass, replace

from polyopt.frontend.torch._draft import Draft, Store
from polyopt.ir import Access, Indirect, Read, access_chain
from polyopt.sets import Affine, Floor, Interval, simplify, var

__all__ = ["choose_layouts"]

Stores = dict[str, Store]
Drafts = list[Draft]
Pair = tuple[str, int, int]
"""A tensor and two of its dimensions, the outer one first."""


@dataclass(frozen=True, slots=True)
class Layouts:
    """Tensors and statements, and what no rewrite of temporaries changes: who uses a tensor, and which are gathered."""

    stores: Stores
    drafts: Drafts
    users: Mapping[str, tuple[int, ...]]
    gathered: frozenset[str]

    @staticmethod
    def of(stores: Stores, drafts: Drafts) -> Layouts:
        users: dict[str, list[int]] = {name: [] for name in stores}
        gathered: set[str] = set()
        for k, d in enumerate(drafts):
            for a in d.accesses():
                for inner in access_chain(a):
                    users[inner.tensor].append(k)
                    if not inner.is_exact:
                        gathered.add(inner.tensor)
        return Layouts(stores, drafts, {n: tuple(sorted(set(u))) for n, u in users.items()}, frozenset(gathered))

    def is_free(self, name: str) -> bool:
        """Whether dimensions of tensor `name` may be merged."""
        return self.stores[name].free and name not in self.gathered

    def with_draft(self, k: int, draft: Draft) -> Layouts:
        return replace(self, drafts=[*self.drafts[:k], draft, *self.drafts[k + 1 :]])


def choose_layouts(stores: Mapping[str, Store], drafts: Sequence[Draft]) -> tuple[Stores, Drafts]:
    """Apply the rewrites of this module until nothing changes."""
    state = _merge_floors(Layouts.of(*retarget_outputs(dict(stores), list(drafts))))
    progress = True
    while progress:
        progress = False
        for k in range(len(state.drafts)):
            merged = _merge_run(state, k) or _merge_loop(state, k)
            if merged is not None:
                state, progress = merged, True
    return state.stores, state.drafts


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
    return any(i.tensor == name and not i.is_exact for a in draft.accesses() for i in access_chain(a))


# -- layouts of temporaries -------------------------------------------------------------------------------------------


def _merge_floors(state: Layouts) -> Layouts:
    """Merge dimensions of temporaries that some access tells apart with floors only."""
    while True:
        pair = next(_floored_pairs(state), None)
        if pair is None:
            return state
        state = merge_store(state, pair)


def _floored_pairs(state: Layouts) -> Iterator[Pair]:
    for d in state.drafts:
        for a in d.accesses():
            if not state.is_free(a.tensor):
                continue
            subscripts = a.affine_subscripts
            for p, q in itertools.permutations(range(len(subscripts)), 2):
                apart = _floors(subscripts[p]) + _floors(subscripts[q])
                if not apart:
                    continue
                extent = state.stores[a.tensor].shape[q]
                if _floors(simplify(subscripts[p] * extent + subscripts[q], d.intervals())) < apart:
                    yield a.tensor, p, q


def _floors(expr: Affine) -> int:
    return sum(isinstance(atom, Floor) for atom, _ in expr.terms)


def merge_store(state: Layouts, pair: Pair) -> Layouts:
    """Give tensor T one dimension for two: T[.., a, .., b, ..] -> T[.., n_q*a + b, ..] at the outer one's place."""
    name, p, q = pair
    old = state.stores[name]
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
    drafts = list(state.drafts)
    for k in state.users[name]:
        drafts[k] = joined(drafts[k])
    return replace(state, stores={**state.stores, name: replace(old, shape=tuple(shape))}, drafts=drafts)


# -- loops --------------------------------------------------------------------------------------------------------


def _merge_run(state: Layouts, k: int) -> Layouts | None:
    """Make two iterators of draft `k` one loop, where that is wanted, merging dimensions of temporaries as needed.

    Wanted: neighbours in a run, and iterators that already index one dimension together.
    """
    for u, v in _wanted(state.drafts[k]):
        pairs = _needed_pairs(state, state.drafts[k], u, v)
        if pairs is not None:
            for pair in pairs:
                state = merge_store(state, pair)
            return state.with_draft(k, merge_loops(state.drafts[k], u, v))
    return None


def _wanted(draft: Draft) -> Iterator[tuple[str, str]]:
    for run in draft.runs:
        yield from itertools.pairwise(run)
    together = [e for a in draft.accesses() for e in _affines(a)]
    for u, v in itertools.permutations(draft.ranges, 2):
        extent = draft.ranges[v][1] + 1
        if any(e.coefficient(v) and _whole(e, u, v, extent) for e in together):
            yield u, v


def _merge_loop(state: Layouts, k: int) -> Layouts | None:
    """Make two iterators of draft `k` one that occur only as n_v*u + v."""
    draft = state.drafts[k]
    for u, v in itertools.permutations(draft.ranges, 2):
        if _needed_pairs(None, draft, u, v) == []:
            return state.with_draft(k, merge_loops(draft, u, v))
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


def _needed_pairs(state: Layouts | None, draft: Draft, u: str, v: str) -> list[Pair] | None:
    """Dimensions of temporaries to merge so that (u, v) can be one loop of `draft`; None when they cannot.

    Without `state` no dimensions are merged.
    """
    low, high = draft.ranges[v]
    if low != 0:
        return None
    extent = high + 1
    if not all(_whole(e, u, v, extent) for e in draft.plain_affines()):
        return None
    pairs: list[Pair] = []
    used = False
    for access in draft.accesses():
        found = _access_pair(state, access, u, v, extent)
        if found is None:
            return None
        pairs += [p for p in found if p not in pairs]
        used = used or any(u in e.variables() for e in _affines(access))
    clash = any(a[0] == b[0] for a in pairs for b in pairs if a != b)
    return None if clash or not used else pairs


def _access_pair(state: Layouts | None, access: Access, u: str, v: str, extent: int) -> list[Pair] | None:
    """The merge that `access` needs, [] for none, None when (u, v) cannot be one loop."""
    if all(_whole(e, u, v, extent) for e in _affines(access)):
        return []
    if state is None or not state.is_free(access.tensor):
        return None
    own = access.affine_subscripts
    if var(u) not in own or var(v) not in own:
        return None
    p, q = own.index(var(u)), own.index(var(v))
    alone = all(not {u, v} & e.variables() for j, e in enumerate(own) if j not in (p, q))
    return [(access.tensor, p, q)] if alone and state.stores[access.tensor].shape[q] == extent else None


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
