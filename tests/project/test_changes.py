"""Change fragments have the names and texts that a release is made from."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.collect_changes import MARK, format_release, read_fragments
from tools.link_tree import ROOT


def test_this_repository() -> None:
    assert read_fragments(ROOT / "changes") is not None
    assert (ROOT / "CHANGELOG.md").read_text("utf-8").count(MARK) == 1


def test_release(tmp_path: Path) -> None:
    for name, text in (("b.added.md", "B.\n"), ("a.fixed.md", "A,\nlong.\n"), ("c.added.md", "C.\n")):
        (tmp_path / name).write_text(text, "utf-8")
    release = format_release("1.0", "2030-01-02", read_fragments(tmp_path))
    assert release == "## 1.0 (2030-01-02)\n\n### Added\n\n- B.\n- C.\n\n### Fixed\n\n- A,\n  long.\n"


BAD = [("a.md", "A."), ("a.better.md", "A."), ("a.added.txt", "A."), ("a.added.md", "")]


@pytest.mark.parametrize(("name", "text"), BAD)
def test_bad_fragment(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text, "utf-8")
    with pytest.raises(ValueError, match=r"expected a text named TOPIC\.KIND\.md"):
        read_fragments(tmp_path)
