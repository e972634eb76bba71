"""Schedulers: always legal, never stuck, the rung and the reason told."""

from __future__ import annotations

from dataclasses import replace
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from polyopt.errors import InputError, LegalityError, PluginError
from polyopt.ir import Scop
from polyopt.pipeline import compile as compile_scop
from polyopt.schedule import SCHEDULERS, ScheduleResult, _schedulers, check, compute_schedule
from tests.case_files import CASES, read_case
from tests.unit.schedule._scops import program

NAMES = ("feautrier", "isl", "original")


def taps(count: int) -> Scop:
    """`count` in-place taps as statements of one nest: a problem that takes isl long."""
    statements = [
        (f"S{k}", "[t, i] : 0 <= t < T and 8 <= i < N - 8", f"[t, i, {k}]", f"A[i] = A[i] + A[i + {k} - 8]")
        for k in range(count)
    ]
    return program("A[N] float32 inout", *statements, params="T, N", context="T >= 1 and N >= 17")


def test_the_built_in_names() -> None:
    assert set(NAMES) <= set(SCHEDULERS.names())


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("path", CASES, ids=lambda p: p.name.split(".")[0])
def test_every_case_gets_a_legal_order_and_a_tree_that_says_the_same(path: object, name: str) -> None:
    scop = read_case(path).scop  # type: ignore[arg-type]
    result = compute_schedule(scop, name)
    assert result.verdict.verdict == "legal"
    assert result.rung == ("original" if name == "original" else "full")
    assert result.remarks == ()
    assert [n for n, _ in result.vectors] == [s.name for s in scop.statements]
    assert len({len(v) for _, v in result.vectors}) == 1
    assert check(scop, result.mapping()).verdict == "legal"
    assert check(scop, result.tree).verdict == "legal"


def test_the_original_order_is_legal_even_with_data_dependent_subscripts() -> None:
    scop = read_case(next(p for p in CASES if "gather" in p.name)).scop
    assert compute_schedule(scop, "original").vector("S")[0].text() == "n"


def test_a_spent_budget_leads_down_the_ladder() -> None:
    scop = taps(4)
    result = compute_schedule(scop, "isl", max_operations=50)
    assert result.verdict.verdict == "legal"
    assert result.rung != "full"
    first = result.remarks[0]
    assert first.severity == "remark"
    assert "scheduling S0, S1, S2, S3 took more than 50 operations" in first.message


def test_too_large_a_problem_is_not_tried() -> None:
    statements = [(f"S{k}", "[i, j] : 0 <= i, j < N", f"[{k}, i, j]", f"A[i, j] += {k} + 1.0") for k in range(60)]
    scop = program("A[N, N] float32 inout", *statements, reassociate=False)
    result = compute_schedule(scop, "isl")
    assert result.verdict.verdict == "legal"
    assert result.rung == "serial"
    assert "240 unknown coefficients are more than 200" in result.remarks[0].message


def test_components_are_scheduled_alone_when_the_whole_is_too_much() -> None:
    statements = [
        (f"S{k}", "[i, j] : 1 <= i, j < N", f"[{k}, i, j]", f"A{k}[i, j] = A{k}[i - 1, j] + A{k}[i, j - 1]")
        for k in range(55)
    ]
    tensors = "; ".join(f"A{k}[N, N] float32 inout" for k in range(55))
    result = compute_schedule(program(tensors, *statements), "isl")
    assert (result.verdict.verdict, result.rung) == ("legal", "components")
    assert "each component is scheduled by itself" in result.remarks[0].message
    assert check(program(tensors, *statements), result.tree).verdict == "legal"


def test_isl_fuses_a_producer_with_a_shifted_consumer() -> None:
    scop = read_case(next(p for p in CASES if "overlapped" in p.name)).scop
    result = compute_schedule(scop, "isl")
    assert [v.text() for v in result.vector("g")] == ["i + 1", "1"]


def test_the_same_answer_every_time() -> None:
    scop = taps(3)
    assert compute_schedule(scop) == compute_schedule(scop)


def test_a_program_without_statements() -> None:
    scop = program("A[N] float32 inout", ("S", "[i] : 0 <= i < N", "[i]", "A[i] = 1.0"))
    empty = type(scop)(scop.name, scop.params, scop.context, scop.tensors, ())
    for name in NAMES:
        result = compute_schedule(empty, name)
        assert isinstance(result, ScheduleResult)
        assert (result.vectors, result.verdict.verdict) == ((), "legal")


def test_an_unknown_scheduler() -> None:
    with pytest.raises(PluginError, match="did you mean 'isl'"):
        compute_schedule(taps(1), "is")


# -- plug-ins ---------------------------------------------------------------------------------------------------------
def backwards(scop: Scop, *, max_operations: int | None = None) -> ScheduleResult:
    """A scheduler that turns everything round and calls that legal."""
    del max_operations
    result = compute_schedule(scop, "original")
    return replace(result, vectors=tuple((n, tuple(-e for e in v)) for n, v in result.vectors))


def install(monkeypatch: pytest.MonkeyPatch, target: str) -> None:
    point = EntryPoint("guest", f"{__name__}:{target}", "polyopt.schedulers")
    monkeypatch.setattr("polyopt.registry.entry_points", lambda group: [point])


def test_a_plug_in_is_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, "backwards")
    with pytest.raises(LegalityError) as caught:
        compute_schedule(taps(2), "guest")
    assert "the scheduler 'guest' gives an illegal order: flow dependence" in str(caught.value)
    independent = program("A[N] float32 output", ("S", "[i] : 0 <= i < N", "[i]", "A[i] = 1.0"))
    assert compute_schedule(independent, "guest").vector("S")[0].text() == "-i"


def test_a_plug_in_that_is_no_scheduler(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, "NAMES")
    with pytest.raises(PluginError, match="cannot be called: it is a tuple"):
        compute_schedule(taps(1), "guest")
    install(monkeypatch, "taps_of")
    with pytest.raises(PluginError, match="gives a str, not a ScheduleResult"):
        compute_schedule(taps(1), "guest")


def taps_of(scop: Scop, *, max_operations: int | None = None) -> str:
    """Takes what a scheduler takes and gives something else."""
    return f"{scop.name} {max_operations}"


def test_what_isl_neither_ends_nor_counts_is_ended_and_falls_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """isl's integer programs of this one never end, and count no operations (found by a random program)."""
    monkeypatch.setattr(_schedulers, "SCHEDULING_CPU_S", 1)
    scop = program(
        "A[N, N] float32 inout; O[N, N] float32 inout",
        (
            "S",
            "[c1, c2] : 1 - N <= c1 <= 0 and 1 - N <= c2 <= c1",
            "[0, c1, c2]",
            "O[-c2, -c1] = max(O[-c2, -c1], A[(-2*c1) % 3, -c2 if c2 > -2 else 1])",
        ),
        (
            "R",
            "[c1, i] : 0 <= i < N and 2*i < c1 < N + i",
            "[1, c1, i]",
            "O[i//2, max(c1 - i - 3, 0)] += O[c1 - i, i if i < 2 else 1]",
        ),
        params="N",
        context="N = 7",
        reassociate=True,
    )
    result = compute_schedule(scop, "isl")
    assert result.rung != "full"
    assert "took more than 1 s of processor time" in result.remarks[0].message
    assert result.verdict.verdict == "legal"


def test_a_user_s_own_order_is_judged_and_taken(tmp_path: Path) -> None:
    scop = program(
        "A[2, N] float32 inout",
        (
            "S",
            "[t, i] : 0 <= t < N and 1 <= i < N - 1",
            "[t, i]",
            "A[(t + 1) % 2, i] = A[t % 2, i - 1] + A[t % 2, i + 1]",
        ),
    )
    given = compute_schedule(scop, "{ S[t, i] -> [t, t + i] }")
    assert given.rung == "given"
    assert [str(e) for e in given.vector("S")] == ["t", "i + t"]
    path = tmp_path / "tree.yaml"
    path.write_text(compute_schedule(scop, "isl").tree)
    assert check(scop, compute_schedule(scop, f"@{path}").mapping())
    with pytest.raises(LegalityError, match="the given order is illegal: output dependence"):
        compute_schedule(scop, "{ S[t, i] -> [-t, i] }")
    with pytest.raises(InputError):
        compute_schedule(scop, "@nowhere.yaml")
    compiled = compile_scop(scop, at={"N": 9}, passes=f"reschedule{{algorithm=@{path}}},fix-sizes,deps,schedule")
    assert compiled.schedule is not None


def test_an_illegal_order_of_isl_s_would_not_get_through(monkeypatch: pytest.MonkeyPatch) -> None:
    scop = program("A[N + 1] float32 inout", ("S", "[i] : 0 <= i < N", "[i]", "A[i + 1] = A[i]"))
    sound = compute_schedule(scop, "original").tree
    backwards = sound.replace("S[i] -> [(i)", "S[i] -> [(-i)")
    assert backwards != sound
    monkeypatch.setattr(_schedulers, "compute_tree", lambda *_args, **_options: backwards)
    found = compute_schedule(scop, "isl")
    assert (found.rung, found.verdict.verdict) == ("original", "legal")
    assert "the order that was found is illegal" in found.remarks[-1].message
