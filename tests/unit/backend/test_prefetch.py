"""Copies one iteration ahead: the same copies, each before the iteration that needs it."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from polyopt.backend._names import Names
from polyopt.backend._prefetch import ahead_of_loop
from polyopt.ir import Instr, Loop, Node, instructions
from polyopt.machine import machine
from polyopt.pipeline import compile
from polyopt.sets import Constraint, affine, minimum, var
from polyopt.simulator import simulate
from tests.unit.schedule._scops import program
from tests.unit.simulator.programs import ROWS, instr, load, loop, view

Event = tuple[str, int, tuple[int, ...]]


def events(nodes: tuple[Node, ...], env: dict[str, int]) -> list[Event]:
    """(kind of site, base of the copied row, extents) of every executed instruction."""
    found: list[Event] = []
    for n in nodes:
        if isinstance(n, Loop):
            for value in range(n.lower.evaluate(env), n.upper.evaluate(env), n.step):
                found += events(n.body, {**env, n.var: value})
        elif all(g.holds(env) for g in n.guards):
            extents = tuple(lane.extent.evaluate(env) for lane in n.lanes)
            if all(e > 0 for e in extents):
                source = n.operands[-1][1]
                found.append((n.site.split("_")[0], source.base[0].evaluate(env), extents))
    return found


def copy_nodes(step: int) -> list[Node]:
    """What an iteration of i copies: a whole tile, and each of its rows in a loop of its own."""
    i, r = var("i"), var("r")
    length = minimum(step, var("N") - i)
    whole = load("whole", "a", view("X", (i, 0), ROWS), length, 4, copy=i // step)
    row = load("row", "b", view("X", (i + r, 0), ROWS), 1, 4, copy=r)
    return [whole, loop("r", length, row)]


@settings(max_examples=100)
@given(st.integers(0, 9), st.integers(0, 3), st.integers(1, 4))
def test_every_copy_once_and_one_iteration_ahead(n: int, lower: int, step: int) -> None:
    nodes = copy_nodes(step)
    i = var("i")
    work = instr("work", "activation", "scalar", (("p", 1), ("f", 4)), {"O": view("y", (i, 0)), "X": view("a", (i, 0))})
    around = Loop("i", affine(lower), affine("N"), (), step)
    names = Names()
    for used in ("whole", "row", "r"):
        names.new(used)
    first, following = ahead_of_loop(nodes, around, names)
    plain = Loop("i", affine(lower), affine("N"), (*nodes, work), step)
    ahead = (*first, Loop("i", affine(lower), affine("N"), (*following, work), step))
    expected, found = events((plain,), {"N": n}), events(ahead, {"N": n})
    assert sorted(found) == sorted(expected)
    assert [e for e in found if e[0] == "work"] == [e for e in expected if e[0] == "work"]
    position = {e: k for k, e in enumerate(found)}
    for copy in (e for e in expected if e[0] != "work"):
        start = lower + (copy[1] - lower) // step * step
        here = next(k for k, e in enumerate(found) if e[:2] == ("work", start))
        assert position[copy] < here
        before = [k for k, e in enumerate(found) if e[:2] == ("work", start - 2 * step)]
        assert not before or before[0] < position[copy]


def test_sites_and_loops_get_names_of_their_own() -> None:
    names = Names()
    for used in ("whole", "row", "r"):
        names.new(used)
    first, following = ahead_of_loop(copy_nodes(2), Loop("i", affine(0), affine("N"), (), 2), names)
    sites = [x.site for x, _ in instructions((*first, *following))]
    assert sites == ["whole", "row", "whole_2", "row_2"]
    assert [n.var for n in (*first, *following) if isinstance(n, Loop)] == ["r", "r_2"]


def test_the_first_copy_is_guarded_unless_there_surely_is_an_iteration() -> None:
    nodes: list[Node] = [load("whole", "a", view("X", (var("i"), 0), ROWS), 1, 4)]
    (first,), _ = ahead_of_loop(nodes, Loop("i", affine(0), affine("N"), ()), Names())
    assert isinstance(first, Instr) and first.guards == (Constraint(var("N") - 1),)
    (first,), (next_one,) = ahead_of_loop(nodes, Loop("i", affine(0), affine(8), (), 4), Names())
    assert isinstance(first, Instr) and first.guards == ()
    assert isinstance(next_one, Instr) and next_one.guards == (Constraint(affine(3) - var("i")),)


def test_generated_programs_copy_ahead_where_copies_pass_through_engines() -> None:
    """A product whose first factor is turned on its way: its next tile is turned while this one is used."""
    scop = program(
        "A[N, N] float32 input; B[N, N] float32 input; C[N, N] float32 inout",
        ("S", "[i, j, k] : 0 <= i, j, k < N", "[i, j, k]", "C[i, j] += A[i, k] * B[k, j]"),
        reassociate=True,
    )
    p = compile(scop, at={"N": 512}).program
    turned = [(x, loops) for x, loops in instructions(p.body) if x.opcode == "transpose"]
    assert any(not any("_t" in loop.var for loop in loops) for _, loops in turned)
    assert any(x.guards for x, _ in turned)
    result = simulate(p, machine("trn2"), None, {"N": 512}, timing_only=True)
    blocks = (512 // 128) ** 2
    assert result.instructions["transpose"] == blocks
