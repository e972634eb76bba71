"""The group of commands, and what every exception means for the exit status."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence

import click

from polyopt import __version__
from polyopt.cli._bench import bench
from polyopt.cli._certificate import verify_certificate
from polyopt.cli._check import check
from polyopt.cli._compile import compile_command
from polyopt.cli._explain import explain_command
from polyopt.cli._fuzz import fuzz
from polyopt.cli._run import run
from polyopt.cli._targets import targets
from polyopt.errors import BudgetError, PolyoptError

__all__ = ["cli", "invoke", "main"]

INTERNAL_ERROR = 4
INTERRUPTED = 130


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="polyopt", message="%(prog)s %(version)s")
def cli() -> None:
    """A polyhedral optimizer for accelerators with software-managed scratchpads, proved and simulated.

    Exit status: 0 done and the answer is yes; 1 refused, illegal or wrong; 2 bad usage or bad input; 3 unknown or out
    of budget; 4 a bug in polyopt.
    """


for command in (run, check, compile_command, explain_command, bench, targets, verify_certificate, fuzz):
    cli.add_command(command)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command and exit."""
    sys.exit(invoke(list(sys.argv[1:] if arguments is None else arguments)))


def invoke(arguments: list[str]) -> int:
    """Run one command and return its exit status; diagnostics go to stderr."""
    try:
        status = cli.main(arguments, prog_name="polyopt", standalone_mode=False)
        sys.stdout.flush()
        return status if isinstance(status, int) else 0
    except PolyoptError as error:
        print(error.diagnostic, file=sys.stderr)
        return error.exit_status
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    except MemoryError:
        spent = BudgetError("not enough memory", help="choose smaller sizes, or --timing-only", id="memory")
        print(spent.diagnostic, file=sys.stderr)
        return spent.exit_status
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        return report_bug(error)


def report_bug(error: Exception) -> int:
    """Everything that is not a PolyoptError is a bug of polyopt, and is called one."""
    traceback.print_exception(error)
    print(
        f"error[internal]: internal error: {type(error).__name__}: {error}\n"
        "help: this is a bug in polyopt: please report the lines above together with the command and its input",
        file=sys.stderr,
    )
    return INTERNAL_ERROR
