"""The text form of a pipeline, printed and parsed back: `deps,schedule{algorithm=isl},tile{sizes=32,32},program`.

pipeline := pass ("," pass)*
pass     := name ["{" option ("," option)* "}"]
option   := key "=" [value ("," value)*]      no value or several make a tuple
value    := a word of letters, digits and . _ : / + - @, or a JSON string in double quotes
"""

from __future__ import annotations

import dataclasses
import json
import re
import types
import typing
from collections.abc import Callable, Iterable

from polyopt.errors import InputError, nearest
from polyopt.passes._protocol import Pass

__all__ = ["parse_pass", "parse_pipeline", "pipeline_text"]

Lookup = Callable[[str], Callable[..., Pass]]
"""Pass name -> its dataclass; raises a PolyoptError for an unknown name."""

_TOKEN = re.compile(r'\s*(?:("(?:[^"\\]|\\.)*")|([\w.:/+@-]+)|([{},=]))')
_HELP = "write passes like 'deps,schedule{algorithm=isl},program'"
_WORDS = {"true": True, "false": False}


def parse_pipeline(text: str, lookup: Lookup) -> tuple[Pass, ...]:
    """The passes named in `text`.

    Raises InputError with the place on a syntax error, an unknown option (with the nearest known one) or a wrong value.
    """
    tokens = _tokens(text)
    passes: list[Pass] = []
    position = 0
    while position < len(tokens):
        step, position = _pass(tokens, position, text, lookup)
        passes.append(step)
        if position < len(tokens):
            position = _expect(tokens, position, ",", text)
            if position == len(tokens):
                raise _error(text, "a pass name is missing after the last comma")
    return tuple(passes)


def parse_pass(text: str, lookup: Lookup) -> Pass:
    """Exactly one pass."""
    found = parse_pipeline(text, lookup)
    if len(found) != 1:
        raise _error(text, f"expected one pass, found {len(found)}")
    return found[0]


def pipeline_text(passes: Iterable[Pass]) -> str:
    """The text that `parse_pipeline` reads back to equal passes; options at their default are left out."""
    return ",".join(_pass_text(p) for p in passes)


def _pass_text(step: Pass) -> str:
    options = []
    for field in _fields(type(step), step.name):
        value = getattr(step, field.name)
        if value != _default(field):
            values = value if isinstance(value, tuple) else (value,)
            options.append(f"{field.name}={','.join(_value_text(v) for v in values)}")
    return step.name + (f"{{{','.join(options)}}}" if options else "")


def _fields(kind: object, name: str) -> tuple[dataclasses.Field[typing.Any], ...]:
    if not (isinstance(kind, type) and dataclasses.is_dataclass(kind)):
        usage = "make it a frozen dataclass: its fields are its options"
        raise InputError(f"pass {name!r} is not a dataclass", help=usage)
    return dataclasses.fields(kind)


def _default(field: dataclasses.Field[typing.Any]) -> object:
    if field.default_factory is not dataclasses.MISSING:
        made: object = field.default_factory()
        return made
    return field.default


def _value_text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    text = str(value)
    plain = _TOKEN.fullmatch(text)
    is_word = isinstance(value, str) and plain is not None and plain.group(2) == text
    return text if not isinstance(value, str) or is_word else json.dumps(text)


def _tokens(text: str) -> list[str]:
    tokens: list[str] = []
    position = 0
    while text[position:].strip():
        found = _TOKEN.match(text, position)
        if not found:
            raise _error(text, f"cannot read {text[position:].strip()[:20]!r}")
        tokens.append(found.group(found.lastindex or 0))
        position = found.end()
    return tokens


def _pass(tokens: list[str], position: int, text: str, lookup: Lookup) -> tuple[Pass, int]:
    name = tokens[position]
    if name in "{},=" or name.startswith('"'):
        raise _error(text, f"expected a pass name, found {name!r}")
    position += 1
    options: dict[str, list[str]] = {}
    if position < len(tokens) and tokens[position] == "{":
        position = _options(tokens, position + 1, text, options)
    return _build(name, lookup(name), options), position


def _options(tokens: list[str], position: int, text: str, options: dict[str, list[str]]) -> int:
    key = ""
    while position < len(tokens) and tokens[position] != "}":
        word = tokens[position]
        if word in "{},=":
            raise _error(text, f"expected an option, found {word!r}")
        if tokens[position + 1 : position + 2] == ["="]:
            key, position = word, position + 2
            if key in options:
                raise _error(text, f"option {key!r} is given twice")
            options[key] = []
            if position >= len(tokens) or tokens[position] in "{=":
                raise _error(text, f"option {key!r} has no value")
            word = tokens[position]
        if not key:
            raise _error(text, f"expected '{word}=value'")
        if word not in "},":
            options[key].append(word)
            position += 1
        if position < len(tokens) and tokens[position] == ",":
            position += 1
    return _expect(tokens, position, "}", text)


def _expect(tokens: list[str], position: int, wanted: str, text: str) -> int:
    if position >= len(tokens) or tokens[position] != wanted:
        found = repr(tokens[position]) if position < len(tokens) else "the end"
        raise _error(text, f"expected {wanted!r}, found {found}")
    return position + 1


def _error(text: str, what: str) -> InputError:
    return InputError(f"pipeline {text!r}: {what}", help=_HELP, id="pipeline")


def _build(name: str, kind: Callable[..., Pass], options: dict[str, list[str]]) -> Pass:
    fields = _fields(kind, name)
    hints = typing.get_type_hints(kind)
    known = [f.name for f in fields]
    for key in options:
        if key not in known:
            none = "" if known else "; it has no options"
            raise InputError(f"pass {name} has no option {key!r}{nearest(key, known)}{none}", id="pipeline")
    missing = [f.name for f in fields if f.name not in options and _default(f) is dataclasses.MISSING]
    if missing:
        usage = f"write {name}{{{missing[0]}=...}}"
        raise InputError(f"pass {name} needs the option {missing[0]!r}", help=usage, id="pipeline")
    values = {key: _convert(name, key, raw, hints[key]) for key, raw in options.items()}
    return kind(**values)


def _convert(name: str, key: str, raw: list[str], hint: object) -> object:
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        (hint,) = (a for a in args if a is not type(None))
        return _convert(name, key, raw, hint)
    if origin is tuple:
        return tuple(_scalar(name, key, word, args[0]) for word in raw)
    if len(raw) != 1:
        found = ", ".join(raw) or "none"
        raise InputError(
            f"option {key!r} of pass {name} takes one value, found {found}",
            help="give it once, without commas",
            id="pipeline",
        )
    return _scalar(name, key, raw[0], hint)


def _scalar(name: str, key: str, word: str, hint: object) -> object:
    text = str(json.loads(word)) if word.startswith('"') else word
    if hint is str:
        return text
    if hint is bool and text in _WORDS:
        return _WORDS[text]
    try:
        if hint is int:
            return int(text)
        if hint is float:
            return float(text)
    except ValueError:
        pass
    kind = {bool: "true or false", int: "an integer", float: "a number"}.get(typing.cast(type, hint), str(hint))
    raise InputError(f"option {key!r} of pass {name} is {word!r}, expected {kind}", id="pipeline")
