"""Array expansion: a temporary with cells of its own for each iteration of outer loops (privatisation)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from polyopt.errors import InputError, UnsupportedError
from polyopt.ir import Access, Assign, Read, Scop, Statement, Tensor, rewrite
from polyopt.schedule._touches import Touch, sizes_context
from polyopt.schedule.transform._flow import Dataflow, temporary, tensor_flow
from polyopt.sets import Affine, Map, Set, affine, function_exprs, maximum, minimum

__all__ = ["expand"]

_Places = Mapping[str, tuple[Affine, ...]]
"""Statement -> what tells its writes apart, new subscripts."""


def expand(scop: Scop, tensor: str, by: Mapping[str, Sequence[str]]) -> Scop:
    """A temporary gets one more dimension for each iterator in `by` (writer -> its iterators, equally many for all).

    Rewrite, by {S: [i]}:    S[i]: T[0] = A[i]            S[i]: T[0, i] = A[i]
                             R[i]: B[i] = T[0]     ->     R[i]: B[i] = T[0, i]

    Each read takes the value of the write that it found before, by exact dataflow for all sizes, so the program means
    the same and the dependences that came from reusing cells are gone.  Raises InputError when the tensor is no
    temporary or a writer or an iterator is unknown, UnsupportedError when a read finds nothing that was written, a
    combination would be torn apart, or data-dependent subscripts or calls touch the tensor.  Source: Feautrier, "Array
    expansion", ICS 1988.
    """
    found = temporary(scop, tensor)
    flow = tensor_flow(scop, tensor)
    places = _places(scop, flow, by)
    lows, extents = _extents(scop, flow, places)
    reads = {r: _source_place(scop, flow, r, places) for r in flow.reads}
    shape = (*found.shape, *extents)
    tensors = tuple(replace(t, shape=shape) if t.name == tensor else t for t in scop.tensors)
    statements = tuple(_statement(s, found, places, reads, lows) for s in scop.statements)
    return replace(scop, tensors=tensors, statements=statements)


def _places(scop: Scop, flow: Dataflow, by: Mapping[str, Sequence[str]]) -> _Places:
    places: dict[str, tuple[Affine, ...]] = {}
    for name in dict.fromkeys(w.statement for w in flow.writes):
        iterators = scop.statement(name).iterators
        chosen = tuple(by.get(name, ()))
        unknown = next((i for i in chosen if i not in iterators), None)
        if unknown is not None or name not in by:
            what = f"{name} has no iterator {unknown!r}" if unknown is not None else f"nothing is said about {name}"
            raise InputError(
                f"{what}, which writes the tensor",
                help=f"name iterators of {name}: {', '.join(iterators)}",
                id="tensor",
            )
        places[name] = tuple(affine(i) for i in chosen)
    counts = {len(p) for p in places.values()}
    if len(counts) != 1 or counts == {0}:
        raise InputError(
            "every writer needs equally many iterators, at least one",
            help="give each writer as many iterators as dimensions are to be added",
            id="tensor",
        )
    return places


def _extents(scop: Scop, flow: Dataflow, places: _Places) -> tuple[tuple[Affine, ...], tuple[Affine, ...]]:
    """The smallest value of each new subscript, and the new extents."""
    count = len(next(iter(places.values())))
    dims = [f"e{k}" for k in range(count)]
    images = [Map.from_exprs(w.relation.domain(), "", places[w.statement]).range(dims) for w in flow.writes]
    present = [image for image in images if not image.is_empty()]
    if not present:
        return (affine(0),) * count, (affine(1),) * count
    bounds = [[image.bounds(d) for image in present] for d in dims]
    lows = tuple(minimum(*(low for low, _ in b)) for b in bounds)
    highs = tuple(maximum(*(high for _, high in b)) for b in bounds)
    return lows, tuple(maximum(h - low + 1, affine(0)) for low, h in zip(lows, highs, strict=True))


def _source_place(scop: Scop, flow: Dataflow, read: Touch, places: _Places) -> tuple[Affine, ...]:
    """The new subscripts of a read: those of the write that it finds, in the reader's iterators."""
    statement = scop.statement(read.statement)
    left = flow.unwritten(read)
    if not left.is_empty():
        raise UnsupportedError(
            f"{read} finds cells that nothing wrote, for example at {left.smallest(scop.params)}",
            help="write the tensor before it is read",
        )
    total: Map | None = None
    for m in flow.sources[read]:
        writer = scop.statement(m.in_name).domain.intersect_params(sizes_context(scop))
        place = m.reverse().apply_range(Map.from_exprs(writer, "", places[m.in_name]))
        total = place if total is None else total.union(place)
    if total is None:
        return (affine(0),) * len(next(iter(places.values())))
    exprs = function_exprs(total, statement.iterators)
    if read.writes and exprs != places[read.statement]:
        own = Map.from_exprs(_instances(statement, scop), "", places[read.statement])
        if not total.is_subset(own):
            raise UnsupportedError(
                f"{read} combines into what another iteration wrote: the sum would be torn apart",
                help="expand by iterators outside of the combination's loops",
            )
    return exprs


def _instances(statement: Statement, scop: Scop) -> Set:
    return statement.domain.intersect_params(sizes_context(scop))


def _statement(
    s: Statement,
    tensor: Tensor,
    places: _Places,
    reads: Mapping[Touch, tuple[Affine, ...]],
    lows: tuple[Affine, ...],
) -> Statement:
    if not isinstance(s.body, Assign):
        return s

    def moved(place: tuple[Affine, ...]) -> tuple[Affine, ...]:
        return tuple(e - low for e, low in zip(place, lows, strict=True))

    def read(access: Access) -> Access:
        if access.tensor != tensor.name:
            return access
        place = next(p for r, p in reads.items() if r.statement == s.name and r.access == access)
        return Access(access.tensor, (*access.subscripts, *moved(place)))

    target = s.body.target
    if target.tensor == tensor.name:
        target = Access(target.tensor, (*target.subscripts, *moved(places[s.name])))
    value = rewrite(s.body.value, lambda e: Read(read(e.access)) if isinstance(e, Read) else e)
    return replace(s, body=replace(s.body, target=target, value=value))
