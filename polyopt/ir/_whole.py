"""Sizes as users give them."""

from __future__ import annotations

from numbers import Integral

from polyopt.errors import InputError

__all__ = ["LARGEST_SIZE", "whole_size"]

LARGEST_SIZE = 2**31
"""Products of a few sizes must stay far below 64 bits."""


def whole_size(name: str, value: object) -> int:
    """`value` as a size.  Raises InputError unless it is a whole number below LARGEST_SIZE.

    The program's context says which of them it is for: 0 and more unless it bounds the size otherwise.
    """
    if isinstance(value, bool) or not isinstance(value, Integral) or not abs(int(value)) < LARGEST_SIZE:
        raise InputError(
            f"size {name} = {value!r}: a whole number below 2**31 is expected",
            help=f"write {name}=64 with --at, {{{name!r}: 64}} in Python",
            id="size",
        )
    return int(value)
