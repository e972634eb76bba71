"""Running loops at fixed sizes, instance by instance, beside the schedule: what is left when nothing can be proved."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from polyopt.ir import LoopProgram, Scop
from polyopt.schedule import NewOrder
from polyopt.sets import AllOf, Call, Condition, Constraint, For, If, LoopNode, Set, bound_below

__all__ = ["MAX_SCANNED_INSTANCES", "LoopFault", "run_loops", "scan_loops"]

MAX_SCANNED_INSTANCES = 5_000
"""Sizes with more instances than these are left out."""

_STEPS = (0, 1, 2, 3, 5, 9, 33)
"""How far above its smallest value a size is tried."""
_MAX_SIZES = 40

_RANK = ("outside", "missing", "twice", "order", "parallel")

Instance = tuple[str, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class LoopFault:
    """What is wrong with loops at some sizes.

    what: `outside` (an instance that the program does not have runs), `missing`, `twice`, `order` (`first` should run
    before `second` and does not) or `parallel` (the two depend on each other in different iterations of a parallel
    loop).  first and second: statement and values of its iterators.
    """

    what: str
    params: tuple[str, ...]
    sizes: tuple[int, ...]
    statement: str
    values: tuple[int, ...]
    other: str = ""
    other_values: tuple[int, ...] = ()
    where: str = ""

    def rank(self) -> tuple[tuple[int, ...], int]:
        """Smaller sizes come first, then the order of the kinds."""
        return self.sizes, _RANK.index(self.what)

    def to_json(self) -> dict[str, object]:
        answer: dict[str, object] = {
            "what": self.what,
            "params": dict(zip(self.params, self.sizes, strict=True)),
            "instance": {"statement": self.statement, "at": list(self.values)},
        }
        if self.other:
            answer["other"] = {"statement": self.other, "at": list(self.other_values)}
        return answer

    def __str__(self) -> str:
        sizes = ", ".join(f"{n} = {v}" for n, v in zip(self.params, self.sizes, strict=True))
        first, second = _text(self.statement, self.values), _text(self.other, self.other_values)
        how = {
            "outside": f"{first} runs, which is no instance of the program",
            "missing": f"{first} does not run",
            "twice": f"{first} runs twice",
            "order": f"{first} does not run before {second}, as the schedule says",
            "parallel": f"{first} and {second} depend on each other in different iterations of {self.where}",
        }[self.what]
        return f"{how}{f', with {sizes}' if sizes else ''}"


def _text(statement: str, values: Sequence[int]) -> str:
    return f"{statement}[{', '.join(map(str, values))}]"


def run_loops(node: LoopNode, env: Mapping[str, int]) -> Iterator[Instance]:
    """The instances that loops run, in the order in which they run them."""
    if isinstance(node, Call):
        yield node.statement, tuple(a.evaluate(env) for a in node.arguments)
    elif isinstance(node, For):
        for value in range(node.lower.evaluate(env), node.upper.evaluate(env) + 1, node.step):
            yield from run_loops(node.body, {**env, node.iterator: value})
    elif isinstance(node, If):
        yield from run_loops(node.then if _holds(node.condition, env) else node.other, env)
    else:
        for child in node.children:
            yield from run_loops(child, env)


def _holds(condition: Condition, env: Mapping[str, int]) -> bool:
    if isinstance(condition, Constraint):
        return condition.holds(env)
    parts = (_holds(c, env) for c in condition.parts)
    return all(parts) if isinstance(condition, AllOf) else any(parts)


def scan_loops(
    scop: Scop, order: NewOrder, loops: LoopProgram
) -> tuple[tuple[Mapping[str, int], ...], LoopFault | None]:
    """(sizes at which the loops were run, the first fault), smallest sizes first.

    order: of the same program; it may run an instance several times.
    """
    ran: list[Mapping[str, int]] = []
    for sizes in _small_sizes(scop):
        if sum(s.domain.count(sizes) for s in scop.statements) > MAX_SCANNED_INSTANCES:
            continue
        ran.append(sizes)
        fault = _scan(scop, order, loops, sizes)
        if fault is not None:
            return tuple(ran), fault
    return tuple(ran), None


def _small_sizes(scop: Scop) -> list[Mapping[str, int]]:
    context = bound_below(scop.context, scop.params)
    smallest = context.smallest(scop.params) or {}
    steps = _STEPS if len(scop.params) <= 2 else (0, 1, 3, 9)
    choices = itertools.product(*([smallest[p] + k for k in steps] for p in scop.params))
    named = [dict(zip(scop.params, values, strict=True)) for values in sorted(choices)]
    inside = [sizes for sizes in named if not context.fix(sizes).is_empty()]
    stride = max(1, -(-len(inside) // _MAX_SIZES))
    return list(inside[::stride])


def _scan(scop: Scop, order: NewOrder, loops: LoopProgram, sizes: Mapping[str, int]) -> LoopFault | None:
    ran = list(run_loops(loops.root, sizes))
    vectors = _vectors(scop, order, sizes)
    wanted = Counter({instance: len(v) for instance, v in vectors.items()})
    values = tuple(sizes[p] for p in scop.params)
    count = Counter(ran)
    kinds = (
        ("outside", sorted(i for i in count if i not in wanted)),
        ("missing", sorted(i for i in wanted if count[i] < wanted[i])),
        ("twice", sorted(i for i in wanted if count[i] > wanted[i])),
    )
    for what, instances in kinds:
        if instances:
            return LoopFault(what, scop.params, values, *instances[0])
    swapped = _swapped(order, _with_vectors(ran, vectors))
    return LoopFault("order", scop.params, values, *swapped[0], *swapped[1]) if swapped else None


def _vectors(scop: Scop, order: NewOrder, sizes: Mapping[str, int]) -> dict[Instance, list[tuple[int, ...]]]:
    """Every instance with its order vectors, smallest first."""
    found: dict[Instance, list[tuple[int, ...]]] = {}
    for s in scop.statements:
        entries = [f"v{k}'" for k in range(order.length)]
        for point in order.of(s.name).fix_params(sizes).wrapped(s.iterators, entries).points(sizes):
            arity = len(s.iterators)
            found.setdefault((s.name, point[:arity]), []).append(point[arity:])
    return found


def _with_vectors(
    ran: Sequence[Instance], vectors: Mapping[Instance, list[tuple[int, ...]]]
) -> list[tuple[Instance, tuple[int, ...]]]:
    """The k-th run of an instance is that of its k-th vector."""
    seen: Counter[Instance] = Counter()
    rows: list[tuple[Instance, tuple[int, ...]]] = []
    for instance in ran:
        rows.append((instance, vectors[instance][seen[instance]]))
        seen[instance] += 1
    return rows


def _swapped(order: NewOrder, rows: Sequence[tuple[Instance, tuple[int, ...]]]) -> tuple[Instance, Instance] | None:
    """The first two in the order of the schedule that ran the other way round."""
    free = order.parallel or order.unordered
    pairs = itertools.combinations(rows, 2) if free else itertools.pairwise(rows)
    wrong = [(b, a) for a, b in pairs if b[1] < a[1] and not _unordered(order, a, b)]
    if not wrong:
        return None
    first, second = min(wrong, key=lambda p: (p[0][1], p[1][1]))
    return first[0], second[0]


def _unordered(order: NewOrder, a: tuple[Instance, tuple[int, ...]], b: tuple[Instance, tuple[int, ...]]) -> bool:
    """Whether the entry in which two vectors first differ orders nothing."""
    dim = next(k for k, (x, y) in enumerate(zip(a[1], b[1], strict=True)) if x != y)
    if dim in order.parallel:
        return True
    for entry, sets in order.unordered:
        inside = {s.name: s for s in sets}
        both = all(i[0] in inside and _contains(inside[i[0]], i[1]) for i in (a[0], b[0]))
        if entry == dim and both:
            return True
    return False


def _contains(instances: Set, values: Sequence[int]) -> bool:
    """Whether the set holds the point, at some sizes."""
    return not instances.fix(dict(zip(instances.dims, values, strict=True))).is_empty()
