"""verify_scop against enumeration: refused exactly when a cell or an order is wrong, with the smallest example."""

from __future__ import annotations

import re
from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st

from polyopt.errors import InputError
from polyopt.ir import Access, Assign, Const, Scop, Statement, Tensor, verify_scop
from polyopt.sets import Affine, Constraint, Set, affine, maximum, minimum, select, var

I_, J, N = var("i"), var("j"), var("N")
LARGEST = 9


@st.composite
def subscripts(draw: st.DrawFn) -> Affine:
    """Quasi-affine expressions of i, j and N with small constants."""
    small = st.integers(-2, 2)
    base = I_ * draw(small) + J * draw(small) + N * draw(st.integers(0, 1)) + draw(st.integers(-3, 3))
    kind = draw(st.sampled_from(["plain", "plain", "floor", "mod", "min", "max", "select"]))
    if kind == "floor":
        return base // draw(st.integers(2, 3))
    if kind == "mod":
        return base % draw(st.integers(2, 4))
    if kind == "min":
        return minimum(base, N - draw(st.integers(0, 2)))
    if kind == "max":
        return maximum(base, draw(st.integers(-1, 2)))
    return select([Constraint(I_ - 1)], base, I_ + 1) if kind == "select" else base


@st.composite
def domains(draw: st.DrawFn) -> Set:
    upper = draw(st.sampled_from(["N", "N - 1", "3", "i + 1", "2*i + 1", "N - i"]))
    lower = draw(st.sampled_from(["0", "1", "i", "i - 1"]))
    extra = draw(st.sampled_from(["", " and i mod 2 = 0", " and (j > 1 or i = 0)", " and i + j >= 1"]))
    text = f"[i, j] : 0 <= i < N and {lower} <= j < {upper}{extra}"
    return Set.parse(text, name="S", params=["N"])


extents = st.builds(lambda a, c: N * a + c, st.integers(0, 2), st.integers(1, 5))


def program(domain: Set, order: tuple[Affine, ...], index: Affine, extent: Affine) -> Scop:
    tensor = Tensor("A", (extent,), "float32", "output")
    statement = Statement("S", domain, order, Assign(Access("A", (index,)), Const(0.0)))
    return Scop("p", ("N",), Set.parse("N >= 1", params=["N"]), (tensor,), (statement,))


def instances(domain: Set) -> list[tuple[int, int, int]]:
    return [(n, i, j) for n in range(1, LARGEST) for i, j in domain.points({"N": n})]


@settings(max_examples=250)
@given(domains(), subscripts(), extents)
def test_cells_out_of_bounds(domain: Set, index: Affine, extent: Affine) -> None:
    expected = None
    for n, i, j in instances(domain):
        env = {"N": n, "i": i, "j": j}
        if not 0 <= index.evaluate(env) < extent.evaluate(env):
            expected = (n, i, j)
            break
    scop = program(domain, (I_, J), index, extent)
    try:
        verify_scop(scop)
        found = None
    except InputError as error:
        assert error.diagnostic.id == "out-of-bounds"
        match = re.search(
            r"at N=(-?\d+), S\[i=(-?\d+), j=(-?\d+)\] it touches A\[(-?\d+)\] of shape \[(\d+)\]", str(error)
        )
        assert match is not None
        numbers = tuple(map(int, match.groups()))
        found = (numbers[0], numbers[1], numbers[2])
        env = dict(zip(("N", "i", "j"), found, strict=True))
        assert numbers[3:] == (index.evaluate(env), extent.evaluate(env))
    if expected is not None or found is None or found[0] < LARGEST:
        assert found == expected


@settings(max_examples=150)
@given(domains(), st.lists(subscripts(), min_size=1, max_size=2))
def test_instances_at_one_place(domain: Set, order: list[Affine]) -> None:
    expected = None
    for n in range(1, LARGEST):
        points = domain.points({"N": n})
        place = {p: tuple(e.evaluate({"N": n, "i": p[0], "j": p[1]}) for e in order) for p in points}
        pairs = [(a, b) for a, b in product(points, points) if a < b and place[a] == place[b]]
        if pairs:
            expected = (n, *pairs[0][0], *pairs[0][1])
            break
    scop = program(domain, tuple(order), affine(0), affine(1))
    try:
        verify_scop(scop)
        found = None
    except InputError as error:
        assert error.diagnostic.id == "order"
        numbers = re.findall(r"=(-?\d+)", str(error).partition(": at ")[2])
        found = tuple(map(int, numbers))
    if expected is not None or found is None or found[0] < LARGEST:
        assert found == expected


@settings(max_examples=100)
@given(
    st.sampled_from(["0 <= i", "i < N", "i <= j", "j <= i + 2", "0 <= j", "j < 2*N", "i = 3", "i + j = N"]), st.data()
)
def test_bounded_iterators(first: str, data: st.DataObject) -> None:
    more = data.draw(
        st.lists(st.sampled_from(["0 <= i", "i <= j", "j <= N", "j >= 0", "i < j", "i >= j - 3"]), max_size=4)
    )
    domain = Set.parse(f"[i, j] : {' and '.join([first, *more])}", name="S", params=["N"])
    inside = domain.fix({"N": 3})
    box = inside.constrain([Constraint(v * s + 40) for v in (I_, J) for s in (1, -1)])
    reaches = any(not box.constrain([Constraint(affine(d) * s - 35)]).is_empty() for d in ("i", "j") for s in (1, -1))
    scop = program(domain, (I_, J), affine(0), affine(1))
    try:
        verify_scop(scop)
        refused = False
    except InputError as error:
        assert error.diagnostic.id == "unbounded"
        refused = True
    assert refused == reaches
