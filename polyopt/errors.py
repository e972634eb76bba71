"""Every exception of polyopt and the diagnostic record (layer 0).

A message says what was found, what was expected and what to do next.  Exit statuses belong to the class:
`InputError` and below it 2, a refused program 1, a spent budget 3, `InternalError` 4.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass

__all__ = [
    "BudgetError",
    "CapacityError",
    "Diagnostic",
    "InputError",
    "InternalError",
    "LegalityError",
    "Location",
    "MachineFileError",
    "MissingExtraError",
    "NotAffineError",
    "PluginError",
    "PolyoptError",
    "ProgramError",
    "TileSizeError",
    "UnsupportedError",
    "nearest",
    "require_type",
]


@dataclass(frozen=True, slots=True)
class Location:
    """A place in a user's text: `line` and `column` count from 1; `text` is the whole line."""

    file: str
    line: int
    column: int = 1
    text: str = ""
    width: int = 1

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"

    def caret(self) -> str:
        """The source line with a caret underneath, or an empty string when the line is not known."""
        if not self.text:
            return ""
        pad = "".join("\t" if c == "\t" else " " for c in self.text[: self.column - 1])
        return f"    {self.text}\n    {pad}{'^' * max(1, self.width)}"


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One remark, warning or error: `id` is stable and greppable, `message` is for people."""

    severity: str
    id: str
    message: str
    help: str = ""
    where: Location | None = None

    def __str__(self) -> str:
        head = f"{self.where}: " if self.where else ""
        parts = [f"{head}{self.severity}[{self.id}]: {self.message}"]
        if self.where and self.where.caret():
            parts.append(self.where.caret())
        if self.help:
            parts.append(f"help: {self.help}")
        return "\n".join(parts)


class PolyoptError(Exception):
    """Root of all exceptions that polyopt raises on purpose."""

    id = "error"
    exit_status = 1

    def __init__(self, message: str, *, help: str = "", where: Location | None = None, id: str = "") -> None:
        self.diagnostic = Diagnostic("error", id or type(self).id, message, help, where)
        super().__init__(str(self.diagnostic))

    @property
    def message(self) -> str:
        return self.diagnostic.message


class InputError(PolyoptError):
    """The user's file, text, size or option is wrong."""

    id = "input"
    exit_status = 2


class NotAffineError(InputError):
    """A subscript, bound or guard is not quasi-affine in iterators and parameters."""

    id = "not-affine"


class MachineFileError(InputError):
    """A machine description is malformed."""

    id = "machine-file"


class TileSizeError(InputError):
    """A tile size is not a positive integer or does not fit its band."""

    id = "tile-size"


class UnsupportedError(InputError):
    """Understood, but outside what this version takes in."""

    id = "unsupported"


class MissingExtraError(InputError):
    """An optional package is needed; the message names the extra to install."""

    id = "missing-extra"


class LegalityError(PolyoptError):
    """A transformation would violate a dependence.  verdict: the judge's, with the witness, where there is one."""

    id = "illegal"

    def __init__(
        self, message: str, *, help: str = "", where: Location | None = None, id: str = "", verdict: object = None
    ) -> None:
        super().__init__(message, help=help, where=where, id=id)
        self.verdict = verdict


class CapacityError(PolyoptError):
    """Buffers do not fit their memory; the message lists them."""

    id = "capacity"


class ProgramError(PolyoptError):
    """A generated program breaks a rule of the machine (simulator's verdict)."""

    id = "program"


class BudgetError(PolyoptError):
    """An operation budget is spent."""

    id = "budget"
    exit_status = 3


class PluginError(PolyoptError):
    """A plug-in is missing, failing or defined twice; the message names its distribution."""

    id = "plugin"
    exit_status = 2


class InternalError(PolyoptError):
    """A broken invariant: a bug in polyopt."""

    id = "internal"
    exit_status = 4


def require_type(value: object, kind: type | tuple[type, ...], what: str, *, help: str) -> None:
    """Raise InputError unless `value`, which is called `what`, is an instance of `kind`; text never is a sequence here.

    >>> require_type({"N": 3}, dict, "at", help="write at={'N': 64}")
    """
    kinds = kind if isinstance(kind, tuple) else (kind,)
    if not isinstance(value, kinds) or (isinstance(value, str) and str not in kinds):
        shown = repr(value) if value is None or isinstance(value, str | int | float) else f"a {type(value).__name__}"
        raise InputError(f"{what}: {shown} cannot be used", help=help)


def nearest(name: str, known: Iterable[str]) -> str:
    """`; did you mean 'x'?` for the closest known name, or the list of all known names.

    >>> nearest("trn3", ["trn2", "gemmini"])
    "; did you mean 'trn2'?"
    """
    names = sorted(known)
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    if close:
        return f"; did you mean {close[0]!r}?"
    return f"; known: {', '.join(names)}" if names else ""
