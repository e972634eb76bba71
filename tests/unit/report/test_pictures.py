"""Pictures open as what they are, do not depend on the date, and say what is missing."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from polyopt.errors import InputError, MissingExtraError
from polyopt.machine import machine
from polyopt.report import (
    PROPERTIES,
    RooflinePoint,
    RunReport,
    Span,
    bench_table,
    draw_run,
    json_value,
    machine_table,
    machines_table,
    run_tables,
    save_roofline,
)

SPANS = [Span("tensor", "mm", 10.0, 30.0), Span("vector", "copy", 30.0, 35.0), Span("tensor", "mm", 30.0, 50.0)]
POINT = RooflinePoint("p", 1000, 300, 50.0, "float32")


def draw(path: Path) -> bytes:
    draw_run(path, "title", SPANS, POINT, machine("trn2"))
    return path.read_bytes()


@pytest.mark.parametrize(("suffix", "magic"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")])
def test_formats(tmp_path: Path, suffix: str, magic: bytes) -> None:
    assert draw(tmp_path / f"a.{suffix}").startswith(magic)


def test_same_bytes(tmp_path: Path) -> None:
    assert draw(tmp_path / "a.png") == draw(tmp_path / "b.png")


def test_points_without_place_are_left_out(tmp_path: Path) -> None:
    points = [POINT, RooflinePoint("empty", 0, 0, 0.0, "float32")]
    save_roofline(tmp_path / "r.png", "suite", points, machine("trn2"))
    save_roofline(tmp_path / "none.png", "suite", points[1:], machine("trn2"))
    draw_run(tmp_path / "idle.png", "nothing ran", [], points[1], machine("trn2"))
    assert len(list(tmp_path.iterdir())) == 3


def test_unknown_format(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"cannot draw a picture 'a\.xyz'"):
        draw(tmp_path / "a.xyz")
    assert not list(tmp_path.iterdir())


def test_without_matplotlib(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'polyopt\[plot\]'"):
        draw(tmp_path / "a.png")


REPORT = RunReport(
    name="p",
    target="trn2",
    params={"N": 3},
    ok=True,
    verdicts=dict.fromkeys(PROPERTIES, "tested") | {"capacity": "refuted"},
    reasons={"capacity": "sbuf: 300 of 200 bytes"},
    witnesses={},
    axioms=("reassociation",),
    max_abs_error=0.25,
    error_bound=float("inf"),
    error_ratio=0.0,
    cycles=120,
    time_us=0.05,
    estimated_time_us=None,
    flops=1000,
    dtype="float32",
    peak_fraction=0.5,
    roofline_fraction=0.25,
    hbm_bytes=300,
    hbm_compulsory_bytes=0,
    hbm_lower_bound_bytes=0,
    scratchpad_peak_bytes=4096,
    engine_busy={"tensor": 0.8, "vector": 0.1, "scalar": 0.0},
    bottleneck="tensor",
    general_engine_fraction=0.0,
    tensor_engine_fraction=1.0,
    seed=0,
    compile_s=0.1,
    simulate_s=0.2,
    version="0",
)


def text_of(*things: object) -> str:
    out = io.StringIO()
    Console(file=out, width=200).print(*things)
    return out.getvalue()


def test_tables_show_what_the_report_says() -> None:
    text = text_of(*run_tables(REPORT))
    for word in ("p on trn2 at N=3", "bound inf", "tensor 80 %, vector 10 %", "refuted", "sbuf: 300 of 200 bytes"):
        assert word in text
    text = text_of(bench_table("suite", [("p", REPORT), ("q", "error[x]: broken\nhelp: none")]))
    assert "50.00" in text
    assert "error[x]: broken" in text
    assert "help" not in text


def test_machine_tables() -> None:
    text = text_of(machines_table([machine("trn2")]), machine_table(machine("trn2")))
    assert "peaks.bfloat16" in text
    assert "inferred" in text


def test_json_has_no_numbers_that_json_lacks() -> None:
    assert REPORT.to_json()["error_bound"] == "inf"
    assert REPORT.to_json()["axioms"] == ["reassociation"]
    assert json_value({1: (float("nan"), 2, None, True)}) == {"1": ["nan", 2, None, True]}
