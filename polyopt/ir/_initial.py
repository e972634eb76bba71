"""How a tensor is filled before a run: the `init` texts of INTERFACE.md, read into a value."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from polyopt.errors import InputError, nearest

__all__ = ["INITIAL_KINDS", "Initial", "parse_initial"]

INITIAL_KINDS: dict[str, tuple[str, ...]] = {
    "uniform": ("lo", "hi"),
    "integers": ("lo", "hi"),
    "diagonally_dominant": (),
    "index": ("tensor", "axis"),
}
"""Kind -> names of its arguments."""


@dataclass(frozen=True, slots=True)
class Initial:
    """`uniform(lo, hi)`, `integers(lo, hi)` (hi excluded), `diagonally_dominant`, or `index(tensor, axis)`.

    `lo`, `hi` belong to the first two, `tensor` and `axis` to the last: values that subscript that axis of that tensor.
    """

    kind: str
    lo: float = 0.0
    hi: float = 0.0
    tensor: str = ""
    axis: int = 0

    def __str__(self) -> str:
        if self.kind == "index":
            return f"index({self.tensor}, {self.axis})"
        if self.kind == "diagonally_dominant":
            return self.kind
        return f"{self.kind}({_number_text(self.lo)}, {_number_text(self.hi)})"


def parse_initial(text: str) -> Initial:
    """Read an `init` text.  Raises InputError that says what was expected.

    >>> str(parse_initial("uniform(0, 1)"))
    'uniform(0, 1)'
    """
    name, arguments = _split(text)
    if name not in INITIAL_KINDS:
        raise InputError(f"unknown init {text!r}{nearest(name, INITIAL_KINDS)}", help=_all_usages(), id="init")
    wanted = INITIAL_KINDS[name]
    if len(arguments) != len(wanted):
        raise InputError(f"init {text!r} does not read {_usage(name)}", id="init", help=f"write {_usage(name)}")
    if not wanted:
        return Initial(name)
    return _index(text, *arguments) if name == "index" else _range(text, name, *arguments)


def _split(text: str) -> tuple[str, list[ast.expr]]:
    try:
        node = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise InputError(f"cannot read init {text!r}", id="init", help=_all_usages()) from error
    if isinstance(node, ast.Name):
        return node.id, []
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
        return node.func.id, node.args
    raise InputError(f"cannot read init {text!r}", id="init", help=_all_usages())


def _index(text: str, tensor: ast.expr, axis: ast.expr) -> Initial:
    number = _number(axis)
    if not isinstance(tensor, ast.Name) or not isinstance(number, int) or number < 0:
        raise InputError(
            f"init {text!r} does not name a tensor and one of its axes", id="init", help="write index(T, 0)"
        )
    return Initial("index", tensor=tensor.id, axis=number)


def _range(text: str, name: str, low: ast.expr, high: ast.expr) -> Initial:
    lo, hi = _number(low), _number(high)
    if lo is None or hi is None or (name == "integers" and not (isinstance(lo, int) and isinstance(hi, int))):
        kind = "integers" if name == "integers" else "numbers"
        raise InputError(f"init {text!r} does not give two {kind}", id="init", help=f"write {_usage(name)}")
    if lo > hi or (name == "integers" and lo == hi):
        raise InputError(f"init {text!r} has an empty range", id="init", help="the lower end comes first")
    return Initial(name, lo, hi)


def _number(node: ast.expr) -> int | float | None:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        value = _number(node.operand)
        return None if value is None else -value
    if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)) and not isinstance(node.value, bool):
        return node.value
    return None


def _number_text(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)


def _usage(name: str) -> str:
    return f"{name}({', '.join(INITIAL_KINDS[name])})" if INITIAL_KINDS[name] else name


def _all_usages() -> str:
    return f"write one of {', '.join(_usage(n) for n in INITIAL_KINDS)}"
