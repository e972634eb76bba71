"""The `init` texts of tensors."""

from __future__ import annotations

import pytest

from polyopt.errors import InputError
from polyopt.ir import Initial, parse_initial


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("uniform(0, 1)", Initial("uniform", 0, 1)),
        (" uniform( -1.5 , 2e3 ) ", Initial("uniform", -1.5, 2000.0)),
        ("integers(-8, 8)", Initial("integers", -8, 8)),
        ("diagonally_dominant", Initial("diagonally_dominant")),
        ("index(T, 1)", Initial("index", tensor="T", axis=1)),
    ],
)
def test_read_and_printed(text: str, expected: Initial) -> None:
    assert parse_initial(text) == expected
    assert parse_initial(str(expected)) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("unifrom(0, 1)", "unknown init 'unifrom(0, 1)'; did you mean 'uniform'?"),
        ("uniform(0)", "init 'uniform(0)' does not read uniform(lo, hi)"),
        ("uniform(1, 0)", "init 'uniform(1, 0)' has an empty range"),
        ("integers(0, 0)", "has an empty range"),
        ("integers(0, 1.5)", "does not give two integers"),
        ("uniform(N, 1)", "does not give two numbers"),
        ("uniform(True, 2)", "does not give two numbers"),
        ("index(T, -1)", "does not name a tensor and one of its axes"),
        ("index(3, 1)", "does not name a tensor and one of its axes"),
        ("index(T, axis=1)", "cannot read init"),
        ("zeros + 1", "cannot read init"),
        ("uniform(", "cannot read init"),
    ],
)
def test_refused(text: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_initial(text)
    assert message in str(caught.value)
