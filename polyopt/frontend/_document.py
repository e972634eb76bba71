"""A YAML text as nodes that know their place: every complaint names file and line and shows the part with a caret."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import yaml

from polyopt.errors import InputError, Location, nearest

__all__ = ["Document", "Entry", "Scalar", "parse_document"]

BREAK = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
"""What ends a line in YAML."""

Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True, slots=True)
class Document:
    """The lines of one file, for places."""

    file: str
    lines: tuple[str, ...]

    def at(self, line: int, column: int, width: int = 1) -> Location:
        """The place at `line` and `column`, both counted from 0."""
        text = self.lines[line] if line < len(self.lines) else ""
        return Location(self.file, line + 1, column + 1, text, max(1, min(width, max(1, len(text) - column))))

    def where(self, node: yaml.Node) -> Location:
        start, end = node.start_mark, node.end_mark
        width = end.column - start.column if end.line == start.line else sys.maxsize
        return self.at(start.line, start.column, width)


@dataclass(frozen=True, slots=True)
class Scalar:
    """The text of a scalar node; parts of it are found again in the file."""

    text: str
    node: yaml.ScalarNode
    document: Document

    @property
    def where(self) -> Location:
        return self.document.where(self.node)

    def locate(self, node: ast.AST) -> Location:
        """The place of a node of the syntax tree that `text` was parsed to."""
        line = getattr(node, "lineno", 1) - 1
        start = self._column(line, getattr(node, "col_offset", 0))
        last = (getattr(node, "end_lineno", None) or line + 1) - 1
        end = self._column(last, getattr(node, "end_col_offset", None) or 0)
        return self.part(line, start, end - start if last == line else len(self._line(line)) - start)

    def part(self, line: int, column: int, width: int = 1) -> Location:
        """The place of a part of `text`, counted from 0; the whole scalar when it was folded or escaped."""
        wanted = self._line(line)
        first = self.node.start_mark
        for k in range(first.line, min(self.node.end_mark.line + 1, len(self.document.lines))):
            found = self.document.lines[k].find(wanted, first.column if k == first.line else 0) if wanted else -1
            if found >= 0:
                return self.document.at(k, found + column, width)
        return self.where

    def _line(self, line: int) -> str:
        lines = self.text.split("\n")
        return lines[line] if line < len(lines) else ""

    def _column(self, line: int, byte: int) -> int:
        return len(self._line(line).encode()[:byte].decode(errors="ignore"))

    def expression(self, what: str) -> ast.expr:
        """The text as one Python expression, parsed and never evaluated."""
        return self._parse(what, "eval").body  # type: ignore[attr-defined,no-any-return]

    def statements(self, what: str) -> list[ast.stmt]:
        """The text as Python statements, parsed and never executed."""
        return self._parse(what, "exec").body  # type: ignore[attr-defined,no-any-return]

    def _parse(self, what: str, mode: str) -> ast.AST:
        try:
            return ast.parse(self.text, mode=mode)
        except SyntaxError as error:
            place = self.part((error.lineno or 1) - 1, max(0, (error.offset or 1) - 1))
            raise InputError(
                f"cannot read the {what} {self.text!r}: {error.msg}",
                help="write it in the syntax of Python",
                id="syntax",
                where=place,
            ) from error
        except (ValueError, RecursionError, MemoryError) as error:
            raise InputError(
                f"cannot read the {what}: {error}",
                help="write it in the syntax of Python",
                id="syntax",
                where=self.where,
            ) from error


@dataclass(frozen=True, slots=True)
class Entry:
    """A node with the words that name it in messages, for example 'shape of A'."""

    node: yaml.Node
    what: str
    document: Document

    @property
    def where(self) -> Location:
        return self.document.where(self.node)

    def mapping(self, known: Sequence[str] | None = None, required: Sequence[str] = ()) -> Mapping[str, Entry]:
        """The entries of a mapping.

        Raises InputError on a key that stands twice, one that is not in `known`, and a missing one of `required`.
        """
        if not isinstance(self.node, yaml.MappingNode):
            raise self.error(f"{self.what}: expected 'key: value' pairs, found {_kind(self.node)}")
        found: dict[str, Entry] = {}
        for key, value in self.node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise InputError(
                    f"{self.what}: a key must be a word",
                    help="write keys as plain words",
                    where=self.document.where(key),
                )
            self._check_key(key, found, known)
            what = f"{key.value} of {self.what}" if known else f"{self.what} {key.value}"
            found[key.value] = Entry(value, what, self.document)
        for name in required:
            if name not in found:
                raise self.error(f"{self.what} has no key {name!r}", id="missing-key", help=f"add '{name}: ...'")
        return found

    def _check_key(self, key: yaml.ScalarNode, found: Mapping[str, Entry], known: Sequence[str] | None) -> None:
        where = self.document.where(key)
        if known is not None and key.value not in known:
            message = f"unknown key {key.value!r} in {self.what}{nearest(key.value, known)}"
            raise InputError(message, id="unknown-key", help=f"keys here: {', '.join(known)}", where=where)
        if key.value in found:
            raise InputError(
                f"key {key.value!r} stands twice in {self.what}", help="keep one of them", id="duplicate", where=where
            )

    def renamed(self, what: str) -> Entry:
        return Entry(self.node, what, self.document)

    def peek(self, key: str) -> str:
        """The text at `key` of a mapping, for messages; empty when there is none."""
        pairs = self.node.value if isinstance(self.node, yaml.MappingNode) else []
        return next((str(v.value) for k, v in pairs if k.value == key and isinstance(v, yaml.ScalarNode)), "")

    def sequence(self) -> tuple[Entry, ...]:
        """The items of a sequence."""
        if not isinstance(self.node, yaml.SequenceNode):
            raise self.error(f"{self.what}: expected a list, found {_kind(self.node)}", help="write [a, b]")
        return tuple(Entry(n, f"item {k} of {self.what}", self.document) for k, n in enumerate(self.node.value, 1))

    def scalar(self) -> Scalar:
        """The text of a scalar, whatever YAML would take it for; not empty."""
        if not isinstance(self.node, yaml.ScalarNode):
            raise self.error(f"{self.what}: expected one text, found {_kind(self.node)}", help='quote it: "..."')
        text = self.node.value.strip()
        if not text:
            raise self.error(f"{self.what} is empty")
        return Scalar(text, self.node, self.document)

    def truth(self) -> bool:
        """A YAML truth value."""
        if self.node.tag != "tag:yaml.org,2002:bool":
            raise self.error(f"{self.what}: expected true or false, found {_kind(self.node)}")
        return str(self.node.value).lower() in ("true", "yes", "on")

    def error(self, message: str, *, id: str = "", help: str = "") -> InputError:
        return InputError(message, id=id, help=help, where=self.where)


def parse_document(text: str, file: str, what: str) -> Entry:
    """The root node of one YAML document.  Raises InputError on malformed YAML."""
    document = Document(file, tuple(BREAK.split(text)))
    try:
        root = yaml.compose(text, Loader=Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = document.at(mark.line, mark.column) if mark else Location(file, 1)
        problem = " ".join(p for p in (error.context, error.problem) if p)
        raise InputError(f"malformed YAML: {problem}", id="yaml", help=_yaml_help(problem), where=where) from error
    except (yaml.YAMLError, RecursionError) as error:
        raise InputError(
            f"malformed YAML: {error}",
            help="mend the YAML at this line; quote texts that hold : or #",
            id="yaml",
            where=Location(file, 1),
        ) from error
    if root is None:
        raise InputError("the file is empty", id="yaml", help="begin with 'scop: NAME'", where=Location(file, 1))
    return Entry(root, what, document)


def _yaml_help(problem: str) -> str:
    return "write one program to a file" if "document" in problem else "quote texts that hold any of : [ ] { } , #"


def _kind(node: yaml.Node) -> str:
    if isinstance(node, yaml.MappingNode):
        return "'key: value' pairs"
    if isinstance(node, yaml.SequenceNode):
        return "a list"
    return repr(node.value) if node.value else "nothing"
