"""Bounds and masks of tiles against enumeration: a box of bounds, cut by its mask, holds just the instances."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from polyopt.errors import UnsupportedError
from polyopt.ir.mapping import Window
from polyopt.sets import Affine, Constraint, Set, affine, interval, var
from polyopt.tiling._space import LoopShape, Space, hull

PARAMS = ("N",)
BOX = range(-2, 7)
LOWERS = ("0", "0", "1", "t", "i", "i - 1", "2*i - 2", "0 - i")
UPPERS = ("N", "N", "4", "t + 2", "i + 1", "N - i", "2*i + 1", "i + 3")


@st.composite
def domains(draw: st.DrawFn) -> Set:
    """Instances over t (an outer iterator), i and j, inside a small box."""
    rows = ["0 <= t < 3"]
    for d, names in (("i", "Nt"), ("j", "Nti")):
        known = {"i", "t", "j"} - set(names)
        low = draw(st.sampled_from([x for x in LOWERS if not set(x) & known]))
        high = draw(st.sampled_from([x for x in UPPERS if not set(x) & known]))
        rows.append(f"{low} <= {d} < {high}")
    rows += draw(st.lists(st.sampled_from(["i + j >= 1", "i + j < N + 1", "j <= 2*i", "t + j < 5"]), max_size=1))
    rows += [f"{BOX[0]} <= {d} <= {BOX[-1]}" for d in "ij"]
    return Set.parse(f"[t, i, j] : {' and '.join(rows)}", name="S", params=PARAMS)


@st.composite
def loops(draw: st.DrawFn) -> tuple[LoopShape, ...]:
    dims = draw(st.sampled_from(["", "i", "j", "ij", "ji"]))
    return tuple(LoopShape(d, f"{d}_t", draw(st.sampled_from([1, 2, 3]))) for d in dims)


def iterations(space: Space, shape: Sequence[LoopShape], env: dict[str, int]) -> Iterator[dict[str, int]]:
    """What generated loops run through: from the lower bound to the upper in steps."""
    if not shape:
        yield env
        return
    for k, loop in enumerate(shape):
        if loop.var not in env:
            low, high = space.bounds(loop.dim, shape[:k])
            for value in range(low.evaluate(env), high.evaluate(env), loop.step):
                yield from iterations(space, shape, {**env, loop.var: value})
            return
    yield env


def box_of(space: Space, dims: Sequence[str], shape: Sequence[LoopShape], env: dict[str, int]) -> list[dict[str, int]]:
    ranges = []
    for d in dims:
        low, high = space.bounds(d, shape)
        ranges.append(range(low.evaluate(env), high.evaluate(env)))
    return [dict(zip(dims, point, strict=True)) for point in itertools.product(*ranges)]


@settings(max_examples=120)
@given(domains(), loops(), st.sampled_from([(), ("j",), ("i", "j")]), st.sampled_from([1, 2, 4]))
def test_tiles_cut_by_their_masks_are_the_instances(
    domain: Set, shape: tuple[LoopShape, ...], reduced: tuple[str, ...], n: int
) -> None:
    """Every instance in exactly one tile, inside its box; every other point of a box is outside its mask."""
    space = Space.of(domain, ("t",), {"N": n}, reduced).for_loops(shape)
    try:
        rows = space.residual(("i", "j"), shape)
    except UnsupportedError:
        assume(False)
    expected = set(domain.points({"N": n}))
    seen: list[tuple[int, ...]] = []
    for t in sorted({p[0] for p in expected}):
        for env in iterations(space, shape, {"N": n, "t": t}):
            for point in box_of(space, ("i", "j"), shape, env):
                if all(c.holds({**env, **point}) for c in rows):
                    seen.append((t, point["i"], point["j"]))
    assert len(seen) == len(set(seen))
    assert set(seen) == expected


@settings(max_examples=80)
@given(domains(), loops(), st.sampled_from([1, 2, 4]))
def test_a_smaller_buffer_is_cut_by_its_own_mask(domain: Set, shape: tuple[LoopShape, ...], n: int) -> None:
    """Along i only: points that some instance of the tile has."""
    space = Space.of(domain, ("t",), {"N": n})
    try:
        rows = space.residual(("i",), shape)
    except UnsupportedError:
        assume(False)
    points = domain.points({"N": n})
    for t in sorted({p[0] for p in points}):
        for env in iterations(space, shape, {"N": n, "t": t}):
            inside = {
                i
                for a, i, j in points
                if a == t and all(env[x.var] <= {"i": i, "j": j}[x.dim] < env[x.var] + x.step for x in shape)
            }
            found = {q["i"] for q in box_of(space, ("i",), shape, env) if all(c.holds({**env, **q}) for c in rows)}
            assert found == inside


@settings(max_examples=80)
@given(domains(), st.sampled_from([1, 2, 4]))
def test_extents_are_the_largest_at_the_hinted_size(domain: Set, n: int) -> None:
    space = Space.of(domain, ("t",), {"N": n})
    points = domain.points({"N": n})
    for axis, d in enumerate(("t", "i", "j")):
        if d == "t":
            continue
        values = [p[axis] for p in points]
        assert space.hint(d) == (max(values) - min(values) + 1 if values else 0)


def test_boxes_are_known_as_such() -> None:
    box = Set.parse("[t, i, j] : 0 <= t < N and t <= i < N and 0 <= j < 4", name="S", params=PARAMS)
    space = Space.of(box, ("t",), {"N": 5})
    assert space.box == {"i": (var("t"), var("N")), "j": (affine(0), affine(4))}
    assert space.residual(("i", "j"), (LoopShape("i", "i_t", 2),)) == ()
    for text in (
        "0 <= i < N and 0 <= j <= i",
        "0 <= i < N and 0 <= 2*j < N",
        "0 <= i < N and j = 0 or i = 0 and j = 1",
    ):
        assert Space.of(Set.parse(f"[i, j] : {text}", name="S", params=PARAMS), (), {"N": 5}).box is None


def test_bounds_of_a_loop_over_the_same_dimension() -> None:
    domain = Set.parse("[i] : 0 <= i < N", name="S", params=PARAMS)
    space = Space.of(domain, (), {"N": 5})
    inner = (LoopShape("i", "i_b", 8), LoopShape("i", "i_t", 2))
    assert space.bounds("i", ()) == (affine(0), var("N"))
    low, high = space.bounds("i", inner[:1])
    assert low == var("i_b") and high.evaluate({"i_b": 8, "N": 20}) == 16 and high.evaluate({"i_b": 8, "N": 13}) == 13
    low, high = space.bounds("i", inner)
    assert low == var("i_t") and high.evaluate({"i_b": 8, "i_t": 10, "N": 20}) == 12


def test_reduced_loops_do_not_tighten_the_others() -> None:
    domain = Set.parse("[i, j] : 0 <= i < N and 0 <= j <= i", name="S", params=PARAMS)
    shape = (LoopShape("j", "j_t", 2),)
    loose, tight = (Space.of(domain, (), {"N": 5}, reduced).bounds("i", shape)[0] for reduced in (("j",), ()))
    assert loose == affine(0)
    assert tight.evaluate({"N": 5, "j_t": 2}) == 2


def test_a_reduced_dimension_in_one_tile_always_begins_at_the_same_point() -> None:
    domain = Set.parse("[i, j] : 0 <= i < N and i <= j < N", name="S", params=PARAMS)
    shape = (LoopShape("i", "i_t", 1),)
    space = Space.of(domain, (), {"N": 5}, ("j",))
    assert space.bounds("j", shape)[0].variables() == {"i_t"}
    assert space.for_loops(shape).bounds("j", shape) == (affine(0), var("N"))


@settings(max_examples=80)
@given(
    st.fixed_dictionaries({d: st.integers(-3, 3) for d in "ij"}),
    st.fixed_dictionaries({d: st.tuples(st.integers(-3, 3), st.integers(1, 4)) for d in "ij"}),
    st.integers(-2, 2),
)
def test_the_hull_of_a_linear_expression(c: dict[str, int], box: dict[str, tuple[int, int]], offset: int) -> None:
    expr: Affine = var("i") * c["i"] + var("j") * c["j"] + offset
    bounds = {d: (affine(low), affine(low + size)) for d, (low, size) in box.items()}
    low, high = hull(expr, bounds)
    assert (low.evaluate({}), high.evaluate({}) - 1) == interval(
        expr, {d: (a, a + size - 1) for d, (a, size) in box.items()}
    )


def test_windows_cover_what_a_subscript_reaches() -> None:
    """2*h + r over a tile of h and all r."""
    domain = Set.parse("[h, r] : 0 <= h < N and 0 <= r < 3", name="S", params=PARAMS)
    window = Window(0, "w0_X", var("h") * 2 + "r")
    space = Space.of(domain, (), {"N": 10}).with_windows((window,))
    assert space.hint("w0_X") == 1 + 2 * 9 + 2
    shape = (LoopShape("h", "h_t", 4),)
    span = space.window_span(window, shape, 9)
    at = {"h_t": 4, "N": 10}
    assert (span.start.evaluate(at), span.stop.evaluate(at)) == (8, 17)
    assert (span.start, span.stop) == (span.copy_start, span.copy_stop)
    at = {"h_t": 8, "N": 10}
    assert (span.start.evaluate(at), span.stop.evaluate(at)) == (16, 21)


def test_windows_of_a_domain_that_is_no_box_are_clipped_to_what_instances_read() -> None:
    domain = Set.parse("[h, r] : 0 <= h < N and 0 <= r < 3 and 0 <= h + r - 1 < N", name="S", params=PARAMS)
    window = Window(0, "w0_X", var("h") + "r" - 1)
    space = Space.of(domain, (), {"N": 5}).with_windows((window,))
    span = space.window_span(window, (), 7)
    at = {"N": 5}
    assert [x.evaluate(at) for x in (span.start, span.stop, span.copy_start, span.copy_stop)] == [-1, 6, 0, 5]


def test_domains_that_no_mask_describes_are_refused() -> None:
    for text in (
        "0 <= i < N and 0 <= j < N and (i + j) mod 2 = 0",
        "0 <= i, j < N and i = 0 or 0 <= i, j < N and j = 0",
    ):
        space = Space.of(Set.parse(f"[i, j] : {text}", name="S", params=PARAMS), (), {"N": 5})
        with pytest.raises(UnsupportedError, match="not a box with linear constraints"):
            space.residual(("i", "j"), ())


def test_masks_are_only_what_the_box_leaves_open() -> None:
    domain = Set.parse("[i, j] : 0 <= i < N and 0 <= j <= i", name="S", params=PARAMS)
    space = Space.of(domain, (), {"N": 5})
    assert space.residual(("i", "j"), ()) == (Constraint(var("i") - "j"),)
    assert space.residual(("i",), ()) == () == space.residual(("j",), ())
    one = (LoopShape("i", "i_t", 1),)
    assert space.residual(("i", "j"), one) == ()
