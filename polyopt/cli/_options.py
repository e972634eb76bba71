"""Options that several commands share, and how their texts are read."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from polyopt.errors import InputError

if TYPE_CHECKING:
    from polyopt.ir import Scop

__all__ = [
    "at_option",
    "dtype_option",
    "json_option",
    "load_source",
    "output_path",
    "parse_sizes",
    "passes_option",
    "reassociate_option",
    "source_argument",
    "target_option",
    "verify_each_option",
]

F = TypeVar("F", bound=Callable[..., object])

source_argument = click.argument("source")
target_option = click.option("--target", default="trn2", show_default=True, metavar="NAME", help="Machine.")
at_option = click.option("--at", default="", metavar="N=512,M=6", help="Sizes of the parameters.")
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object on stdout.")
dtype_option = click.option("--dtype", metavar="NAME", help="Change every floating tensor to this element type.")
reassociate_option = click.option(
    "--reassociate", is_flag=True, help="Grant the axiom that float reductions may be reordered, for this call."
)
passes_option = click.option("--passes", metavar="TEXT", help="Pipeline text instead of the default pipeline.")
verify_each_option = click.option("--verify-each", is_flag=True, help="Run the verifiers after every pass.")


def parse_sizes(text: str) -> dict[str, int]:
    """`N=7,M=6` as a mapping.  Raises InputError on anything else."""
    sizes: dict[str, int] = {}
    for part in filter(None, (p.strip() for p in text.split(","))):
        name, equals, value = (x.strip() for x in part.partition("="))
        if not name.isidentifier() or not equals:
            raise InputError(f"cannot read {part!r} in --at {text!r}", help="write sizes like --at N=7,M=6", id="at")
        if name in sizes:
            raise InputError(f"--at gives {name} twice", help="give every size once", id="at")
        try:
            sizes[name] = int(value)
        except ValueError:
            raise InputError(
                f"--at {name}={value}: {value!r} is not an integer",
                help="write whole numbers, like --at N=7,M=6",
                id="at",
            ) from None
    return sizes


def load_source(source: str, *, dtype: str | None = None, reassociate: bool = False) -> Scop:
    """Read a program as INTERFACE's SOURCE, with the changes that the command line asks for."""
    from polyopt.frontend import load
    from polyopt.pipeline import with_dtype, with_reassociation

    scop = load(source)
    scop = with_dtype(scop, dtype) if dtype else scop
    return with_reassociation(scop) if reassociate else scop


def output_path(context: click.Context, parameter: click.Parameter, value: str | None) -> Path | None:
    """A file to write, refused before any long work when its folder does not exist."""
    if value is None:
        return None
    path = Path(value)
    if path.is_dir() or not path.parent.is_dir():
        what = "is a folder" if path.is_dir() else f"lies in {path.parent}, which is no folder"
        usage = f"give {parameter.opts[-1]} the name of a file"
        raise InputError(f"cannot write {value}: it {what}", help=usage, id="file")
    return path


def common(*decorators: Callable[[F], F]) -> Callable[[F], F]:
    """Several decorators as one, the first outermost."""
    return lambda f: functools.reduce(lambda inner, d: d(inner), reversed(decorators), f)
