"""Entry points: listed without being imported, loaded on use, duplicates and failures named."""

from __future__ import annotations

from importlib.metadata import EntryPoint
from types import SimpleNamespace

import pytest

import polyopt.registry as registry
from polyopt.errors import PluginError
from polyopt.registry import Registry

GROUP = "polyopt.tests"


def installed(monkeypatch: pytest.MonkeyPatch, *points: tuple[str, str, str]) -> None:
    """Pretend that distributions brought (name, value, distribution)."""
    made = []
    for name, value, distribution in points:
        point = EntryPoint(name, value, GROUP)
        vars(point)["dist"] = SimpleNamespace(name=distribution)
        made.append(point)
    monkeypatch.setattr(registry, "entry_points", lambda group: [p for p in made if p.group == group])


def test_builtins_are_listed_sorted_and_loaded_on_use() -> None:
    parts = Registry(GROUP, {"b": "math:sqrt", "a": "no_such_module:x"})
    assert parts.names() == ("a", "b")
    assert parts.load("b")(9.0) == 3.0  # type: ignore[operator]
    assert parts.distribution("b") == "polyopt"


def test_an_installed_part_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    installed(monkeypatch, ("cube", "math:pow", "cubes"))
    parts = Registry(GROUP, {"b": "math:sqrt"})
    assert parts.names() == ("b", "cube")
    assert parts.distribution("cube") == "cubes"


def test_an_unknown_name_shows_the_nearest() -> None:
    with pytest.raises(PluginError) as caught:
        Registry(GROUP, {"isl": "math:sqrt"}).load("isi")
    assert str(caught.value) == (
        "error[unknown-plugin]: nothing called 'isi' in polyopt.tests; did you mean 'isl'?\nhelp: known: isl"
    )


def test_a_failing_load_names_the_distribution(monkeypatch: pytest.MonkeyPatch) -> None:
    installed(monkeypatch, ("cube", "no_such_module:f", "cubes"))
    with pytest.raises(PluginError) as caught:
        Registry(GROUP).load("cube")
    assert str(caught.value) == (
        "error[plugin]: 'cube' of polyopt.tests, from the distribution cubes, does not load: "
        "ModuleNotFoundError: No module named 'no_such_module'\n"
        "help: repair or uninstall cubes; its entry point is 'no_such_module:f'"
    )


@pytest.mark.parametrize("builtins", [{}, {"cube": "math:cbrt"}])
def test_a_duplicate_names_both_distributions(monkeypatch: pytest.MonkeyPatch, builtins: dict[str, str]) -> None:
    points = [("cube", "math:pow", "cubes")] + ([] if builtins else [("cube", "math:sqrt", "squares")])
    installed(monkeypatch, *points)
    with pytest.raises(PluginError, match=r"'cube' of polyopt\.tests is defined twice: by .* and by .*") as caught:
        Registry(GROUP, builtins).names()
    assert "cubes" in str(caught.value)
    assert ("polyopt (math:cbrt)" if builtins else "squares") in str(caught.value)


def test_polyopts_own_part_may_stand_in_both_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    installed(monkeypatch, ("b", "math:sqrt", "polyopt"))
    assert Registry(GROUP, {"b": "math:sqrt"}).names() == ("b",)
