"""Pictures of the dependences that forbid something: what is in them, against plain enumeration."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import polyopt as po
from polyopt.explain import chosen_scop, draw_findings, draw_witness, explain, space_picture, written_scop
from polyopt.schedule import Witness
from tests.unit.explain._programs import HEAT, STENCIL, explained, only, suite

LOOPS = {"S": ("t", "i")}


def witness(text: str, schedule: str, at: dict[str, int] | None = None) -> Witness:
    found = po.check(po.read_scop(text), schedule, at=at).witness
    assert found is not None
    return found


def test_instances_and_dependences_of_a_stencil() -> None:
    picture = space_picture(po.read_scop(HEAT), witness(HEAT, "{ S[t, i] -> [i, t] }"), "interchange", LOOPS)
    assert picture.title == "interchange\nT = 4, N = 6"
    assert (picture.x_name, picture.y_name) == ("t", "i")
    (points,) = picture.statements
    expected = set(product(range(4), range(1, 5)))
    assert set(points.points) == expected
    steps = {(t, i, t + 1, j) for t, i in expected for j in (i - 1, i, i + 1) if (t + 1, j) in expected}
    drawn = {(*a.source, *a.sink) for a in picture.arrows if a.kind == "flow"}
    assert drawn == steps
    (violated,) = (a for a in picture.arrows if a.violated)
    assert (violated.source, violated.sink) == ((0, 2), (1, 1))
    assert violated.label == "flow on A[1, 2]: S[0, 2] -> S[1, 1]"


def test_large_sizes_are_cut_to_what_surrounds_the_pair() -> None:
    at = {"T": 4000, "N": 5000}
    found = witness(HEAT, "{ S[t, i] -> [i, t] }", at)
    picture = space_picture(po.read_scop(HEAT).at(at), found, "", LOOPS)
    assert set(picture.statements[0].points) == set(product(range(4), range(1, 5)))
    assert "T = 4000, N = 5000" in picture.title


def test_a_long_arrow_shows_both_its_ends() -> None:
    text = HEAT.replace("A[t % 2, i - 1] + A[t % 2, i] + A[t % 2, i + 1]", "A[t % 2, N - 1 - i]")
    found = witness(text, "{ S[t, i] -> [-t, i] }", {"T": 2, "N": 100})
    picture = space_picture(po.read_scop(text).at({"T": 2, "N": 100}), found, "", LOOPS)
    assert {i for _, i in picture.statements[0].points} == {1, 2, 3, 96, 97, 98}


def test_one_loop_gives_a_row_for_each_statement() -> None:
    found = only(explained(STENCIL), "fusion", "P and Q (B)").witness
    assert found is not None
    picture = space_picture(po.read_scop(STENCIL), found, "", {"P": ("i",), "Q": ("i",)})
    assert picture.y_ticks == ("P", "Q")
    assert picture.title == "N = 6"
    first, second = picture.statements
    assert set(first.points) == {(i, 0) for i in range(6)}
    assert set(second.points) == {(i, 1) for i in range(1, 4)}
    flows = {(a.source[0], a.sink[0]) for a in picture.arrows}
    assert flows == {(i + d, i) for i in range(1, 4) for d in (-1, 2)}


def test_more_loops_are_projected_and_the_title_says_so() -> None:
    scop = suite("jacobi-2d")
    found = only(explained(scop), "tiling", "band (t, i, j) of S1").witness
    assert found is not None
    picture = space_picture(scop, found, "band", {s.name: s.iterators for s in scop.statements})
    assert picture.title.endswith("projected on (t, i) of (t, i, j)")
    assert [s.label for s in picture.statements] == ["S1", "S2"]


def test_statements_without_loops(tmp_path: Path) -> None:
    text = STENCIL.replace(
        'domain: "[i] : 0 <= i < N", order: "[0, i]", body: "B[i]', 'domain: "[]", order: "[0]", body: "B[1]'
    )
    text = (
        text.replace("2.0*X[i]", "2.0")
        .replace("params: [N]", "params: [N]\ncontext: N >= 4")
        .replace("B: {shape: [N], dtype: float32, role: output}", "B: {shape: [N], dtype: float32, role: inout}")
    )
    found = witness(text, "{ P[] -> [1, 0]; Q[i] -> [0, i] }")
    draw_witness(tmp_path / "a.png", po.read_scop(text), found, "late")
    assert (tmp_path / "a.png").stat().st_size > 5000


def test_one_picture_for_each_witness(tmp_path: Path) -> None:
    compiled = po.compile(suite("jacobi-2d"))
    explanation = explain(compiled)
    files = draw_findings(explanation, written_scop(compiled), chosen_scop(compiled), tmp_path)
    assert set(files) == {f for f in explanation.findings if f.witness is not None}
    made = sorted(tmp_path.iterdir())
    assert made == sorted(set(files.values()))
    assert len(made) == len({(f.kind, f.order, f.witness) for f in files})
    assert made[0].name == "01-fusion-S0-and-S1-B-A.png"
    assert all(p.stat().st_size > 5000 for p in made)
