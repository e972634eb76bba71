"""Sets by name against enumeration of small boxes."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polyopt.errors import InputError, InternalError
from polyopt.sets import Affine, Constraint, Set, affine, minimum, var

BOX = range(-3, 4)
PARAMS = ("N",)
SIZES = range(0, 4)


@dataclass(frozen=True)
class RandomSet:
    """A union of conjunctions, inside the box, as a Set and as plain constraints."""

    dims: tuple[str, ...]
    parts: tuple[tuple[Constraint, ...], ...]

    @property
    def set(self) -> Set:
        found = Set.empty("S", self.dims, PARAMS)
        for rows in self.parts:
            found = found.union(Set.from_constraints("S", self.dims, (*rows, *self.inside()), PARAMS))
        return found

    def inside(self) -> list[Constraint]:
        return [Constraint(var(d) * s - BOX[0]) for d in self.dims for s in (1, -1)]

    def has(self, point: Sequence[int], n: int) -> bool:
        env = {"N": n, **dict(zip(self.dims, point, strict=True))}
        return any(all(c.holds(env) for c in rows) for rows in self.parts)

    def points(self, n: int) -> list[tuple[int, ...]]:
        return [p for p in itertools.product(BOX, repeat=len(self.dims)) if self.has(p, n)]


@st.composite
def rows(draw: st.DrawFn, dims: Sequence[str]) -> Constraint:
    total: Affine = affine(draw(st.integers(-4, 4)))
    for name in (*dims, "N"):
        total = total + var(name) * draw(st.sampled_from([0, 0, 1, 1, -1, -1, 2, -3]))
    kind = draw(st.integers(0, 7))
    if kind == 0:
        return Constraint(total % draw(st.integers(2, 3)), True)
    if kind == 1:
        total = total // 2
    return Constraint(total, kind == 2)


@st.composite
def random_sets(draw: st.DrawFn, dims: Sequence[str] = ("i", "j"), parts: int = 2) -> RandomSet:
    made = st.lists(rows(dims), max_size=3).map(tuple)
    return RandomSet(tuple(dims), tuple(draw(st.lists(made, min_size=1, max_size=parts))))


sizes = st.sampled_from(SIZES)


# -- asking ----------------------------------------------------------------------------------------------------------
@settings(max_examples=80)
@given(random_sets(), sizes)
def test_points_and_count(s: RandomSet, n: int) -> None:
    assert s.set.points({"N": n}) == s.points(n)
    assert s.set.count({"N": n}) == len(s.points(n))
    assert s.set.fix({"N": n}).is_empty() == (not s.points(n))


@settings(max_examples=100)
@given(random_sets(("i", "j", "k")), st.sampled_from(["", "i", "ij"]))
def test_bounds_are_the_smallest_and_the_largest(s: RandomSet, known: str) -> None:
    """In terms of the size and the known dimensions, wherever there is a point."""
    if s.set.is_empty():
        return
    low, high = s.set.bounds("k", tuple(known))
    for n in SIZES:
        found: dict[tuple[int, ...], list[int]] = {}
        for point in s.points(n):
            found.setdefault(point[: len(known)], []).append(point[2])
        for outer, values in found.items():
            env = {"N": n, **dict(zip(known, outer, strict=True))}
            assert (low.evaluate(env), high.evaluate(env)) == (min(values), max(values))


@settings(max_examples=80)
@given(random_sets(), st.booleans())
def test_the_smallest_point(s: RandomSet, size_first: bool) -> None:
    if size_first:
        bounded = s.set.intersect_params(Set.parse("0 <= N <= 3", params=PARAMS))
        expected = [(n, *p) for n in SIZES for p in s.points(n)]
        found = bounded.smallest(PARAMS)
        assert found == (dict(zip(("N", *s.dims), min(expected), strict=True)) if expected else None)
        return
    for n in SIZES:
        points = s.points(n)
        found = s.set.fix({"N": n}).smallest()
        assert found == (dict(zip(s.dims, min(points), strict=True)) if points else None)


@settings(max_examples=80)
@given(random_sets(parts=3))
def test_parts_cover_the_set_and_disjoint_parts_exactly_once(s: RandomSet) -> None:
    whole, apart = s.set.basic(), s.set.disjoint_basic()
    for n in SIZES:
        for point in itertools.product(BOX, repeat=2):
            env = {"N": n, **dict(zip(s.dims, point, strict=True))}
            hits = [sum(all(c.holds(env) for c in rows) for rows in parts) for parts in (whole, apart)]
            assert (hits[0] > 0) == s.has(point, n)
            assert hits[1] == s.has(point, n)


@settings(max_examples=80)
@given(random_sets(), random_sets())
def test_relations_between_sets(a: RandomSet, b: RandomSet) -> None:
    """For all sizes at once; the box has none, so sizes 0..3 are cut out."""
    context = Set.parse("0 <= N <= 3", params=PARAMS)
    x, y = a.set.intersect_params(context), b.set.intersect_params(context)
    points = [({(n, *p) for n in SIZES for p in s.points(n)}) for s in (a, b)]
    assert x.is_subset(y) == (points[0] <= points[1])
    assert x.is_equal(y) == (points[0] == points[1])
    assert (x == y) == (points[0] == points[1])
    assert x != y or hash(x) == hash(y)


# -- deriving --------------------------------------------------------------------------------------------------------
@settings(max_examples=60)
@given(random_sets(), random_sets(), sizes)
def test_set_operations(a: RandomSet, b: RandomSet, n: int) -> None:
    left, right = set(a.points(n)), set(b.points(n))
    at = {"N": n}
    assert a.set.intersect(b.set).points(at) == sorted(left & right)
    assert a.set.union(b.set).points(at) == sorted(left | right)
    assert a.set.subtract(b.set).points(at) == sorted(left - right)
    simpler = a.set.gist(b.set)
    assert simpler.intersect(b.set).points(at) == sorted(left & right)


@settings(max_examples=60)
@given(random_sets(("i", "j", "k"), 1), st.permutations(["i", "j", "k"]), st.integers(0, 3), sizes)
def test_projection_and_order_by_name(s: RandomSet, order: list[str], kept: int, n: int) -> None:
    dims = order[:kept]
    expected = {tuple(p[s.dims.index(d)] for d in dims) for p in s.points(n)}
    found = s.set.project_onto(dims)
    assert (found.name, found.dims) == ("S", tuple(dims))
    assert found.points({"N": n}) == sorted(expected)
    again = s.set.project_out([d for d in order if d not in dims])
    assert again.is_equal(found)


@settings(max_examples=60)
@given(random_sets(), sizes)
def test_another_order_of_the_dimensions_is_lined_up(s: RandomSet, n: int) -> None:
    turned = s.set.project_onto(["j", "i"])
    assert turned.dims == ("j", "i")
    assert turned.points({"N": n}) == sorted((j, i) for i, j in s.points(n))
    assert s.set.is_equal(turned) and turned.is_subset(s.set)
    assert s.set.intersect(turned).points({"N": n}) == s.points(n)
    assert s.set.subtract(turned).is_empty()


@settings(max_examples=60)
@given(random_sets(), sizes)
def test_names_change_and_points_stay(s: RandomSet, n: int) -> None:
    renamed = s.set.rename(name="T", dims={"i": "a"})
    assert (renamed.name, renamed.dims) == ("T", ("a", "j"))
    assert renamed.points({"N": n}) == s.points(n)
    assert s.set.rename(name="").name == ""
    swapped = s.set.rename(dims={"i": "j", "j": "i"})
    assert swapped.dims == ("j", "i")
    assert swapped.points({"N": n}) == s.points(n)


@settings(max_examples=60)
@given(random_sets(), sizes, st.integers(-2, 2))
def test_new_dimensions_are_free(s: RandomSet, n: int, value: int) -> None:
    more = s.set.add_dims(["a", "b"]).constrain([Constraint(var("a") - value, True), Constraint(var("b") - "i", True)])
    assert more.dims == ("i", "j", "a", "b")
    assert more.points({"N": n}) == [(i, j, value, i) for i, j in s.points(n)]


@settings(max_examples=60)
@given(random_sets(), st.dictionaries(st.sampled_from(["i", "j", "N", "M"]), st.integers(-2, 3), max_size=2), sizes)
def test_fixing_keeps_the_names(s: RandomSet, values: Mapping[str, int], n: int) -> None:
    fixed = s.set.fix(values)
    at = {"N": values.get("N", n)}
    expected = [p for p in s.points(at["N"]) if all(values.get(d, x) == x for d, x in zip(s.dims, p, strict=True))]
    assert (fixed.dims, fixed.params) == (s.dims, PARAMS)
    assert fixed.points(at) == expected


@settings(max_examples=60)
@given(random_sets(parts=3))
def test_text_is_read_back(s: RandomSet) -> None:
    again = Set.parse(s.set.text(), name="S", params=PARAMS)
    assert again == s.set or s.set.is_empty()
    assert again.is_empty() == s.set.is_empty()


@settings(max_examples=40)
@given(random_sets(), st.permutations([0, 1, 2]))
def test_a_context_restricts_the_parameters(s: RandomSet, order: list[int]) -> None:
    context = Set.parse(f"N = {order[0]} or N = {order[1]}", params=PARAMS)
    for n in order:
        expected = s.points(n) if n in order[:2] else []
        assert s.set.intersect_params(context).points({"N": n}) == expected


@settings(max_examples=40)
@given(random_sets())
def test_dropping_divisions_only_adds_points(s: RandomSet) -> None:
    assert s.set.is_subset(s.set.without_strides())
    assert s.set.coalesce() == s.set


# -- by hand ---------------------------------------------------------------------------------------------------------
def test_boxes_and_universes() -> None:
    box = Set.box("S", {"i": (0, var("N")), "j": (var("i") + 1, 4)}, PARAMS)
    assert box.points({"N": 3}) == [(i, j) for i in range(3) for j in range(i + 1, 4)]
    assert Set.box("S", {}, PARAMS).points({"N": 1}) == [()]
    assert Set.empty("S", ["i"], PARAMS).is_empty()
    assert Set.universe("S", ["i"], PARAMS).is_subset(Set.universe("S", ["i"], PARAMS))
    assert not Set.universe("S", ["i"], PARAMS).is_bounded("i")
    half = Set.parse("[i, j] : 0 <= i and 0 <= j < N", params=PARAMS)
    assert (half.is_bounded("i"), half.is_bounded("j")) == (False, True)


def test_bounds_texts() -> None:
    s = Set.parse("[i, j] : 0 <= i < N and i <= 2*j and j < i + 5 and j < M", name="S", params=["N", "M"])
    low, high = s.bounds("j", ["i"])
    assert low == (var("i") + 1) // 2
    assert high == minimum(var("i") + 4, var("M") - 1)


@pytest.mark.parametrize("text", ["[i : i >= 0", "[i] : i >= M", "[i] : i*i > 2", "[i] : i >"])
def test_unreadable_text_is_quoted(text: str) -> None:
    with pytest.raises(InputError) as caught:
        Set.parse(text, params=PARAMS)
    assert repr(text) in caught.value.message
    assert "write isl set text" in str(caught.value)


def test_unbounded_sets_have_neither_bounds_nor_a_smallest_point() -> None:
    s = Set.parse("[i] : i <= N", name="S", params=PARAMS)
    with pytest.raises(InputError, match="dimension i of S is unbounded"):
        s.bounds("i")
    with pytest.raises(InputError, match="S has no smallest point"):
        s.smallest()


def test_only_like_sets_meet() -> None:
    a = Set.parse("[i] : i >= 0", name="S")
    with pytest.raises(InternalError, match="different tuples"):
        a.intersect(Set.parse("[i] : i >= 0", name="T"))
    with pytest.raises(InternalError, match="do not match"):
        a.intersect(Set.parse("[j] : j >= 0", name="S"))
    assert a != Set.parse("[j] : j >= 0", name="S")
    assert a != Set.parse("[i] : i >= 0", name="T")
    with pytest.raises(InternalError, match="no dimension 'k'"):
        a.is_bounded("k")
