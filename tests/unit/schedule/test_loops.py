"""Loops from every form of schedule: vectors, union maps, trees as text and as values."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from polyopt.errors import BudgetError, InputError
from polyopt.ir import LoopProgram, Scop
from polyopt.schedule import compute_schedule, generate_loops, original_tree, transform
from polyopt.sets import Affine, Set, calls, loops, var
from polyopt.verify import validate_loops
from tests.case_files import CASES, read_case
from tests.unit.schedule._scops import program
from tests.unit.schedule.test_changing_trees import grouped, overlapped, stencil


def triangle() -> Scop:
    return program(
        "A[N, N] float32 inout; b[N] float32 output",
        ("Z", "[i] : 0 <= i < N", "[i, 0, 0]", "b[i] = 0.0"),
        ("S", "[i, j] : 0 <= j <= i < N", "[i, 1, j]", "b[i] += A[i, j]"),
    )


def tree(options: str = "", coincident: str = "[1, 0]") -> str:
    return f"""
domain: "[N] -> {{ Z[i] : 0 <= i < N; S[i, j] : 0 <= j <= i < N }}"
child:
  schedule: "[N] -> [{{ Z[i] -> [floor(i/4)]; S[i, j] -> [floor(i/4)] }}, {{ Z[i] -> [i]; S[i, j] -> [i] }}]"
  coincident: {coincident}
  options: "[N] -> {{ {options} }}"
  child:
    sequence:
    - filter: "{{ Z[i] }}"
    - filter: "{{ S[i, j] }}"
      child:
        mark: "columns"
        child:
          schedule: "[{{ S[i, j] -> [j] }}]"
"""


def kinds(made: LoopProgram) -> list[tuple[str, str]]:
    return [(f.iterator, f.kind) for f in loops(made.root)]


def test_text_of_loops() -> None:
    made = generate_loops(triangle(), "{ Z[i] -> [floor(i/4), -1, i]; S[i, j] -> [floor(i/4), i, j] }", parallel=(0,))
    assert made.text() == (
        "for c0 in range(0, ((N + 3)//4)):  # parallel\n"
        "    for c2 in range(4*c0, min(N - 1, 4*c0 + 3) + 1):\n"
        "        Z(c2)\n"
        "    for c1 in range(4*c0, min(N - 1, 4*c0 + 3) + 1):\n"
        "        for c2 in range(0, c1 + 1):\n"
        "            S(c1, c2)\n"
    )


def test_vectors_and_union_maps_give_the_same_loops() -> None:
    text = "{ Z[i] -> [i, -1]; S[i, j] -> [i + j, j] }"
    vectors: dict[str, list[Affine | int]] = {"Z": [var("i"), -1], "S": [var("i") + "j", var("j")]}
    assert generate_loops(triangle(), text) == generate_loops(triangle(), vectors)


def test_coincident_loops_of_a_text_are_parallel() -> None:
    made = generate_loops(triangle(), tree())
    assert kinds(made) == [("c0", "parallel"), ("c1", "sequential"), ("c2", "sequential")]
    assert kinds(generate_loops(triangle(), tree(coincident="[0, 1]")))[:2] == [
        ("c0", "sequential"),
        ("c1", "parallel"),
    ]
    assert validate_loops(triangle(), tree(), made).level == "proved"


def test_a_tree_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "tree.yaml").write_text(tree(), "utf-8")
    assert generate_loops(triangle(), f"@{tmp_path / 'tree.yaml'}") == generate_loops(triangle(), tree())


def test_loops_of_a_tree_are_called_as_its_members() -> None:
    scop = triangle()
    tiled = transform.parallel(scop, transform.tile(scop, original_tree(scop), "i", {"i": 4}), "i_o")
    made = generate_loops(scop, tiled)
    assert made.text() == (
        "for i_o in range(0, ((N + 3)//4)):  # parallel\n"
        "    for i in range(4*i_o, min(N - 1, 4*i_o + 3) + 1):\n"
        "        Z(i)\n"
        "        for j in range(0, i + 1):\n"
        "            S(i, j)\n"
    )
    assert validate_loops(scop, tiled, made).level == "proved"


def test_lanes_are_kept() -> None:
    scop = program("A[N] float32 inout", ("S", "[i] : 0 <= i < N", "[i]", "A[i] = 0.0"))
    made = generate_loops(scop, transform.vectorise(scop, original_tree(scop), "i", 8))
    assert kinds(made) == [("i_o", "sequential"), ("i", "vector")]


@pytest.mark.parametrize(
    ("options", "number_of_calls", "number_of_loops"),
    [
        ("", 2, 3),
        ("unroll[1]", 8, 5),
        ("separate[1]", 2, 3),
        ("atomic[0]; atomic[1]", 2, 3),
        ("isolate[[] -> [a, b]] : 0 <= 4a and 4a + 3 < N and 4a <= b <= 4a + 3; [isolate[] -> unroll[1]]", 10, 7),
    ],
)
def test_options_of_trees(options: str, number_of_calls: int, number_of_loops: int) -> None:
    made = generate_loops(triangle(), tree(options, "[0, 0]"))
    assert len(list(calls(made.root))) == number_of_calls
    assert len(list(loops(made.root))) == number_of_loops
    assert validate_loops(triangle(), tree(options), made).level == "proved"


def test_options_of_vectors() -> None:
    schedule = "{ Z[i] -> [floor(i/4), -1, i]; S[i, j] -> [floor(i/4), i, j] }"
    made = generate_loops(triangle(), schedule, options="{ [a, b, c] -> unroll[1] }")
    assert len(list(calls(made.root))) == 5
    assert validate_loops(triangle(), schedule, made).level == "proved"


def test_options_that_cannot_be_used() -> None:
    with pytest.raises(InputError, match=r"cannot read the options '\{ unroll' of the loops"):
        generate_loops(triangle(), "{ Z[i] -> [i, -1]; S[i, j] -> [i, j] }", options="{ unroll")
    with pytest.raises(InputError, match="the schedule is a tree, which has the options of its loops in itself"):
        generate_loops(triangle(), tree(), options="{ [a] -> unroll[0] }")


@pytest.mark.parametrize("text", [overlapped(), grouped()], ids=["extension", "expansion"])
def test_trees_that_change_instances(text: str) -> None:
    made = generate_loops(stencil(), text)
    verdict = validate_loops(stencil(), text, made)
    assert verdict.level == ("tested" if text == overlapped() else "proved")


def test_a_producer_that_runs_once_too_often_is_found() -> None:
    made = generate_loops(stencil(), overlapped(5))
    verdict = validate_loops(stencil(), overlapped(4), made)
    assert verdict.level == "refuted"
    assert verdict.witness["what"] in ("twice", "outside")


def test_instances_with_one_vector_run_in_any_order() -> None:
    made = generate_loops(triangle(), "{ Z[i] -> [0]; S[i, j] -> [1] }")
    assert validate_loops(triangle(), "{ Z[i] -> [0]; S[i, j] -> [1] }", made).level == "proved"


@pytest.mark.parametrize("path", CASES, ids=lambda p: p.name.split(".")[0])
def test_case_files(path: Path) -> None:
    """Legal or not, every schedule becomes loops in its order."""
    case = read_case(path)
    for c in case.checks:
        made = generate_loops(case.scop, c.schedule)
        assert validate_loops(case.scop, c.schedule, made).level == "proved", c.what
        fixed = generate_loops(case.scop, c.schedule, at=c.at)
        assert validate_loops(case.scop, c.schedule, fixed, at=c.at).level == "proved", c.what
    found = compute_schedule(case.scop)
    verdict = validate_loops(case.scop, found.tree, generate_loops(case.scop, found.tree))
    assert verdict.level in ("proved", "unknown")
    assert (verdict.level == "unknown") <= ("gather" in path.name)


def test_no_instances() -> None:
    scop = program("A[N] float32 inout", ("S", "[i] : 0 <= i < N and N < 0", "[i]", "A[i] = 0.0"))
    made = generate_loops(scop, "{ S[i] -> [i] }")
    assert made.text() == "pass\n"
    assert validate_loops(scop, "{ S[i] -> [i] }", made).level == "proved"


def test_a_scalar_statement_alone() -> None:
    scop = program("A[1] float32 inout", ("S", "[]", "[0]", "A[0] = 0.0"), params="")
    made = generate_loops(scop, "{ S[] -> [7] }")
    assert made.text() == "S()\n"
    assert validate_loops(scop, "{ S[] -> [7] }", made).level == "proved"


def test_unbounded_iterators_are_refused() -> None:
    scop = program("A[1] float32 inout", ("S", "[i] : 0 <= i < N", "[i]", "A[0] = 0.0"))
    endless = replace(scop.statements[0], domain=Set.parse("[i] : i >= 0", name="S", params=["N"]))
    scop = replace(scop, statements=(endless,))
    with pytest.raises(InputError) as caught:
        generate_loops(scop, "{ S[i] -> [-i] }")
    assert caught.value.diagnostic.id == "loops"
    assert "bound every iterator in the domain" in str(caught.value)


def test_spent_budgets_say_so() -> None:
    with pytest.raises(BudgetError) as caught:
        generate_loops(triangle(), tree(), max_operations=300)
    assert str(caught.value) == (
        "error[budget]: generating loops took more than 300 operations\n"
        "help: fix sizes, split the program, or allow more operations"
    )


def test_iterators_keep_clear_of_the_program_s_names() -> None:
    scop = program("c1[N] float32 inout", ("c0", "[c2] : 0 <= c2 < N", "[c2]", "c1[c2] = 0.0"), params="N")
    made = generate_loops(scop, "{ c0[i] -> [floor(i/4), i] }")
    assert [f.iterator for f in loops(made.root)] == ["c0_", "c1_"]


def test_unreadable_schedules_are_refused() -> None:
    with pytest.raises(InputError, match="gives no order vector to"):
        generate_loops(triangle(), "{ Z[i] -> [i]; S[i, j] -> [i, j] : i > 2 }")
