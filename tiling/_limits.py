"""Upper limits of tile sizes, as a person or a tuner gives them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from polyopt.errors import InputError, TileSizeError, nearest
from polyopt.ir.mapping import MappingNode, kernels

__all__ = ["BLOCK", "NO_LIMITS", "TileLimits", "parse_limits"]

BLOCK = "_b"
"""What is added to a dimension's name for the blocks of tiles that share a copy."""

_USAGE = "write dim:size or statement.dim:size, for example i:128 or S1.k:64"


@dataclass(frozen=True, slots=True)
class TileLimits:
    """(statement or empty for every one, dimension, the largest tile) in the order given.

    `<dimension>_b` limits the blocks of tiles that share a copy, where a mapping has such.
    """

    items: tuple[tuple[str, str, int], ...] = ()

    def of(self, statement: str) -> dict[str, int]:
        """Dimension -> largest tile, for one statement; a limit that names the statement goes before one that does
        not.
        """
        general = {d: size for name, d, size in self.items if not name}
        return general | {d: size for name, d, size in self.items if name == statement}

    def check_names(self, nodes: tuple[MappingNode, ...]) -> None:
        """Raise InputError when a limit names a dimension that no kernel has (as `--emit mapping` shows them)."""
        found = [(k.statement.name, d.name) for k in kernels(nodes) for d in k.dims]
        known = {d for _, d in found} | {f"{s}.{d}" for s, d in found}
        for statement, dim, _ in self.items:
            wanted = f"{statement}.{dim}" if statement else dim
            if wanted not in known and wanted.removesuffix(BLOCK) not in known:
                raise InputError(
                    f"no kernel has a dimension {wanted!r}{nearest(wanted, known)}",
                    help=f"dimensions: {', '.join(f'{s}.{d}' for s, d in found) or 'none'}",
                    id="tile-size",
                )


NO_LIMITS = TileLimits()


def parse_limits(words: Iterable[str]) -> TileLimits:
    """Read `i:128` or `S.i:128`.  Raises TileSizeError on anything else, on sizes below 1 and on a name given twice."""
    items: list[tuple[str, str, int]] = []
    seen: dict[str, str] = {}
    for word in words:
        name, colon, size = word.rpartition(":")
        statement, _, dim = name.rpartition(".")
        if not colon or not dim:
            raise TileSizeError(f"cannot read the tile size {word!r}", help=_USAGE)
        if not size.isdecimal() or int(size) < 1:
            raise TileSizeError(f"the tile size of {name!r} is {size!r}, expected 1 or more", help=_USAGE)
        if name in seen:
            raise TileSizeError(f"the tile size of {name!r} is given twice: {seen[name]} and {word}", help=_USAGE)
        seen[name] = word
        items.append((statement, dim, int(size)))
    return TileLimits(tuple(items))
