"""An explanation for people, 80 columns wide."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path

from polyopt.explain._finding import KINDS, Explanation, Finding

__all__ = ["explanation_text"]

WIDTH = 80
INDENT = " " * 7


def explanation_text(explanation: Explanation, pictures: Mapping[Finding, Path] | None = None) -> str:
    """One block per kind, a `yes` or `no` for each finding, or for several with one reason, which stands below.

    pictures: files to be named with their findings.
    """
    sizes = ", ".join(f"{n}={v}" for n, v in explanation.at)
    lines = [f"{explanation.scop} on {explanation.target}{f' at {sizes}' if sizes else ''}"]
    for kind in KINDS:
        found = explanation.of(kind)
        if found:
            lines += ["", f"{kind}: {sum(f.done for f in found)} of {len(found)} done"]
            lines += [line for same in _alike(found) for line in _lines(same, pictures or {})]
    return "\n".join(lines) + "\n"


def _alike(found: tuple[Finding, ...]) -> list[list[Finding]]:
    """Findings with one answer and one reason together, in the order of the first of each."""
    groups: dict[tuple[bool, str, str], list[Finding]] = {}
    for f in found:
        groups.setdefault((f.done, f.order, f.reason), []).append(f)
    return list(groups.values())


def _lines(same: list[Finding], pictures: Mapping[Finding, Path]) -> Iterator[str]:
    mark = "yes" if same[0].done else "no"
    for f in same:
        written = " (as written)" if f.order == "written" else ""
        for line in textwrap.wrap(f"{f.subject}{written}", WIDTH - len(INDENT), break_on_hyphens=False):
            yield f"  {mark:<3}  {line}"
            mark = ""
    for part in same[0].reason.split("; "):
        wrapped = textwrap.wrap(part, WIDTH - len(INDENT) - 2, break_on_hyphens=False)
        yield from (f"{INDENT}{'- ' if k == 0 else '  '}{line}" for k, line in enumerate(wrapped))
    if same[0] in pictures:
        yield f"{INDENT}- picture: {pictures[same[0]]}"
