"""Schedule trees as text: an outline for people, and isl's YAML form."""

from __future__ import annotations

from collections.abc import Iterator

from polyopt.schedule._tree import SEQUENTIAL, Band, Filter, Leaf, Mark, Member, Node, ScheduleTree, Sequence
from polyopt.sets import Set

__all__ = ["outline", "tree_yaml"]


def outline(tree: ScheduleTree) -> str:
    """One line for each node, indented by depth: loops with their iterations, filters with their statements."""
    return "\n".join(_lines(tree.root, 0)) + "\n"


def _lines(node: Node, depth: int) -> Iterator[str]:
    pad = "  " * depth
    if isinstance(node, Band):
        for k, m in enumerate(node.members):
            kind = "" if m.kind == SEQUENTIAL else f"{m.kind} "
            yield f"{'  ' * (depth + k)}{kind}loop {m.name}: {'; '.join(f'{s}: {e}' for s, e in m.exprs)}"
        yield from _lines(node.child, depth + len(node.members))
    elif isinstance(node, Mark):
        yield f"{pad}mark {node.name}"
        yield from _lines(node.child, depth + 1)
    elif not isinstance(node, Leaf):
        yield pad + ("in sequence" if isinstance(node, Sequence) else "in any order")
        for f in node.children:
            yield f"{pad}- {', '.join(f.statements)}"
            yield from _lines(f.child, depth + 2)


def tree_yaml(tree: ScheduleTree) -> str:
    """The tree in isl's YAML form, as `check --schedule @file` reads it."""
    return "\n".join([f'domain: "{_union(tree.domain)}"', *_below(tree.root, tree.domain, 0)]) + "\n"


def _below(node: Node, domain: tuple[Set, ...], depth: int) -> Iterator[str]:
    if isinstance(node, Leaf):
        return
    pad = "  " * depth
    yield f"{pad}child:"
    if isinstance(node, Band):
        yield f'{pad}  schedule: "{_params(domain)}[{", ".join(_member(m, domain) for m in node.members)}]"'
        yield f"{pad}  coincident: [{', '.join(str(int(m.kind != SEQUENTIAL)) for m in node.members)}]"
        yield from _below(node.child, domain, depth + 1)
    elif isinstance(node, Mark):
        yield f'{pad}  mark: "{node.name}"'
        yield from _below(node.child, domain, depth + 1)
    else:
        yield f"{pad}  {'sequence' if isinstance(node, Sequence) else 'set'}:"
        for f in node.children:
            yield from _filter(f, domain, depth + 1)


def _filter(f: Filter, domain: tuple[Set, ...], depth: int) -> Iterator[str]:
    pad = "  " * depth
    yield f'{pad}- filter: "{_union(f.instances)}"'
    yield from _below(f.child, domain, depth + 1)


def _params(sets: tuple[Set, ...]) -> str:
    names = list(dict.fromkeys(p for s in sets for p in s.params))
    return f"[{', '.join(names)}] -> " if names else ""


def _union(sets: tuple[Set, ...]) -> str:
    parts = [part for s in sets for part in _parts(s)]
    return f"{_params(sets)}{{ {'; '.join(parts)} }}"


def _parts(s: Set) -> Iterator[str]:
    for rows in s.basic():
        condition = " and ".join(c.text() for c in rows)
        yield f"{s.name}[{', '.join(s.dims)}]{f' : {condition}' if condition else ''}"


def _member(m: Member, domain: tuple[Set, ...]) -> str:
    dims = {s.name: s.dims for s in domain}
    parts = [f"{n}[{', '.join(dims[n])}] -> [({e.text()})]" for n, e in m.exprs]
    return f"{{ {'; '.join(parts)} }}"
