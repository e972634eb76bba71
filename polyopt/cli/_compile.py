"""`polyopt compile`: generate a program and print any level of the way to it."""

from __future__ import annotations

from pathlib import Path

import click

from polyopt.cli._options import (
    at_option,
    dtype_option,
    load_source,
    output_path,
    parse_sizes,
    passes_option,
    reassociate_option,
    source_argument,
    target_option,
    verify_each_option,
)
from polyopt.cli._output import print_remarks, write_file

__all__ = ["compile_command"]


@click.command("compile")
@source_argument
@target_option
@at_option
@click.option("--emit", default="program", show_default=True, metavar="WHAT", help="What to print.")
@click.option("-o", "--output", metavar="FILE", callback=output_path, help="Write there instead of to stdout.")
@dtype_option
@reassociate_option
@passes_option
@verify_each_option
def compile_command(
    source: str,
    target: str,
    at: str,
    emit: str,
    output: Path | None,
    dtype: str | None,
    reassociate: bool,
    passes: str | None,
    verify_each: bool,
) -> int:
    """Compile SOURCE and print WHAT: scop, deps, schedule, mapping, program, c, dot or json."""
    from polyopt.pipeline import check_emit, compile, compile_loops

    check_emit(emit)
    scop = load_source(source, dtype=dtype, reassociate=reassociate)
    if emit == "c" and passes is None:
        compiled = compile_loops(scop, target, parse_sizes(at), verify_each=verify_each)
    else:
        compiled = compile(scop, target, parse_sizes(at), passes, verify_each=verify_each)
    text = compiled.emit(emit)
    print_remarks(compiled.remarks)
    if output is None:
        print(text, end="" if text.endswith("\n") else "\n")
    else:
        write_file(output, text if text.endswith("\n") else text + "\n")
    return 0
