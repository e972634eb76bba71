"""Unique names for sites, buffers and loop variables of one program."""

from __future__ import annotations

__all__ = ["Names"]


class Names:
    """Hands out `base`, `base_2`, `base_3`, ... in order of asking."""

    def __init__(self) -> None:
        self.used: dict[str, int] = {}

    def new(self, base: str) -> str:
        self.used[base] = self.used.get(base, 0) + 1
        count = self.used[base]
        if count == 1:
            return base
        name = f"{base}_{count}"
        return self.new(base) if name in self.used else self._take(name)

    def _take(self, name: str) -> str:
        self.used[name] = 1
        return name
