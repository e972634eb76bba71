"""The command line (line 10): `polyopt run | check | compile | bench | targets`, as in the reference of commands."""

from polyopt.cli._main import invoke, main

__all__ = ["invoke", "main"]
