"""Limits of tile sizes: read, used, exact, refused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from polyopt.bench import SUITES
from polyopt.errors import InputError, TileSizeError
from polyopt.ir.mapping import kernels
from polyopt.passes import parse_pipeline, pipeline_text
from polyopt.pipeline import Compiled, Map, compile, default_pipeline, find_pass
from polyopt.tiling import parse_limits
from polyopt.verify import compare_exact

WORKLOADS = {w.name: w for w in SUITES["main"]}
SIZES = {
    "matmul": {"M": 13, "N": 9, "K": 17},
    "conv2d": {"B": 1, "C": 3, "D": 2, "H": 3, "W": 4},
    "softmax": {"M": 9, "N": 15},
    "prefix-sum": {"M": 3, "N": 9},
}


def limited(name: str, *words: str) -> Compiled:
    passes = tuple(replace(p, tiles=words) if isinstance(p, Map) else p for p in default_pipeline())
    return compile(WORKLOADS[name].scop(), at=SIZES[name], passes=passes)


def dims(compiled: Compiled) -> dict[str, int]:
    """`statement.dimension` -> tile."""
    found = kernels(compiled.mapping.nodes)
    return {f"{k.statement.name}.{d.name}": d.tile for k in found for d in k.dims}


@pytest.mark.parametrize("limit", [1, 7, 1000])
@pytest.mark.parametrize("name", SIZES)
def test_no_tile_is_larger_and_the_result_is_exact(name: str, limit: int) -> None:
    free = dims(limited(name))
    words = [f"{n}:{limit}" for n in free]
    compiled = limited(name, *words)
    assert set(dims(compiled)) == set(free)
    assert all(tile <= limit for tile in dims(compiled).values())
    assert compare_exact(WORKLOADS[name].scop(), compiled, SIZES[name], 0).is_within


def test_a_limit_without_a_statement_holds_for_all() -> None:
    tiles = dims(limited("softmax", "i:6", "S1.i:4"))
    assert {n: t for n, t in tiles.items() if n.endswith(".i")} == {
        n: 4 if n == "S1.i" else 6 for n in tiles if n.endswith(".i")
    }


def test_a_limit_of_blocks() -> None:
    passes = parse_pipeline("map{tiles=j_b:512}", find_pass)
    assert passes == (Map(tiles=("j_b:512",)),)
    whole = compile(WORKLOADS["matmul"].scop(), at={"M": 2048, "N": 4096, "K": 2048})
    blocks = [b.step for k in kernels(whole.mapping.nodes) for b in k.loops if b.var.endswith("_b")]
    assert blocks
    assert max(blocks) > 128
    name = next(b.dim for k in kernels(whole.mapping.nodes) for b in k.loops if b.var.endswith("_b"))
    less = tuple(replace(p, tiles=(f"{name}_b:128",)) if isinstance(p, Map) else p for p in default_pipeline())
    made = compile(WORKLOADS["matmul"].scop(), at={"M": 2048, "N": 4096, "K": 2048}, passes=less)
    assert all(b.step <= 128 for k in kernels(made.mapping.nodes) for b in k.loops if b.var == f"{name}_b")


def test_the_text_of_a_pipeline_keeps_the_limits() -> None:
    passes = (Map(tiles=("i:128", "S1.k:64")),)
    assert pipeline_text(passes) == "map{tiles=i:128,S1.k:64}"
    assert parse_pipeline(pipeline_text(passes), find_pass) == passes


def test_limits_that_name_the_statement_come_first() -> None:
    limits = parse_limits(["S1.i:8", "i:16", "k:4"])
    assert limits.of("S1") == {"i": 8, "k": 4}
    assert limits.of("S2") == {"i": 16, "k": 4}


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("i", "cannot read the tile size 'i'"),
        (":4", "cannot read the tile size ':4'"),
        ("S.:4", "cannot read the tile size 'S.:4'"),
        ("i:0", "is '0', expected 1 or more"),
        ("i:-3", "is '-3', expected 1 or more"),
        ("i:x", "is 'x', expected 1 or more"),
        ("i:", "is '', expected 1 or more"),
    ],
)
def test_what_is_no_limit_is_refused(word: str, message: str) -> None:
    with pytest.raises(TileSizeError, match=message):
        parse_limits([word])


def test_a_limit_given_twice_is_refused() -> None:
    with pytest.raises(TileSizeError, match="'i' is given twice: i:3 and i:4"):
        parse_limits(["i:3", "i:4"])


def test_an_unknown_dimension_is_refused() -> None:
    with pytest.raises(InputError, match=r"no kernel has a dimension 'S9.i'; did you mean 'S5.i'"):
        limited("softmax", "S9.i:4")
    with pytest.raises(InputError, match="no kernel has a dimension 'q'"):
        limited("softmax", "q:4")
