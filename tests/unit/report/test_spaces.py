"""Pictures of iteration spaces, counted through the figure's artists."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from polyopt.errors import InputError
from polyopt.report import Arrow, PointSet, SpacePicture, draw_space, save_space

PICTURE = SpacePicture(
    title="a band",
    x_name="t",
    y_name="i",
    statements=(PointSet("S", ((0, 0), (0, 1), (1, 0), (1, 1))), PointSet("R", ((0.1, 0.1),))),
    arrows=(
        Arrow("flow", (0, 0), (1, 0)),
        Arrow("anti", (0, 1), (1, 1)),
        Arrow("flow", (0, 1), (1, 0), violated=True, label="the label"),
    ),
)


def test_points_and_arrows_are_all_there() -> None:
    axes = Figure().subplots()
    draw_space(axes, PICTURE)
    assert [np.shape(c.get_offsets()) for c in axes.collections] == [(4, 2), (1, 2)]
    assert Counter(p.get_gid() for p in axes.patches) == {"flow": 1, "anti": 1, "violated": 1}
    assert axes.patches[-1].get_gid() == "violated"
    assert (axes.get_xlabel(), axes.get_ylabel(), axes.get_title()) == ("t", "i", "a band")
    assert [t.get_text() for t in axes.texts] == ["the label"]
    legend = axes.get_legend()
    assert legend is not None
    assert [t.get_text() for t in legend.get_texts()] == ["S", "R", "flow dependence", "anti dependence", "violated"]


def test_rows_have_names() -> None:
    axes = Figure().subplots()
    draw_space(axes, SpacePicture("", "i", "", (PointSet("S", ((0, 0),)), PointSet("R", ((0, 1),))), (), ("S", "R")))
    assert [t.get_text() for t in axes.get_yticklabels()] == ["S", "R"]


@pytest.mark.parametrize(("suffix", "magic"), [("png", b"\x89PNG"), ("svg", b"<?xml")])
def test_the_same_picture_gives_the_same_bytes(tmp_path: Path, suffix: str, magic: bytes) -> None:
    for name in "ab":
        save_space(tmp_path / f"{name}.{suffix}", PICTURE)
    first, second = ((tmp_path / f"{name}.{suffix}").read_bytes() for name in "ab")
    assert first == second
    assert first.startswith(magic) and len(first) > 5000


def test_nothing_to_show(tmp_path: Path) -> None:
    save_space(tmp_path / "a.png", SpacePicture("", "i", "j", (PointSet("S", ()),), ()))
    assert (tmp_path / "a.png").stat().st_size > 1000


def test_unknown_format(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"cannot draw a picture 'a\.xyz'"):
        save_space(tmp_path / "a.xyz", PICTURE)
