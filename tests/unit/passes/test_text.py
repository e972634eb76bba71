"""The text form of pipelines: printed and parsed back, refused with a place."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyopt.errors import InputError, nearest
from polyopt.passes import Pass, Unit, parse_pass, parse_pipeline, pipeline_text


@dataclass(frozen=True, slots=True)
class Tile:
    sizes: tuple[int, ...] = (32,)
    names: tuple[str, ...] = field(default_factory=tuple)
    text: str = "isl"
    scale: float = 1.0
    deep: bool = False
    limit: int | None = None

    @property
    def name(self) -> str:
        return "tile"

    def run(self, unit: Unit) -> Unit:
        return unit


@dataclass(frozen=True, slots=True)
class Needy:
    count: int

    @property
    def name(self) -> str:
        return "needy"

    def run(self, unit: Unit) -> Unit:
        return unit


TABLE: dict[str, type[Tile] | type[Needy]] = {"tile": Tile, "needy": Needy}


def lookup(name: str) -> type[Tile] | type[Needy]:
    if name not in TABLE:
        raise InputError(f"unknown pass {name!r}{nearest(name, TABLE)}")
    return TABLE[name]


tiles = st.builds(
    Tile,
    sizes=st.lists(st.integers(-5, 1000), max_size=3).map(tuple),
    names=st.lists(st.text(), max_size=3).map(tuple),
    text=st.text(),
    scale=st.floats(allow_nan=False),
    deep=st.booleans(),
    limit=st.none() | st.integers(),
)


@given(st.lists(st.one_of(tiles, st.builds(Needy, st.integers()))))
def test_round_trip(passes: list[Pass]) -> None:
    text = pipeline_text(passes)
    assert list(parse_pipeline(text, lookup)) == passes
    assert pipeline_text(parse_pipeline(text, lookup)) == text


def test_readable() -> None:
    text = pipeline_text([Tile((32, 16), deep=True), Tile(), Needy(3)])
    assert text == "tile{sizes=32,16,deep=true},tile,needy{count=3}"
    assert parse_pipeline(" tile { sizes = 32 , 16 } , needy{count=3} ", lookup) == (Tile((32, 16)), Needy(3))
    assert parse_pipeline("", lookup) == ()
    assert parse_pass('tile{text="a, b"}', lookup) == Tile(text="a, b")


BAD = {
    "tile,": "a pass name is missing after the last comma",
    ",tile": "expected a pass name, found ','",
    "tile needy": "expected ',', found 'needy'",
    "tile{": "expected '}', found the end",
    "tile{sizes}": "expected 'sizes=value'",
    "tile{deep=}": "option 'deep' of pass tile takes one value, found none",
    "tile{sizes=": "option 'sizes' has no value",
    "tile{sizes=a}": "option 'sizes' of pass tile is 'a', expected an integer",
    "tile{deep=1}": "option 'deep' of pass tile is '1', expected true or false",
    "tile{deep=true,false}": "takes one value, found true, false",
    "tile{size=3}": "pass tile has no option 'size'; did you mean 'sizes'?",
    "tile{deep=true,deep=true}": "option 'deep' is given twice",
    "tile;needy": "cannot read ';needy'",
    "tiles": "unknown pass 'tiles'; did you mean 'tile'?",
    "needy": "pass needy needs the option 'count'",
    'tile{text="a}': "cannot read",
}


@pytest.mark.parametrize(("text", "message"), BAD.items())
def test_refused(text: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_pipeline(text, lookup)
    assert message in str(caught.value)


def test_not_one_pass() -> None:
    with pytest.raises(InputError, match="expected one pass, found 2"):
        parse_pass("tile,tile", lookup)
