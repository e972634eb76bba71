"""The SCoP file `*.scop.yaml`: text -> Scop (INTERFACE.md, section 1).

Safe loading only, and nothing in the file is ever executed: bodies and subscripts are parsed with `ast`.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from polyopt.errors import InputError, Location
from polyopt.frontend._affine import parse_affine
from polyopt.frontend._assignments import find_access, parse_assignment
from polyopt.frontend._document import Entry, Scalar, parse_document
from polyopt.frontend._guarded_reads import keep_inside
from polyopt.frontend._names import Names
from polyopt.frontend._set_text import context_set, read_context, read_domain
from polyopt.ir import Access, Assign, OpaqueCall, Origin, Scop, Statement, Tensor, check_name, verify_scop
from polyopt.sets import Affine, Set

__all__ = ["read_file", "read_scop"]

PROGRAM_KEYS = ("scop", "params", "context", "reassociate", "tensors", "statements")
TENSOR_KEYS = ("shape", "dtype", "role", "init")
STATEMENT_KEYS = ("name", "domain", "order", "body", "call")
CALL_KEYS = ("may_read", "may_write")


@dataclass(slots=True)
class _Places:
    """Where the parts of one program stand; looked up only for messages."""

    entries: dict[tuple[str, str], Entry] = field(default_factory=dict)
    bodies: dict[str, tuple[Scalar, ast.stmt, Names]] = field(default_factory=dict)

    def __call__(self, name: str, part: Access | str) -> Location | None:
        if isinstance(part, str):
            entry = self.entries.get((name, part))
            return entry.where if entry else None
        if name not in self.bodies:
            return None
        scalar, tree, names = self.bodies[name]
        node = find_access(tree, part, names)
        return scalar.locate(node) if node else scalar.where


def read_scop(source: str | Path) -> Scop:
    """Read a SCoP file, or its text when `source` is a string of more than one line or one that begins with `{`.

    Raises InputError, with file, line and caret, on anything that the file format does not list and on every program
    that `verify_scop` refuses.
    """
    if isinstance(source, str) and ("\n" in source or source.lstrip().startswith("{")):
        return _program(parse_document(source, "<text>", "the program"))
    return read_file(Path(source))


def read_file(path: Path, function: str | None = None) -> Scop:
    """Read the SCoP file at `path`; a `function` inside of it cannot be named."""
    if function is not None:
        raise InputError(f"{path} holds one program, but {function!r} is asked for", help=f"name just {path}")
    return _program(parse_document(_file_text(path), str(path), "the program"))


def _file_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError as error:
        raise InputError(f"there is no file {path}", id="no-file", help="check the path") from error
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read {path}: {error}", id="no-file", help="a SCoP file is UTF-8 text") from error


def _program(root: Entry) -> Scop:
    keys = root.mapping(PROGRAM_KEYS, required=("scop", "tensors", "statements"))
    places = _Places()
    params = _names(keys["params"], "param") if "params" in keys else ()
    tensors = tuple(_tensor(name, e, params, places) for name, e in keys["tensors"].mapping().items())
    statements: list[Statement] = []
    for entry in keys["statements"].sequence():
        statements.append(_statement(entry, params, tensors, {s.name for s in statements}, places))
    context = _context(keys.get("context"), params, places)
    scop = Scop(
        name=keys["scop"].scalar().text,
        params=params,
        context=context,
        tensors=tensors,
        statements=tuple(_inside(s, context, {t.name: t for t in tensors}) for s in statements),
        reassociate=keys["reassociate"].truth() if "reassociate" in keys else False,
    )
    verify_scop(scop, places)
    return scop


def _inside(s: Statement, context: Set, tensors: Mapping[str, Tensor]) -> Statement:
    return s if s.is_opaque else replace(s, body=keep_inside(s.assign, s.domain, context, tensors))


def _names(entry: Entry, what: str) -> tuple[str, ...]:
    names: list[str] = []
    for item in entry.sequence():
        name = item.scalar().text
        check_name(name, what, item.where)
        if name in names:
            raise item.error(f"{what} {name} stands twice", id="duplicate", help="leave one out")
        names.append(name)
    return tuple(names)


def _context(entry: Entry | None, params: tuple[str, ...], places: _Places) -> Set:
    if entry is None:
        return context_set("", params)
    places.entries["", "context"] = entry
    return read_context(entry.scalar(), params)


def _tensor(name: str, entry: Entry, params: tuple[str, ...], places: _Places) -> Tensor:
    check_name(name, "tensor", entry.where)
    keys = entry.renamed(f"tensor {name}").mapping(TENSOR_KEYS, required=("shape", "dtype", "role"))
    places.entries |= {(name, key): e for key, e in keys.items()}
    return Tensor(
        name=name,
        shape=tuple(_extent(e, params) for e in keys["shape"].sequence()),
        dtype=keys["dtype"].scalar().text,
        role=keys["role"].scalar().text,
        init=keys["init"].scalar().text if "init" in keys else None,
    )


def _extent(entry: Entry, params: tuple[str, ...]) -> Affine:
    scalar = entry.scalar()
    return parse_affine(scalar.expression("size"), Names((), params, {}, scalar.locate))


def _statement(
    entry: Entry, params: tuple[str, ...], tensors: tuple[Tensor, ...], taken: set[str], places: _Places
) -> Statement:
    entry = entry.renamed(f"statement {entry.peek('name')}") if entry.peek("name") else entry
    keys = entry.mapping(STATEMENT_KEYS, required=("name", "domain", "order"))
    name = keys["name"].scalar().text
    check_name(name, "statement", keys["name"].where)
    if name in taken:
        raise keys["name"].error(f"two statements are called {name}", id="duplicate", help="rename one of them")
    body = _body_entry(entry, name, keys)
    places.entries |= {(name, "domain"): keys["domain"], (name, "order"): keys["order"], (name, "body"): body}
    domain = read_domain(keys["domain"].scalar(), name, params)
    return Statement(
        name=name,
        domain=domain,
        order=_order(keys["order"], domain.dims, params),
        body=_call(body) if "call" in keys else _assign(body.scalar(), name, domain.dims, params, tensors, places),
        origin=Origin(where=body.where),
    )


def _body_entry(entry: Entry, name: str, keys: Mapping[str, Entry]) -> Entry:
    found = [keys[k] for k in ("body", "call") if k in keys]
    if len(found) == 1:
        return found[0]
    have = "both a body and a call" if found else "neither a body nor a call"
    raise entry.error(f"statement {name} has {have}", id="body", help='write either body: "A[i] = ..." or call: {...}')


def _order(entry: Entry, iterators: tuple[str, ...], params: tuple[str, ...]) -> tuple[Affine, ...]:
    scalar = entry.scalar()
    node = scalar.expression("order")
    if not isinstance(node, ast.List):
        raise entry.error(f"the order {scalar.text!r} is no vector", id="order", help='write it in brackets: "[t, i]"')
    names = Names(iterators, params, {}, scalar.locate)
    return tuple(parse_affine(e, names) for e in node.elts)


def _assign(
    scalar: Scalar,
    statement: str,
    iterators: tuple[str, ...],
    params: tuple[str, ...],
    tensors: tuple[Tensor, ...],
    places: _Places,
) -> Assign:
    found = scalar.statements("body")
    if len(found) != 1:
        raise InputError(
            f"statement {statement}: the body holds {len(found)} statements",
            id="body",
            help="write one assignment; give each its own entry",
            where=scalar.locate(found[1]) if found else scalar.where,
        )
    truths = frozenset(t.name for t in tensors if t.dtype == "bool")
    names = Names(iterators, params, {t.name: len(t.shape) for t in tensors}, scalar.locate, truths=truths)
    places.bodies[statement] = (scalar, found[0], names)
    try:
        return parse_assignment(found[0], names)
    except RecursionError as error:
        raise InputError(
            f"statement {statement}: the body is nested too deeply", help="split it", where=scalar.where
        ) from error


def _call(entry: Entry) -> OpaqueCall:
    keys = entry.mapping(CALL_KEYS)
    read, write = (_names(keys[k], "tensor") if k in keys else () for k in CALL_KEYS)
    return OpaqueCall(may_read=read, may_write=write)
