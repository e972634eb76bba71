"""`polyopt run`: compile, verify, simulate, compare with the reference, report."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from polyopt.cli._options import (
    at_option,
    dtype_option,
    json_option,
    load_source,
    output_path,
    parse_sizes,
    passes_option,
    reassociate_option,
    source_argument,
    target_option,
    verify_each_option,
)
from polyopt.cli._output import print_json, print_remarks, print_rich, progress_bar, writing
from polyopt.errors import InputError

if TYPE_CHECKING:
    import numpy.typing as npt

    from polyopt.pipeline import Compiled, Outcome

__all__ = ["read_arrays", "run"]

NPZ_HELP = "write it with numpy.savez(file, A=..., B=...), without Python objects in it"


@click.command()
@source_argument
@target_option
@at_option
@dtype_option
@click.option("--seed", default=0, show_default=True, type=click.IntRange(min=0), help="Seed of the generated inputs.")
@click.option("--inputs", metavar="FILE.npz", help="Arrays to take instead of generated ones, by tensor name.")
@click.option("--timing-only", is_flag=True, help="Model time, compute no values.")
@click.option("--trace", metavar="FILE", callback=output_path, help="Write a trace (Chrome JSON) of the run.")
@click.option("--plot", metavar="FILE.png", callback=output_path, help="Draw the timeline and the roofline.")
@reassociate_option
@passes_option
@verify_each_option
@json_option
def run(
    source: str,
    target: str,
    at: str,
    dtype: str | None,
    seed: int,
    inputs: str | None,
    timing_only: bool,
    trace: Path | None,
    plot: Path | None,
    reassociate: bool,
    passes: str | None,
    verify_each: bool,
    as_json: bool,
) -> int:
    """Compile SOURCE, run it on the simulated target, compare with the reference.  Exit status 0 only if `ok`."""
    from polyopt.pipeline import compile, complete_sizes

    scop = load_source(source, dtype=dtype, reassociate=reassociate)
    arrays = read_arrays(inputs) if inputs else {}
    sizes = complete_sizes(scop, parse_sizes(at), {n: a.shape for n, a in arrays.items()})
    with progress_bar() as progress:
        progress.start(f"compiling {scop.name}")
        compiled = compile(scop, target, sizes, passes, verify_each=verify_each)
        progress.start(f"running {scop.name}")
        outcome = compiled.execute(
            sizes, inputs=arrays, seed=seed, timing_only=timing_only, keep_events=bool(trace or plot)
        )
    print_remarks(compiled.remarks)
    _write_pictures(compiled, outcome, trace, plot)
    if as_json:
        print_json(outcome.report.to_json())
    else:
        _print_tables(outcome)
    return 0 if outcome.report.ok else 1


def read_arrays(name: str) -> Mapping[str, npt.NDArray[Any]]:
    """The arrays of an .npz file; pickled objects are refused.  Raises InputError."""
    import numpy as np

    try:
        data = np.load(name, allow_pickle=False)
        if not isinstance(data, np.lib.npyio.NpzFile):
            raise InputError(f"{name} is no .npz file", help=NPZ_HELP, id="inputs")
        with data:
            found = {key: data[key] for key in data.files}
    except OSError as error:
        raise InputError(
            f"cannot read {name}: {error.strerror or error}", help="give a file that numpy.savez has written", id="file"
        ) from error
    except (ValueError, zipfile.BadZipFile, EOFError) as error:
        raise InputError(f"cannot read {name}: {error}", help=NPZ_HELP, id="inputs") from error
    for key, array in found.items():
        if array.dtype.kind not in "biufV":
            raise InputError(f"{key} in {name} holds {array.dtype}, not numbers", help=NPZ_HELP, id="inputs")
    return found


def _write_pictures(compiled: Compiled, outcome: Outcome, trace: Path | None, plot: Path | None) -> None:
    if plot is not None:
        from polyopt.report import draw_run

        with writing(plot) as temporary:
            title = f"{outcome.report.name} on {outcome.report.target}"
            draw_run(temporary, title, outcome.spans(), outcome.roofline_point(), compiled.machine)
    if trace is not None:
        with writing(trace) as temporary:
            temporary.write_text(json.dumps(outcome.trace()), "utf-8")


def _print_tables(outcome: Outcome) -> None:
    from polyopt.report import run_tables

    for table in run_tables(outcome.report):
        print_rich(table)
