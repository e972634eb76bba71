"""Fail on every import that goes up or sideways in the table of layers (docs: CONTRIBUTING.md, "Layers").

Imports are read from the syntax tree, so those inside functions, under `TYPE_CHECKING` and in `import_module("...")`
count too.  Usage: `python -m tools.check_layers [ROOT]`; exit status 0 when all is well.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tools.link_tree import MAPPED, ROOT, make_link_tree, module_name, python_files

LINES: tuple[tuple[frozenset[str], ...], ...] = (
    (frozenset({"errors"}),),
    (frozenset({"registry"}), frozenset({"sets"})),
    (frozenset({"ir"}), frozenset({"machine"})),
    (frozenset({"passes"}), frozenset({"frontend"}), frozenset({"reference"})),
    (frozenset({"schedule"}),),
    (frozenset({"hwcost"}),),
    (frozenset({"tiling"}),),
    (frozenset({"backend"}),),
    (frozenset({"simulator"}),),
    (frozenset({"verify"}), frozenset({"tune"})),
    (frozenset({"pipeline", "report", "explain", "fuzz", "bench", "plugins", "cli"}),),
)
"""A part imports the lines above its own and its own set, nothing else."""

ROOT_LINE = 2
"""The last line that `polyopt/__init__.py` may import, since it runs before every submodule."""

STRANGERS = {
    # The cost model and the simulator catch each other's mistakes; backend sees the cost model.
    "simulator": frozenset({"schedule", "hwcost", "tiling", "backend"}),
    # The validator shares nothing with the generator but the IR.
    "verify": frozenset({"hwcost", "tiling", "backend"}),
}
"""Parts that must not be imported although the table would allow it."""

ISL = frozenset({"islpy", "namedisl"})
"""Imported by `polyopt.sets` alone."""


@dataclass(frozen=True, slots=True)
class Import:
    """`target` is the dotted name after relative imports are resolved, `for_types` means under `if TYPE_CHECKING`."""

    line: int
    target: str
    for_types: bool


def read_imports(text: str, module: str, *, is_package: bool) -> list[Import]:
    """Every import in `text`; `from polyopt import x` is an import of `polyopt.x`."""
    return list(_walk(ast.parse(text), module if is_package else module.rpartition(".")[0], for_types=False))


def _walk(node: ast.AST, package: str, *, for_types: bool) -> Iterator[Import]:
    if isinstance(node, ast.Import):
        yield from (Import(node.lineno, alias.name, for_types) for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        source = _absolute("." * node.level + (node.module or ""), package)
        names = [f"{source}.{alias.name}" for alias in node.names] if source == "polyopt" else [source]
        yield from (Import(node.lineno, name, for_types) for name in names)
    elif isinstance(node, ast.Call) and _is_import_call(node.func) and node.args:
        name = node.args[0]
        if isinstance(name, ast.Constant) and isinstance(name.value, str):
            yield Import(node.lineno, _absolute(name.value, package), for_types)
    for field, value in ast.iter_fields(node):
        guarded = isinstance(node, ast.If) and field == "body" and "TYPE_CHECKING" in ast.dump(node.test)
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from _walk(child, package, for_types=for_types or guarded)


def _absolute(name: str, package: str) -> str:
    """`..e` in package `polyopt.ir` is `polyopt.e`; a name without leading dots stays as it is."""
    tail = name.lstrip(".")
    level = len(name) - len(tail)
    if not level:
        return name
    parts = package.split(".")
    return ".".join([*parts[: len(parts) - (level - 1)], *filter(None, [tail])])


def _is_import_call(function: ast.expr) -> bool:
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    return name in ("import_module", "__import__")


def part_of(module: str) -> str:
    """`schedule` for `polyopt.schedule.legality`, empty for `polyopt` itself."""
    return module.split(".")[1] if "." in module else ""


def judge(module: str, imported: Import) -> str | None:
    """What is wrong with `imported` in `module`, or None."""
    target = imported.target
    top = target.split(".")[0]
    if top in MAPPED:
        return f"imports {target}: the installed name is polyopt.{target}"
    if not module.startswith("polyopt"):
        return None
    if top in ISL and part_of(module) != "sets":
        return f"imports {top}: only polyopt.sets may"
    if top != "polyopt" or (module == "polyopt" and imported.for_types):
        return None
    return _judge_parts(part_of(module), part_of(target))


def _judge_parts(importer: str, imported: str) -> str | None:
    if importer == imported or imported in ("__version__", "__future__"):
        return None
    if not imported:
        return "imports polyopt as a whole: import the part that is needed"
    places = {part: (number, group) for number, line in enumerate(LINES) for group in line for part in group}
    for part in (importer, imported):
        if part and part not in places:
            return f"polyopt.{part} has no line in the table of layers: give it one in tools/check_layers.py"
    number, group = places[imported]
    if not importer:
        late = f"imports polyopt.{imported} (line {number}), at most line {ROOT_LINE} may be: offer it lazily"
        return late if number > ROOT_LINE else None
    if imported in STRANGERS.get(importer, ()):
        return f"imports polyopt.{imported}: the two must stay strangers"
    own_number, own_group = places[importer]
    if number < own_number or group is own_group:
        return None
    return f"polyopt.{importer} (line {own_number}) may not import polyopt.{imported} (line {number}): not above it"


def check_layers(root: Path) -> tuple[int, list[str]]:
    """Number of files read and the complaints, `file:line: text` each, in the order of the files."""
    tree = make_link_tree(root)
    files = [(file, module_name(tree, file)) for file in python_files(tree)]
    files += [(file, module_name(root, file)) for file in python_files(root / "examples")]
    complaints = []
    for file, module in files:
        for imported in read_imports(file.read_text("utf-8"), module, is_package=file.name == "__init__.py"):
            wrong = judge(module, imported)
            if wrong:
                complaints.append(f"{file.resolve().relative_to(root)}:{imported.line}: {wrong}")
    return len(files), complaints


def main(arguments: list[str]) -> int:
    root = Path(arguments[0]).resolve() if arguments else ROOT
    number, complaints = check_layers(root)
    print(*complaints, f"layers: {number} files, {len(complaints)} wrong imports", sep="\n")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
