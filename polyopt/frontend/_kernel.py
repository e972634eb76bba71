"""`@kernel`, and the ways to find a function's text: a live function, or a file that is parsed and never imported."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import FunctionType
from typing import NoReturn, overload

from polyopt.errors import InputError, Location, UnsupportedError, nearest
from polyopt.frontend._names import show
from polyopt.frontend._python import read_function
from polyopt.ir import Scop

__all__ = ["Kernel", "from_function", "from_source", "kernel", "read_file"]

Function = Callable[..., object]


@dataclass(frozen=True, slots=True)
class Options:
    """What `@kernel(...)` may say."""

    reassociate: bool = False
    context: str = ""


@dataclass(frozen=True, slots=True)
class SourceText:
    """A Python file as lines, for places."""

    file: str
    lines: tuple[str, ...]

    def locate(self, node: ast.AST) -> Location:
        line, start = getattr(node, "lineno", 1), getattr(node, "col_offset", 0)
        text = self.lines[line - 1] if line <= len(self.lines) else ""
        column = len(text.encode()[:start].decode(errors="ignore"))
        end = len(text)
        if getattr(node, "end_lineno", None) == line:
            end = len(text.encode()[: getattr(node, "end_col_offset", 0)].decode(errors="ignore"))
        return Location(self.file, line, column + 1, text, max(1, end - column))


class Kernel:
    """A function marked by `@kernel`: its Scop, read when first asked for, and where it stands.

    It cannot be called: it is a text to be compiled, not code to be run.
    """

    def __init__(self, function: FunctionType, options: Options) -> None:
        self.function = function
        self.options = options
        self.__name__ = function.__name__
        self.__doc__ = function.__doc__
        self.__module__ = function.__module__

    @cached_property
    def scop(self) -> Scop:
        """The program.  Raises InputError where the function is not one."""
        source, node = _find_live(self.function)
        return _read(source, node, self.options)

    @cached_property
    def where(self) -> Location:
        """The place of the `def`."""
        source, node = _find_live(self.function)
        return source.locate(node)

    def __call__(self, *args: object, **kwargs: object) -> NoReturn:
        raise InputError(
            f"{self.__name__} is a kernel: it is parsed and compiled, never executed",
            id="kernel-call",
            help=f"write polyopt.compile(polyopt.from_function({self.__name__})).run(...) with the arrays by name",
        )

    def __repr__(self) -> str:
        return f"<kernel {self.__module__}.{self.__name__}>"


@overload
def kernel(function: Function) -> Kernel: ...
@overload
def kernel(*, reassociate: bool = False, context: str = "") -> Callable[[Function], Kernel]: ...
def kernel(
    function: Function | None = None, *, reassociate: bool = False, context: str = ""
) -> Kernel | Callable[[Function], Kernel]:
    """Mark a function as a kernel: `@kernel`, or `@kernel(reassociate=True, context="N >= 1")`.

    `reassociate` grants that float reductions may be reordered and accumulated in a wider type.  `context` bounds the
    sizes (isl constraints); a size that it does not bound below is at least 0.

    The function is parsed, never executed.  Arguments are annotated: `po.float32["M", "N + 1"]`, `po.Tensor["M"]`
    (float32), `po.float32` (a scalar) or `int` (a size).  The body holds `for i in range(...)` with affine bounds and a
    constant step, `if`/`elif`/`else`, and assignments `= += -= *= /= **=` to elements and to local scalars.
    `T: po.float32["M"]` declares a local tensor.  Below a condition on data an assignment keeps the old value where the
    condition fails.  Roles follow from use: never written: input; the caller's values are read: inout; else output.
    """
    options = Options(reassociate, context)
    if function is not None:
        return _kernel(function, options)
    return lambda f: _kernel(f, options)


def _kernel(function: Function, options: Options) -> Kernel:
    if not isinstance(function, FunctionType):
        raise InputError(f"{function!r} is not a plain function", help="put @kernel directly above a def")
    return Kernel(function, options)


def from_function(function: Function | Kernel) -> Scop:
    """The Scop of a kernel or of a plain function, whose text must be available."""
    if isinstance(function, Kernel):
        return function.scop
    return _kernel(function, Options()).scop


def from_source(path: str | Path, function: str) -> Scop:
    """The Scop of the function called `function` in the file at `path`, which is parsed and not imported."""
    source, tree = _parse_file(Path(path))
    found = _functions(tree)
    named = [f for f in found if f.name == function]
    if not named:
        raise InputError(
            f"{path} has no function {function}{nearest(function, [f.name for f in found])}",
            id="no-function",
            help="name a function at the top of the file",
            where=Location(source.file, 1),
        )
    return _read(source, named[-1], _decorator_options(named[-1], source))


def read_file(path: Path, function: str | None = None) -> Scop:
    """`from_source`, for `load`; the only function of a file need not be named."""
    if function is not None:
        return from_source(path, function)
    _, tree = _parse_file(path)
    names = [f.name for f in _functions(tree)]
    raise InputError(
        f"{path} is a Python file: which of its functions?",
        id="no-function",
        help=f"write {path}:FUNCTION with one of: {', '.join(names) or '(it has none)'}",
    )


def _read(source: SourceText, node: ast.FunctionDef, options: Options) -> Scop:
    return read_function(node, source.locate, reassociate=options.reassociate, context=options.context)


# -- texts ------------------------------------------------------------------------------------------------------------
def _parse_file(path: Path) -> tuple[SourceText, ast.Module]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError as error:
        raise InputError(f"there is no file {path}", id="no-file", help="check the path") from error
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read {path}: {error}", id="no-file", help="a Python file is UTF-8 text") from error
    return _parse_text(text, str(path))


def _parse_text(text: str, file: str) -> tuple[SourceText, ast.Module]:
    source = SourceText(file, tuple(re.split("\r\n|[\n\r]", text)))
    try:
        return source, ast.parse(text)
    except SyntaxError as error:
        line = error.lineno or 1
        shown = source.lines[line - 1] if line <= len(source.lines) else ""
        where = Location(file, line, max(1, error.offset or 1), shown)
        raise InputError(
            f"{file} is not Python: {error.msg}",
            help="mend the syntax: the file is parsed as a whole",
            id="syntax",
            where=where,
        ) from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise InputError(
            f"cannot read {file}: {error}", help="give a Python file that you may read", id="syntax"
        ) from error


def _find_live(function: FunctionType) -> tuple[SourceText, ast.FunctionDef]:
    try:
        lines, _ = inspect.findsource(function)
        file = inspect.getsourcefile(function) or "<unknown>"
    except (OSError, TypeError) as error:
        raise InputError(
            f"the text of {function.__name__} is not available",
            id="no-source",
            help="put the function in a file and import it, or use polyopt.frontend.from_source",
        ) from error
    source, tree = _parse_text("".join(lines), file)
    first = function.__code__.co_firstlineno
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name == function.__name__ and first in _first_lines(node):
            return source, node
    raise InputError(
        f"cannot find the def of {function.__name__} in {file}",
        id="no-source",
        help="a kernel is a plain def; reload the module when its file has changed",
    )


def _first_lines(node: ast.FunctionDef) -> tuple[int, ...]:
    return (node.lineno, *(d.lineno for d in node.decorator_list))


def _functions(tree: ast.Module) -> list[ast.FunctionDef]:
    """Functions at the top of a file, those below `if` and `try` included."""

    def below(nodes: list[ast.stmt]) -> Iterator[ast.FunctionDef]:
        for node in nodes:
            if isinstance(node, ast.FunctionDef):
                yield node
            elif isinstance(node, (ast.If, ast.Try)):
                yield from below([*node.body, *node.orelse])

    return list(below(tree.body))


# -- decorators that are read, not run --------------------------------------------------------------------------------
def _decorator_options(node: ast.FunctionDef, source: SourceText) -> Options:
    options = Options()
    for decorator in node.decorator_list:
        call = decorator if isinstance(decorator, ast.Call) else None
        base = call.func if call else decorator
        name = base.attr if isinstance(base, ast.Attribute) else base.id if isinstance(base, ast.Name) else ""
        if name != "kernel":
            raise UnsupportedError(
                f"the decorator {show(decorator)} is not known",
                help="a kernel is decorated by @kernel only",
                where=source.locate(decorator),
            )
        if call is not None:
            options = _options(call, source)
    return options


def _options(call: ast.Call, source: SourceText) -> Options:
    found: dict[str, object] = {}
    for keyword in call.keywords:
        value = keyword.value.value if isinstance(keyword.value, ast.Constant) else None
        wanted = {"reassociate": bool, "context": str}.get(keyword.arg or "")
        if wanted is None or not isinstance(value, wanted):
            raise InputError(
                f"cannot read {show(keyword)} of @kernel",
                id="kernel-option",
                help='write @kernel(reassociate=True, context="N >= 1") with literal values',
                where=source.locate(keyword.value),
            )
        found[str(keyword.arg)] = value
    if call.args:
        message = f"@kernel takes keyword arguments only: {show(call)}"
        raise InputError(
            message,
            help="write @po.kernel or @po.kernel(reassociate=True)",
            id="kernel-option",
            where=source.locate(call),
        )
    return Options(bool(found.get("reassociate", False)), str(found.get("context", "")))
