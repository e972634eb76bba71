"""`polyopt explain`: why each fusion, tiling, parallel loop and copy was or was not done."""

from __future__ import annotations

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

__all__ = ["explain_command"]


@click.command("explain")
@source_argument
@target_option
@at_option
@dtype_option
@reassociate_option
@passes_option
@json_option
def explain_command(
    source: str, target: str, at: str, dtype: str | None, reassociate: bool, passes: str | None, as_json: bool
) -> int:
    """Compile SOURCE and say of each fusion, band, parallel loop and copy whether it was done, and why or why not."""
    from polyopt.explain import explain, explanation_text
    from polyopt.pipeline import compile

    scop = load_source(source, dtype=dtype, reassociate=reassociate)
    compiled = compile(scop, target, parse_sizes(at), passes)
    found = explain(compiled)
    print_remarks(compiled.remarks)
    if as_json:
        print_json(found.to_json())
    else:
        print(explanation_text(found), end="")
    return 0
