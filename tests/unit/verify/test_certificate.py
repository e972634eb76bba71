"""Certificates: made for what is legal, refused when anything in them is changed."""

from __future__ import annotations

import ast
import copy
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from polyopt.bench import SUITES
from polyopt.schedule import compute_schedule, original_tree, transform
from polyopt.verify import certificate as checker
from polyopt.verify import certify, is_certificate_for
from polyopt.verify._certify import unjudged
from tests.case_files import CASES, read_case
from tests.unit.schedule._scops import program
from tests.unit.schedule.test_changing_trees import overlapped, stencil
from tests.unit.schedule.transform._programs import MATMUL, STENCIL

SOURCE = Path(checker.__file__)
TILED = "{ S[t, i] -> [floor(t/2), floor((t + i)/3), t, i] }"
Edit = Callable[[dict[str, Any]], None]


def accepted(text: str | bytes) -> bool:
    return bool(checker.check(text.encode() if isinstance(text, str) else text)["accepted"])


# -- the checker --------------------------------------------------------------------------------------------------
def test_the_checker_is_one_short_file_that_needs_python_alone() -> None:
    text = SOURCE.read_text("utf-8")
    assert len(text.splitlines()) <= 300
    imported = {n.name for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Import) for n in node.names}
    imported |= {str(node.module) for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ImportFrom)}
    assert {name.split(".")[0] for name in imported} <= set(sys.stdlib_module_names)


def test_the_checker_runs_by_itself(tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    path.write_text(certify(STENCIL, TILED).text)

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-I", "-S", str(SOURCE), *arguments], capture_output=True, text=True, check=False
        )

    done = run(str(path))
    assert (done.returncode, json.loads(done.stdout)["accepted"]) == (0, True)
    path.write_text(path.read_text().replace("farkas", "cut"))
    assert run(str(path)).returncode == 1
    path.write_text("[]")
    assert run(str(path)).returncode == 2


# -- what is certified ----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("path", CASES, ids=lambda p: p.name.split(".")[0])
def test_every_legal_case_is_certified_at_its_sizes_and_for_all(path: Path) -> None:
    case = read_case(path)
    for c in case.checks:
        for at in (None, dict(c.at or {}) or None):
            found = certify(case.scop, c.schedule, parallel=c.parallel, at=at)
            if found.verdict:
                assert found, found.why_not
                assert accepted(found.text)
                assert is_certificate_for(found.text, case.scop, c.schedule, parallel=c.parallel, at=at)
            else:
                assert found.text == ""
                assert f"this one is {found.verdict.verdict}" in found.why_not


@pytest.mark.parametrize("name", [w.name for w in SUITES["main"] if w.name not in ("attention", "llama-block")])
def test_the_main_workloads_are_certified_in_two_orders(name: str) -> None:
    scop = next(w for w in SUITES["main"] if w.name == name).scop()
    for order in (original_tree(scop), compute_schedule(scop).tree):
        found = certify(scop, order)
        assert found, found.why_not
        assert found.num_certified_pairs == found.num_pairs > 0


def test_trees_with_parallel_loops_and_several_pieces_are_certified() -> None:
    skewed = transform.skew(STENCIL, original_tree(STENCIL), "i", by="t")
    tiled = transform.tile(STENCIL, skewed, "t", {"t": 2, "i": 3})
    for tree in (
        transform.diamond(STENCIL, original_tree(STENCIL), "t", "i", 4),
        transform.separate(STENCIL, tiled, "t_o"),
        transform.peel(STENCIL, original_tree(STENCIL), "i", first=1, last=1),
        transform.unroll(STENCIL, original_tree(STENCIL), "i", 3),
        transform.vectorise(STENCIL, original_tree(STENCIL), "i", 4),
    ):
        found = certify(STENCIL, tree)
        assert found, found.why_not
    jammed = certify(MATMUL, transform.unroll_and_jam(MATMUL, original_tree(MATMUL), ((1,), "i"), 2))
    assert jammed, jammed.why_not


def test_the_axiom_is_named_by_the_checker() -> None:
    scop = program(
        "A[N] float32 input; s[1] float32 inout", ("S", "[i] : 0 <= i < N", "[i]", "s[0] += A[i]"), reassociate=True
    )
    found = certify(scop, "{ S[i] -> [-i] }")
    assert found
    assert found.verdict.axioms == ("reassociate(+, float32)",)
    assert checker.check(found.text.encode())["axioms"] == ["reassociate(+, float32)"]
    without = json.loads(found.text)
    without["program"]["reassociate"] = False
    assert not accepted(json.dumps(without))


def test_an_order_that_repeats_instances_has_no_certificate() -> None:
    found = certify(stencil(), overlapped())
    assert (bool(found), found.verdict.level) == (False, "proved")
    assert "runs an instance more than once" in found.why_not


def test_a_certificate_is_about_one_program_and_order() -> None:
    text = certify(STENCIL, TILED).text
    assert is_certificate_for(text, STENCIL, TILED)
    assert not is_certificate_for(text, STENCIL, "{ S[t, i] -> [t, i] }")
    assert not is_certificate_for(text, STENCIL, TILED, at={"N": 7})
    assert not is_certificate_for(text, MATMUL, original_tree(MATMUL))


# -- what is refused ------------------------------------------------------------------------------------------------
def _proof(document: dict[str, Any], kind: str) -> list[Any]:
    """The first step of a kind in any proof."""
    return next(s for steps in document["proofs"].values() for s in steps if s[0] == kind)


def _drop_proof(d: dict[str, Any]) -> None:
    del d["proofs"][next(k for k in d["proofs"] if k.startswith("pair"))]


def _drop_step(d: dict[str, Any]) -> None:
    next(steps for steps in d["proofs"].values() if len(steps) > 2).pop()


def _bigger_multiplier(d: dict[str, Any]) -> None:
    _proof(d, "farkas")[1][0][1] += 1


def _negative_multiplier(d: dict[str, Any]) -> None:
    for steps in d["proofs"].values():
        for s in steps:
            if s[0] == "farkas":
                s[1] = [[k, -m] for k, m in s[1]]


def _no_multipliers(d: dict[str, Any]) -> None:
    _proof(d, "farkas")[1].clear()


def _other_row(d: dict[str, Any]) -> None:
    for s in (s for steps in d["proofs"].values() for s in steps if s[0] == "farkas"):
        s[1][0][0] += 1


def _wrong_division(d: dict[str, Any]) -> None:
    _proof(d, "cut")[2] += 1


def _reversed_vector(d: dict[str, Any]) -> None:
    vector = d["schedule"]["orders"]["S"][0]["vector"]
    vector[0], vector[2] = vector[2], vector[0]
    vector[:] = [[-e[0], *([-c, a] for c, a in e[1:])] for e in vector]


def _constant_vector(d: dict[str, Any]) -> None:
    d["schedule"]["orders"]["S"][0]["vector"][2:] = []


def _no_pieces(d: dict[str, Any]) -> None:
    d["schedule"]["orders"]["S"] = []


def _narrow_piece(d: dict[str, Any]) -> None:
    d["schedule"]["orders"]["S"][0]["where"].append([">=", [-2, [1, "i"]]])


def _parallel_time(d: dict[str, Any]) -> None:
    d["schedule"]["parallel"] = [2]


def _other_axis(d: dict[str, Any]) -> None:
    d["schedule"]["parallel"] = [99]


def _wider_domain(d: dict[str, Any]) -> None:
    d["program"]["statements"][0]["domain"] = [[]]


def _reach_further(d: dict[str, Any]) -> None:
    reads = [a for a in d["program"]["statements"][0]["accesses"] if a["kind"] == "read"]
    reads[0]["subscripts"][1][0] += 8
    reads[-1]["subscripts"][1][0] -= 8


def _data_dependent(d: dict[str, Any]) -> None:
    d["program"]["statements"][0]["accesses"][1]["subscripts"] = [None, None]


def _one_place(d: dict[str, Any]) -> None:
    d["program"]["statements"][0]["order"] = [[0, [1, "t"]]]


def _second_statement(d: dict[str, Any]) -> None:
    extra = copy.deepcopy(d["program"]["statements"][0])
    extra["name"] = "Z"
    d["program"]["statements"].append(extra)
    d["schedule"]["orders"]["Z"] = d["schedule"]["orders"]["S"]


def _unknown_atom(d: dict[str, Any]) -> None:
    d["program"]["statements"][0]["order"][0] = [0, [1, ["max", [0], [1]]]]


def _float(d: dict[str, Any]) -> None:
    _proof(d, "farkas")[1][0][1] = 0.5


def _unknown_dtype(d: dict[str, Any]) -> None:
    d["program"]["tensors"]["A"]["dtype"] = "float7"


def _extra_proof(d: dict[str, Any]) -> None:
    d["proofs"]["pair S.9 S.9"] = [["farkas", []]]


def _claim_an_axiom(d: dict[str, Any]) -> None:
    name = next(k for k in d["proofs"] if k.startswith("pair"))
    d["proofs"][name] = [["axiom", "reassociate(+, float32)"]]


def _claim_no_axiom(d: dict[str, Any]) -> None:
    name = next(k for k in d["proofs"] if k.startswith("pair"))
    d["proofs"][name] = [["axiom", ""]]


def _skip_an_alternative(d: dict[str, Any]) -> None:
    steps = next(steps for steps in d["proofs"].values() if any(s[0] == "or" for s in steps))
    del steps[-1]


def _split_elsewhere(d: dict[str, Any]) -> None:
    for steps in d["proofs"].values():
        for k, s in enumerate(steps):
            if s[0] == "or":
                steps[k] = ["split", [["nothing", 1]], 0]


EDITS: tuple[Edit, ...] = (
    _drop_proof,
    _drop_step,
    _bigger_multiplier,
    _negative_multiplier,
    _no_multipliers,
    _other_row,
    _wrong_division,
    _reversed_vector,
    _constant_vector,
    _no_pieces,
    _narrow_piece,
    _parallel_time,
    _other_axis,
    _wider_domain,
    _reach_further,
    _data_dependent,
    _one_place,
    _second_statement,
    _unknown_atom,
    _float,
    _unknown_dtype,
    _extra_proof,
    _claim_an_axiom,
    _claim_no_axiom,
    _skip_an_alternative,
    _split_elsewhere,
)


@pytest.fixture(scope="module")
def tiled() -> str:
    found = certify(STENCIL, TILED)
    assert found
    assert '"cut"' in found.text
    return found.text


@pytest.mark.parametrize("edit", EDITS, ids=lambda e: e.__name__.strip("_"))
def test_a_changed_certificate_is_refused(tiled: str, edit: Edit) -> None:
    document = json.loads(tiled)
    edit(document)
    assert json.dumps(document) != tiled
    assert not accepted(json.dumps(document))


def test_the_textual_order_of_statements_counts() -> None:
    scop = program(
        "A[N] float32 inout; B[N] float32 inout",
        ("S", "[i] : 0 <= i < N", "[i]", "A[i] = B[i]"),
        ("T", "[i] : 0 <= i < N", "[i]", "B[i] = A[i]*2.0"),
    )
    found = certify(scop, "{ S[i] -> [i, 0]; T[i] -> [i, 1] }")
    document = json.loads(found.text)
    document["program"]["statements"].reverse()
    assert not accepted(json.dumps(document))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"[" * 100_000,
        b'{"format": "polyopt-certificate-2"}',
        b'{"format": "polyopt-certificate-1", "format": "polyopt-certificate-1"}',
        b"\xff\xfe",
        b"NaN",
    ],
)
def test_what_is_no_certificate_is_not_read(data: bytes) -> None:
    with pytest.raises((ValueError, RecursionError)):
        checker.read(data)


def test_a_certificate_without_its_parts_is_refused(tiled: str) -> None:
    whole = json.loads(tiled)
    for part in ("name", "program", "schedule", "proofs"):
        assert not accepted(json.dumps({k: v for k, v in whole.items() if k != part}))
        others: tuple[object, ...] = (None, [], {}, 0, "x", True)
        for other in others:
            assert not accepted(json.dumps({**whole, part: other})) or (part, other) == ("name", "x")


def test_huge_numbers_and_endless_work_are_refused(tiled: str) -> None:
    document = json.loads(tiled)
    _proof(document, "farkas")[1][0][1] = 10**599
    assert not accepted(json.dumps(document))
    name = next(k for k in document["proofs"] if k.startswith("pair"))
    document["proofs"][name] = [["split", [["t", 1]], 0]] * 20_000
    assert not accepted(json.dumps(document))


# -- the checker's own arithmetic -----------------------------------------------------------------------------------
X, MINUS_X = {"x": 1}, {"x": -1}


def system(*rows: dict[str, int]) -> checker.System:
    """A system about x with these rows, each at least 0."""
    document = json.loads(certify(STENCIL, TILED).text)
    made = checker.System(checker.Program(document))
    made.rows = [(row, False) for row in rows]
    return made


@pytest.mark.parametrize(
    ("rows", "steps"),
    [
        ([X, {"x": 1, "": -5}], [["farkas", [[0, -1], [1, 1]]]]),  # x >= 0 and x >= 5: no contradiction
        ([X, MINUS_X], [["farkas", [[0, 1], [1, 1]]]]),  # 0 is none either
        ([{"x": 1, "": -1}], [["farkas", [[0, 1]]]]),  # x - 1 is none
        ([{"x": 3, "": -2}, {"x": -1}], [["cut", [[0, 1]], 2], ["farkas", [[1, 1], [2, 1]]]]),
        ([{"x": 3, "": -4}, {"x": -1, "": 1}], [["cut", [[0, 1]], 3], ["farkas", [[1, 1], [2, 2]]]]),
        ([X, MINUS_X], [["split", [["x", 1]], 0], ["farkas", [[0, 1], [2, 1]]], ["farkas", [[1, 1], [2, 1]]]]),
        ([X, MINUS_X], [["split", [["x", 1]], 0], ["farkas", [[1, 1], [2, 1]]], ["farkas", [[0, 1], [2, 1]]]]),
        ([X], []),
        ([X], [["split", [["x", 1]], 3]]),
        ([X], [["or", 0]]),
    ],
)
def test_what_has_a_solution_is_not_refuted(rows: list[dict[str, int]], steps: list[Any]) -> None:
    with pytest.raises((ValueError, LookupError)):
        system(*rows).prove(steps)


@pytest.mark.parametrize(
    ("rows", "steps"),
    [
        ([X, {"x": -1, "": -1}], [["farkas", [[0, 1], [1, 1]]]]),
        ([{"x": 2, "": -1}, {"x": -2, "": 1}], [["cut", [[0, 1]], 2], ["farkas", [[1, 1], [2, 2]]]]),
    ],
)
def test_what_has_none_is_refuted(rows: list[dict[str, int]], steps: list[Any]) -> None:
    system(*rows).prove(steps)


def test_a_pair_that_only_an_axiom_excuses_must_say_so() -> None:
    scop = program("A[N] int32 input; s[1] int32 inout", ("S", "[i] : 0 <= i < N", "[i]", "s[0] += A[i]"))
    document = json.loads(certify(scop, "{ S[i] -> [-i] }").text)
    name = next(k for k in document["proofs"] if k.startswith("pair"))
    assert document["proofs"][name] == [["axiom", ""]]
    del document["proofs"][name]
    assert not accepted(json.dumps(document))


def test_what_is_illegal_in_a_set_node_or_in_one_part_of_a_domain_is_not_certified() -> None:
    two = program(
        "A[N] float32 inout; B[N] float32 inout",
        ("S", "[i] : 0 <= i < N", "[0, i]", "A[i] = B[i]"),
        ("T", "[i] : 0 <= i < N", "[1, i]", "B[i] = A[i]*2.0"),
    )
    tree = """
domain: "[N] -> { S[i] : 0 <= i < N; T[i] : 0 <= i < N }"
child:
  set:
  - filter: "[N] -> { S[i] }"
    child: { schedule: "[N] -> [{ S[i] -> [i] }]" }
  - filter: "[N] -> { T[i] }"
    child: { schedule: "[N] -> [{ T[i] -> [i] }]" }
"""
    assert certify(two, tree.replace("set:", "sequence:"))
    assert not accepted(unjudged(two, tree))
    parts = program(
        "A[20] float32 inout", ("S", "[i] : 0 <= i < 19 and (i < 3 or i > 5)", "[i]", "A[i + 1] = A[i]"), params=""
    )
    for schedule in (
        "{ S[i] -> [i] : i < 3; S[i] -> [-i] : i > 5 }",
        "{ S[i] -> [-i - 99] : i < 3; S[i] -> [i] : i > 5 }",
    ):
        assert not accepted(unjudged(parts, schedule))
