"""One thing to try: a program, a schedule of it, sizes; as values and as a file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import yaml

from polyopt.errors import InputError
from polyopt.frontend import read_scop, read_vector, write_scop
from polyopt.ir import Scop
from polyopt.schedule import ScheduleLike, ScheduleTree, Unordered, tree_of_vectors, tree_yaml
from polyopt.schedule import Sequence as InSequence
from polyopt.sets import Affine, affine

__all__ = ["FORMS", "Case", "read_case", "write_case"]

MAP, TREE, VECTORS = FORMS = ("map", "tree", "vectors")
"""How a schedule is given to the judge: union map text | text of a schedule tree | statement -> vector."""


@dataclass(frozen=True, slots=True)
class Case:
    """vectors: statement -> new order vector, all equally long.  parallel: entries that may carry nothing.  any_order:
    the first entry tells children of a set node apart.  sizes: for enumeration.  run_sizes: for the simulator.
    """

    scop: Scop
    vectors: Mapping[str, tuple[Affine, ...]]
    form: str
    parallel: tuple[int, ...]
    any_order: bool
    sizes: Mapping[str, int]
    run_sizes: Mapping[str, int]

    def schedule(self) -> ScheduleLike:
        """The schedule in its form."""
        if self.form == VECTORS:
            return self.vectors
        if self.form == TREE:
            return tree_yaml(self._tree())
        parts = [
            f"{s.name}[{', '.join(s.iterators)}] -> [{', '.join(e.text() for e in self.vectors[s.name])}]"
            for s in self.scop.statements
        ]
        return "{ " + "; ".join(parts) + " }"

    def _tree(self) -> ScheduleTree:
        tree = tree_of_vectors(self.scop, self.vectors)
        if self.any_order and isinstance(tree.root, InSequence):
            return replace(tree, root=Unordered(tree.root.children))
        return tree

    def meant(self) -> tuple[dict[str, tuple[Affine, ...]], tuple[int, ...]]:
        """(vectors, entries that may carry nothing) as the form means them: a tree orders equal vectors by text."""
        if self.form != TREE:
            return dict(self.vectors), self.parallel
        longer = {s.name: (*self.vectors[s.name], affine(k)) for k, s in enumerate(self.scop.statements)}
        return longer, (0,) if self.any_order and isinstance(self._tree().root, Unordered) else ()


class _Dumper(yaml.SafeDumper):
    """Texts of several lines as they are."""


_Dumper.add_representer(
    str, lambda dumper, s: dumper.represent_scalar("tag:yaml.org,2002:str", s, style="|" if "\n" in s else None)
)


def write_case(case: Case, path: Path, **notes: object) -> None:
    """One self-contained YAML file; notes: what was found, for people."""
    document = {
        **notes,
        "scop": write_scop(case.scop),
        "vectors": {n: f"[{', '.join(e.python() for e in v)}]" for n, v in case.vectors.items()},
        "form": case.form,
        "parallel": list(case.parallel),
        "any_order": case.any_order,
        "sizes": dict(case.sizes),
        "run_sizes": dict(case.run_sizes),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.dump(document, Dumper=_Dumper, sort_keys=False, width=120), "utf-8")


def read_case(path: Path) -> tuple[Case, Mapping[str, object]]:
    """A case from its file, and the notes.  Raises InputError on anything that `write_case` does not write."""
    try:
        document = yaml.safe_load(path.read_text("utf-8"))
        text = str(document.pop("scop"))
        if "\n" not in text:
            raise ValueError("its scop is no program")
        scop = read_scop(text)
        sizes, run_sizes = document.pop("sizes"), document.pop("run_sizes")
        texts = document.pop("vectors")
        vectors = {s.name: read_vector(texts[s.name], s.iterators, scop.params) for s in scop.statements}
        form, any_order = document.pop("form"), bool(document.pop("any_order"))
        parallel = tuple(int(d) for d in document.pop("parallel"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError, AttributeError, KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"{path} is no case of polyopt fuzz: {type(error).__name__}: {error}",
            help="give a file that polyopt fuzz wrote",
            id="case",
        ) from error
    return Case(scop, vectors, form, parallel, any_order, sizes, run_sizes), document
