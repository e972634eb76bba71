"""`polyopt explain`: why each fusion, tiling, parallel loop and copy was or was not done."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from polyopt.cli._options import (
    at_option,
    dtype_option,
    json_option,
    load_source,
    parse_sizes,
    passes_option,
    reassociate_option,
    source_argument,
    target_option,
)
from polyopt.cli._output import print_json, print_remarks
from polyopt.errors import InputError

if TYPE_CHECKING:
    from polyopt.explain import Finding

__all__ = ["explain_command"]


def picture_folder(context: click.Context, parameter: click.Parameter, value: str | None) -> Path | None:
    """A folder for pictures, which may have to be made; refused before any long work when it cannot be one."""
    if value is None:
        return None
    path = Path(value)
    if not path.is_dir() and (path.exists() or not path.parent.is_dir()):
        what = "is a file" if path.exists() else f"lies in {path.parent}, which is no folder"
        usage = f"give {parameter.opts[-1]} the name of a folder"
        raise InputError(f"cannot write pictures into {value}: it {what}", help=usage, id="file")
    return path


@contextmanager
def writing_into(folder: Path) -> Iterator[None]:
    """Make the folder; what the system refuses while the body writes into it is an InputError."""
    try:
        folder.mkdir(exist_ok=True)
        yield
    except OSError as error:
        raise InputError(
            f"cannot write pictures into {folder}: {error.strerror}", help="choose another folder", id="file"
        ) from error


@click.command("explain")
@source_argument
@target_option
@at_option
@dtype_option
@reassociate_option
@passes_option
@click.option("--plot", metavar="DIR", callback=picture_folder, help="Draw each dependence that forbids something.")
@json_option
def explain_command(
    source: str,
    target: str,
    at: str,
    dtype: str | None,
    reassociate: bool,
    passes: str | None,
    plot: Path | None,
    as_json: bool,
) -> int:
    """Compile SOURCE and say of each fusion, band, parallel loop and copy whether it was done, and why or why not."""
    from polyopt.explain import chosen_scop, draw_findings, explain, explanation_text, written_scop
    from polyopt.pipeline import compile

    scop = load_source(source, dtype=dtype, reassociate=reassociate)
    compiled = compile(scop, target, parse_sizes(at), passes)
    found = explain(compiled)
    print_remarks(compiled.remarks)
    pictures: dict[Finding, Path] = {}
    if plot is not None:
        with writing_into(plot):
            pictures = draw_findings(found, written_scop(compiled), chosen_scop(compiled), plot)
    if as_json:
        print_json(found.to_json(pictures))
    else:
        print(explanation_text(found, pictures), end="")
    return 0
