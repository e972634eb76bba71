"""Move the fragments in `changes/` into CHANGELOG.md as one release.

A fragment is `changes/TOPIC.KIND.md`, KIND one of `KINDS`.  Usage: `python -m tools.collect_changes VERSION DATE`.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tools.link_tree import ROOT

KINDS = ("added", "changed", "deprecated", "removed", "fixed")
MARK = "<!-- releases, newest first -->\n"


def read_fragments(folder: Path) -> dict[Path, str]:
    """Kind of each fragment, sorted by path.  Raises ValueError on a name that is no fragment's."""
    kinds = {}
    for path in sorted(folder.iterdir()):
        if path.name == "README.md":
            continue
        parts = path.name.split(".")
        if len(parts) != 3 or parts[1] not in KINDS or parts[2] != "md" or not path.read_text("utf-8").strip():
            raise ValueError(f"{path.name}: expected a text named TOPIC.KIND.md, KIND one of {', '.join(KINDS)}")
        kinds[path] = parts[1]
    return kinds


def format_release(version: str, date: str, fragments: dict[Path, str]) -> str:
    """The release's section: one list per kind, empty kinds left out."""
    lines = [f"## {version} ({date})", ""]
    for kind in KINDS:
        texts = [path.read_text("utf-8").strip() for path, own in fragments.items() if own == kind]
        if texts:
            items = ["- " + text.replace("\n", "\n  ") for text in texts]
            lines += [f"### {kind.capitalize()}", "", *items, ""]
    return "\n".join(lines)


def main(arguments: list[str]) -> int:
    if len(arguments) != 2:
        print("usage: python -m tools.collect_changes VERSION DATE", file=sys.stderr)
        return 2
    fragments = read_fragments(ROOT / "changes")
    changelog = ROOT / "CHANGELOG.md"
    version, date = arguments
    release = format_release(version, date, fragments)
    changelog.write_text(changelog.read_text("utf-8").replace(MARK, f"{MARK}\n{release}", 1), "utf-8")
    for path in fragments:
        path.unlink()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
