"""The command line (line 10): `polyopt run | check | compile | explain | bench | targets`."""

from polyopt.cli._main import invoke, main

__all__ = ["invoke", "main"]
