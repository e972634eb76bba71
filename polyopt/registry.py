"""Named parts that anybody may add through entry points, loaded on use (layer 1).

polyopt's own parts stand in the same kind of table: a mapping from a name to `"module:attribute"`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint, entry_points
from types import MappingProxyType

from polyopt.errors import PluginError, nearest

__all__ = ["Registry"]

OWN = "polyopt"
"""The distribution that is named for the built-in table."""


@dataclass(frozen=True, slots=True)
class Registry:
    """The parts of one entry-point group and polyopt's own.

    `builtins` maps a name to `"module:attribute"`.  Nothing is imported before `load`.  Every method raises PluginError
    when two different parts have the same name; the message names both distributions.
    """

    group: str
    builtins: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

    def names(self) -> tuple[str, ...]:
        """Every name that `load` knows, sorted."""
        return tuple(sorted(self._table()))

    def load(self, name: str) -> object:
        """Import and return the part called `name`.

        Raises PluginError when there is none (with the nearest known name) and when importing it fails (with the
        distribution that brought it and the cause).
        """
        table = self._table()
        if name not in table:
            raise PluginError(
                f"nothing called {name!r} in {self.group}{nearest(name, table)}",
                help=f"known: {', '.join(sorted(table)) or 'none'}",
                id="unknown-plugin",
            )
        point, distribution = table[name]
        try:
            return point.load()
        except Exception as error:
            raise PluginError(
                f"{name!r} of {self.group}, from the distribution {distribution}, does not load: "
                f"{type(error).__name__}: {error}",
                help=f"repair or uninstall {distribution}; its entry point is {point.value!r}",
            ) from error

    def distribution(self, name: str) -> str:
        """The distribution that brings `name`."""
        return self._table()[name][1]

    def _table(self) -> dict[str, tuple[EntryPoint, str]]:
        own = [(EntryPoint(name, value, self.group), OWN) for name, value in self.builtins.items()]
        installed = [(point, _distribution(point)) for point in entry_points(group=self.group)]
        return _unique(self.group, [*own, *sorted(installed, key=lambda p: (p[0].name, p[1], p[0].value))])


def _distribution(point: EntryPoint) -> str:
    return point.dist.name if point.dist is not None else "an unknown distribution"


def _unique(group: str, points: Iterable[tuple[EntryPoint, str]]) -> dict[str, tuple[EntryPoint, str]]:
    table: dict[str, tuple[EntryPoint, str]] = {}
    for point, distribution in points:
        if point.name not in table:
            table[point.name] = (point, distribution)
            continue
        other, owner = table[point.name]
        if (other.value, owner) != (point.value, distribution):
            raise PluginError(
                f"{point.name!r} of {group} is defined twice: by {owner} ({other.value}) and by "
                f"{distribution} ({point.value})",
                help="uninstall one of the two distributions, or ask its author for another name",
                id="duplicate-plugin",
            )
    return table
