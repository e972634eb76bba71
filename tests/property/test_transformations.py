"""Chains of transformations at random: whatever is not refused leaves every value as it was."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import given, settings
from hypothesis import strategies as st

from polyopt.errors import InputError, LegalityError
from polyopt.ir import Scop
from polyopt.schedule import ScheduleTree, bands, original_tree, transform
from polyopt.schedule import Sequence as InSequence
from polyopt.schedule._tree import Path, children
from tests.unit.schedule.transform._programs import MATMUL, PIPELINE, STENCIL, TRIANGLE, holds

Step = Callable[[Scop, ScheduleTree, st.DataObject], ScheduleTree]


def some_loop(tree: ScheduleTree, data: st.DataObject) -> tuple[Path, str]:
    return data.draw(st.sampled_from([(p, n) for p, b in bands(tree) for n in b.names()]))


def sequences(tree: ScheduleTree) -> list[tuple[Path, int]]:
    """Path and number of children of every sequence."""
    found: list[tuple[Path, int]] = []
    todo = [((), tree.root)]
    while todo:
        path, node = todo.pop()
        if isinstance(node, InSequence):
            found.append((path, len(node.children)))
        todo += [((*path, k), child) for k, child in enumerate(children(node))]  # type: ignore[misc]
    return found


def tile(scop: Scop, tree: ScheduleTree, data: st.DataObject) -> ScheduleTree:
    path, band = data.draw(st.sampled_from(list(bands(tree))))
    chosen = data.draw(st.lists(st.sampled_from(band.names()), min_size=1, unique=True))
    return transform.tile(scop, tree, path, {n: data.draw(st.integers(1, 4)) for n in chosen})


def fuse(scop: Scop, tree: ScheduleTree, data: st.DataObject) -> ScheduleTree:
    first, second = some_loop(tree, data), some_loop(tree, data)
    return transform.fuse(scop, tree, first, second, shifts={first[1]: data.draw(st.integers(-1, 2))})


def reorder(scop: Scop, tree: ScheduleTree, data: st.DataObject) -> ScheduleTree:
    found = sequences(tree)
    path, count = data.draw(st.sampled_from(found)) if found else ((), 0)
    return transform.reorder(scop, tree, path, data.draw(st.permutations(range(count))))


def sink(scop: Scop, tree: ScheduleTree, data: st.DataObject) -> ScheduleTree:
    found = sequences(tree)
    path, count = data.draw(st.sampled_from(found)) if found else ((), 0)
    child, into = (data.draw(st.integers(0, max(count - 1, 0))) for _ in range(2))
    at: str | int = data.draw(st.one_of(st.sampled_from(["first", "last"]), st.integers(0, 2)))
    return transform.sink(scop, tree, path, child, into, at)


STEPS: tuple[Step, ...] = (
    tile,
    fuse,
    reorder,
    sink,
    lambda s, t, d: transform.interchange(s, t, some_loop(t, d), some_loop(t, d)),
    lambda s, t, d: transform.skew(s, t, some_loop(t, d), some_loop(t, d), d.draw(st.integers(-1, 2))),
    lambda s, t, d: transform.shift(s, t, some_loop(t, d), {s.statements[-1].name: d.draw(st.integers(-1, 2))}),
    lambda s, t, d: transform.scale(s, t, some_loop(t, d), d.draw(st.integers(1, 3))),
    lambda s, t, d: transform.reverse(s, t, some_loop(t, d)),
    lambda s, t, d: transform.strip_mine(s, t, some_loop(t, d), d.draw(st.integers(1, 4))),
    lambda s, t, d: transform.distribute_loop(s, t, some_loop(t, d)),
    lambda s, t, d: transform.unroll(s, t, some_loop(t, d), d.draw(st.integers(1, 3))),
    lambda s, t, d: transform.unroll_and_jam(s, t, some_loop(t, d), d.draw(st.integers(1, 3))),
    lambda s, t, d: transform.split_loop(s, t, some_loop(t, d), d.draw(st.integers(-1, 4))),
    lambda s, t, d: transform.peel(
        s, t, some_loop(t, d), first=d.draw(st.integers(0, 2)), last=d.draw(st.integers(0, 2))
    ),
    lambda s, t, d: transform.separate(s, t, some_loop(t, d)[0]),
    lambda s, t, d: transform.parallel(s, t, [some_loop(t, d)]),
    lambda s, t, d: transform.vectorise(s, t, some_loop(t, d), d.draw(st.integers(1, 4))),
    lambda s, t, d: transform.diamond(s, t, some_loop(t, d), some_loop(t, d), d.draw(st.integers(1, 3))),
)


@settings(max_examples=120, deadline=None)
@given(st.sampled_from([MATMUL, STENCIL, PIPELINE, TRIANGLE]), st.data())
def test_what_is_not_refused_means_the_same(scop: Scop, data: st.DataObject) -> None:
    tree = original_tree(scop)
    for step in data.draw(st.lists(st.sampled_from(STEPS), min_size=1, max_size=4)):
        if not any(True for _ in bands(tree)):
            break
        try:
            tree = step(scop, tree, data)
        except LegalityError as error:
            assert error.verdict.witness is not None  # type: ignore[attr-defined]
        except InputError as error:
            assert error.diagnostic.help
    holds(scop, tree, (0, 1, 4))
