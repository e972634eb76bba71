"""Races: found when a wait is missing, never when the order is complete, equal to a brute-force definition."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polyopt.errors import ProgramError
from polyopt.ir.program import Buffer, Instr, Loop, Node, Program, View, Wait, instructions
from polyopt.machine import machine
from polyopt.sets import Constraint, affine, var
from polyopt.simulator import simulate
from tests.unit.simulator.programs import ROWS, change, instr, load, loop, matmul, program, store, tensor, view

TRN2 = machine("trn2")
SIZES = {"M": 9, "N": 25, "K": 13}
i = var("i")


def without(p: Program, site: str, wait: Wait) -> Program:
    own = next(x for x, _ in instructions(p.body) if x.site == site)
    assert wait in own.waits
    return change(p, site, waits=tuple(w for w in own.waits if w != wait))


def all_waits(p: Program) -> list[tuple[str, Wait]]:
    return [(x.site, w) for x, _ in instructions(p.body) for w in x.waits]


REDUNDANT = {("evict", "first")}
"""`more` follows `first` on the same queue, so waiting for `more` is enough when there is more than one tile."""


@pytest.mark.parametrize(("site", "wait"), all_waits(matmul()), ids=[f"{s}-{w.site}" for s, w in all_waits(matmul())])
def test_every_wait_is_needed(site: str, wait: Wait) -> None:
    p = without(matmul(), site, wait)
    races = simulate(p, TRN2, None, SIZES, timing_only=True, detect_races=True).races
    assert races is not None
    assert bool(races) == ((site, wait.site) not in REDUNDANT)
    with_values = run_values(p).races
    assert with_values is not None
    assert {str(r) for r in with_values} == {str(r) for r in races}


def run_values(p: Program, **options: Any) -> Any:
    rng = np.random.default_rng(0)
    a, b = rng.integers(-4, 5, (SIZES["K"], SIZES["M"])), rng.integers(-4, 5, (SIZES["K"], SIZES["N"]))
    return simulate(p, TRN2, {"A": a, "B": b}, SIZES, **options)


def test_race_says_who_and_where() -> None:
    p = without(matmul(), "more", Wait("load_b"))
    (race,) = run_values(p).races
    assert race.kind == "read after write"
    assert (race.first.site, race.second.site, race.array, race.cell) == ("load_b", "more", "b", (0, 0))
    assert dict(race.first.at) == {"mo": 0, "no": 0, "ko": 1}
    assert "read after write of b[0, 0]: load_b(mo=0, no=0, ko=1) writes O on load1; more(" in str(race)
    with pytest.raises(ProgramError, match="nothing orders them") as caught:
        run_values(p, raise_on_error=True)
    assert caught.value.diagnostic.id == "race"


def test_wait_one_iteration_too_late() -> None:
    late = (Wait("first", "ko", 3), Wait("more", "ko", 3))
    races = run_values(change(matmul(), "load_a", waits=late)).races
    assert {(r.first.site, r.second.site, r.kind) for r in races} == {
        ("first", "load_a", "write after read"),
        ("more", "load_a", "write after read"),
    }


def test_waiting_for_a_queue() -> None:
    for site in ("first", "more"):
        own = next(x for x, _ in instructions(matmul().body) if x.site == site)
        rest = tuple(w for w in own.waits if not w.site.startswith("load"))
        p = change(matmul(), site, waits=(Wait("load0"), Wait("load1"), *rest))
        assert run_values(p).races == ()
        assert run_values(change(p, site, waits=(Wait("load0"), *rest))).races


def test_scratch_tensor_in_device_memory() -> None:
    """A store followed by a load of the same temporary needs a wait."""
    buffers = [Buffer("a", "sbuf", (4, 4), "float32"), Buffer("b", "sbuf", (4, 4), "float32", 1, 64)]
    square = view("T", (0, 0), ROWS)
    fill = instr("fill", "memset", "vector", (("p", 4), ("f", 4)), {"O": view("a", (0, 0), ROWS)}, s0=3.0)
    out = store("out", square, "a", 4, 4, waits=(Wait("fill"),))
    back = load("back", "b", square, 4, 4, waits=(Wait("out"),))
    save = store("save", view("Y", (0, 0), ROWS), "b", 4, 4, waits=(Wait("back"),))
    p = program([tensor("T", (4, 4), "temp"), tensor("Y", (4, 4), "output")], buffers, [fill, out, back, save])
    assert simulate(p, TRN2, {}, {}).races == ()
    (race,) = simulate(change(p, "back", waits=()), TRN2, {}, {}).races or ()
    assert (race.kind, race.array) == ("read after write", "T")


def test_buffers_that_share_bytes() -> None:
    buffers = [Buffer("a", "sbuf", (4, 8), "float32"), Buffer("b", "sbuf", (4, 8), "bfloat16", 1, 16)]
    x = view("X", (0, 0), ROWS)
    first = load("first", "a", x, 4, 8)
    out = store("out", view("Y", (0, 0), ROWS), "a", 4, 4, waits=(Wait("first"),))
    second = load("second", "b", x, 4, 8, queue="load1", waits=(Wait("first"), Wait("out")))
    p = program([tensor("X", (4, 8), "input"), tensor("Y", (4, 4), "output")], buffers, [first, out, second])
    inputs = {"X": np.zeros((4, 8))}
    assert simulate(p, TRN2, inputs, {}).races == ()
    (race,) = simulate(change(p, "second", waits=(Wait("out"),)), TRN2, inputs, {}).races or (None,)  # out knows first
    assert race is None
    (race,) = simulate(change(p, "second", waits=(Wait("first"),)), TRN2, inputs, {}).races or (None,)
    assert race is None  # b begins at byte 16: the cells of a that out reads are below it
    low = replace(p, buffers=(buffers[0], replace(buffers[1], offset_bytes=12)))
    (race,) = simulate(change(low, "second", waits=(Wait("first"),)), TRN2, inputs, {}).races or ()
    assert race is not None and (race.kind, race.array, race.cell) == ("write after read", "b", (0, 0))


def test_transfers_of_one_queue_may_complete_in_any_order() -> None:
    """Two loads of one queue into one buffer are in order unless completions are not."""
    buffers = [Buffer("a", "sbuf", (4, 4), "float32")]
    first = load("first", "a", view("X", (0, 0), ROWS), 4, 4)
    second = load("second", "a", view("X", (0, 4), ROWS), 4, 4)
    p = program([tensor("X", (4, 8), "input")], buffers, [first, second])
    inputs = {"X": np.zeros((4, 8))}
    assert simulate(p, TRN2, inputs, {}).races == ()
    (race,) = simulate(p, TRN2, inputs, {}, dma_out_of_order=True).races or ()
    assert race.kind == "write after write"
    for waits in ((Wait("first"),), (Wait("load0"),)):
        assert simulate(change(p, "second", waits=waits), TRN2, inputs, {}, dma_out_of_order=True).races == ()


def test_data_dependent_cells() -> None:
    """With values the gathered rows are known; without, only the tensor is."""
    rows = view("I", (0,), {"p": (1,)})
    buffers = [Buffer("a", "sbuf", (4, 4), "float32")]
    fill = instr("fill", "memset", "vector", (("p", 4), ("f", 4)), {"O": view("a", (0, 0), ROWS)}, s0=3.0)
    out = store("out", view("T", (4, 0), ROWS), "a", 4, 4, waits=(Wait("fill"),))
    get = instr(
        "get",
        "dma",
        "load0",
        (("p", 2), ("f", 4)),
        {"O": view("Y", (0, 0), ROWS), "A": view("T", (0, 0), {"f": (0, 1)}, indirect=((0, rows),))},
    )
    p = program(
        [tensor("T", (8, 4), "inout"), tensor("I", (2,), "input", "int32"), tensor("Y", (2, 4), "output")],
        buffers,
        [fill, out, get],
    )
    inputs = {"T": np.zeros((8, 4)), "I": np.array([1, 3])}
    assert simulate(p, TRN2, inputs, {}).races == ()
    (race,) = simulate(p, TRN2, {**inputs, "I": np.array([1, 5])}, {}).races or ()
    assert race.certain and race.cell == (5, 0)
    (race,) = simulate(p, TRN2, None, {}, timing_only=True, detect_races=True).races or ()
    assert not race.certain and race.cell is None and str(race).startswith("possible read after write of T:")


def test_strided_accesses_that_pass_each_other() -> None:
    """Even and odd columns: the boxes meet, the cells do not."""
    buffers = [Buffer("a", "sbuf", (4, 8), "float32")]
    lanes = (("p", 4), ("f", 4))

    def half(site: str, queue: str, start: int) -> Instr:
        target = view("a", (0, start), {"p": (1, 0), "f": (0, 2)})
        return instr(site, "memset", queue, lanes, {"O": target}, s0=1.0)

    p = program([], buffers, [half("even", "vector", 0), half("odd", "gpsimd", 1)])
    assert simulate(p, TRN2, {}, {}).races == ()
    p = program([], buffers, [half("even", "vector", 0), half("also", "gpsimd", 0)])
    (race,) = simulate(p, TRN2, {}, {}).races or ()
    assert race.kind == "write after write"


# -- against the definition ------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Instance:
    site: Instr
    env: Mapping[str, int]
    runs: Mapping[str, int]
    steps: Mapping[str, int]


def enumerate_instances(p: Program) -> list[Instance]:
    """In program order; `runs`: which execution of each enclosing loop, `steps`: which iteration of it."""
    found: list[Instance] = []
    counters: dict[str, int] = {}

    def visit(node: Node, env: dict[str, int], runs: dict[str, int], steps: dict[str, int]) -> None:
        if isinstance(node, Loop):
            counters[node.var] = counters.get(node.var, 0) + 1
            count = counters[node.var]
            values = range(node.lower.evaluate(env), node.upper.evaluate(env), node.step)
            for k, value in enumerate(values):
                for inner in node.body:
                    visit(inner, {**env, node.var: value}, {**runs, node.var: count}, {**steps, node.var: k})
        elif all(g.holds(env) for g in node.guards):
            found.append(Instance(node, env, runs, steps))

    for node in p.body:
        visit(node, {}, {}, {})
    return found


def touched(p: Program, x: Instance) -> list[tuple[str, bool, set[tuple[int, ...]]]]:
    """(operand, written, cells) of every view."""
    found = []
    extents = [range(lane.extent.evaluate(x.env)) for lane in x.site.lanes]
    for number, (name, v) in enumerate(x.site.operands):
        buffer = p.buffer(v.array)
        copy = v.copy.evaluate(x.env) % buffer.copies if buffer else 0
        cells: set[tuple[int, ...]] = set()
        for point in itertools.product(*extents):
            cell = [b.evaluate(x.env) for b in v.base]
            for lane, k in zip(x.site.lanes, point, strict=True):
                cell = [c + s * k for c, s in zip(cell, v.step(lane.name), strict=True)]
            if buffer:
                base = buffer.offset_bytes + copy * buffer.copy_bytes + cell[1] * 4
                cells |= {(cell[0], base + byte) for byte in range(4)}
            else:
                cells.add((-1, hash(v.array), *cell))
        found.append((name, number == 0, cells))
    return found


def races_by_definition(p: Program, loose: set[str]) -> set[tuple[str, str, str, str, str]]:
    instances = enumerate_instances(p)
    known: list[set[int]] = []
    last: dict[str, int] = {}
    result = set()
    cells = [touched(p, x) for x in instances]
    for n, x in enumerate(instances):
        mine: set[int] = set()
        before = last.get(x.site.queue)
        if before is not None:
            mine |= known[before]
            if x.site.queue not in loose:
                mine.add(before)
        for w in x.site.waits:
            for m in range(n):
                y = instances[m]
                if w.site not in (y.site.site, y.site.queue):
                    continue
                same_run = w.loop is not None and y.runs.get(w.loop) == x.runs[w.loop]
                if same_run and y.steps[w.loop] > x.steps[w.loop] - w.distance:  # type: ignore[index]
                    continue
                mine |= known[m] | {m}
        known.append(mine)
        last[x.site.queue] = n
        for m in set(range(n)) - mine:
            if instances[m].site.queue == x.site.queue and x.site.queue not in loose:
                continue
            for (a, wa, ca), (b, wb, cb) in itertools.product(cells[m], cells[n]):
                if (wa or wb) and ca & cb:
                    kind = f"{'write' if wb else 'read'} after {'write' if wa else 'read'}"
                    result.add((instances[m].site.site, x.site.site, a, b, kind))
    return result


QUEUES = {"vector": "copy", "gpsimd": "copy", "load0": "dma", "store0": "dma"}
NESTS: list[tuple[tuple[str, ...], ...]] = [
    ((), (), ("i",), ("i",)),
    (("i",),) * 4,
    (("i",), ("i", "j"), ("i", "j"), ("i",)),
    (("i", "j"),) * 4,
]
ARRAYS = ("u", "v", "w", "T")


@st.composite
def views(draw: st.DrawFn, variables: list[str]) -> View:
    array = draw(st.sampled_from(ARRAYS))
    copy = affine(draw(st.integers(0, 1)))
    column = affine(draw(st.integers(0, 2)))
    for name in variables:
        copy = copy + var(name) * draw(st.integers(0, 1))
        if draw(st.booleans()):
            column = column + var(name)
    stride = draw(st.integers(1, 2))
    return View(array, (affine(0), column), (("f", (0, stride)),), copy if array != "T" else affine(0))


@st.composite
def programs(draw: st.DrawFn) -> Program:
    number = draw(st.integers(2, 4))
    names = [f"s{k}" for k in range(number)]
    nests = draw(st.sampled_from(NESTS))
    made: list[tuple[tuple[str, ...], Instr]] = []
    for k, name in enumerate(names):
        loops = nests[k]
        queue = draw(st.sampled_from(sorted(QUEUES)))
        o, a = draw(views(list(loops))), draw(views(list(loops)))
        if QUEUES[queue] == "copy":
            o = replace(o, array="u", copy=o.copy) if o.array == "T" else o
            a = replace(a, array="v", copy=a.copy) if a.array == "T" else a
        waits = []
        for _ in range(draw(st.integers(0, 3))):
            around = [n for n, own in zip(names, nests, strict=False) if set(own) & set(loops)]
            target = draw(st.sampled_from([*names[:k], *around, *QUEUES]))
            if len(loops) > 0 and draw(st.booleans()):
                waits.append(Wait(target, draw(st.sampled_from(list(loops))), draw(st.integers(1, 3))))
            else:
                waits.append(Wait(target))
        guards = (Constraint(var(loops[-1]) - 1),) if loops and draw(st.integers(0, 3)) == 0 else ()
        made.append(
            (
                loops,
                instr(
                    name,
                    QUEUES[queue],
                    queue,
                    (("f", draw(st.integers(1, 2))),),
                    {"O": o, "A": a},
                    waits=waits,
                    guards=guards,
                ),
            )
        )
    body: list[Node] = []
    for outer, group in itertools.groupby(made, key=lambda m: m[0][:1]):
        inner: list[Node] = []
        for rest, some in itertools.groupby(group, key=lambda m: m[0][1:]):
            nodes = [s for _, s in some]
            inner += [loop("j", 2, *nodes)] if rest else nodes
        body += [loop("i", 3, *inner)] if outer else inner
    buffers = [
        Buffer("u", "sbuf", (1, 12), "float32", 2, 0, 48),
        Buffer("v", "sbuf", (1, 12), "float32", 2, 96, 48),
        Buffer("w", "sbuf", (1, 12), "float32", 2, 36, 48),
    ]
    return program([tensor("T", (1, 12), "inout")], buffers, body)


@settings(max_examples=150)
@given(p=programs(), out_of_order=st.booleans())
def test_races_are_those_of_the_definition(p: Program, out_of_order: bool) -> None:
    loose = {"load0", "store0"} if out_of_order else set()
    found = simulate(p, TRN2, None, {}, timing_only=True, detect_races=True, dma_out_of_order=out_of_order).races
    assert found is not None
    keys = {(r.first.site, r.second.site, r.first.operand, r.second.operand, r.kind) for r in found}
    assert keys == races_by_definition(p, loose)
