"""Changes of a whole program that a command line may ask for."""

from __future__ import annotations

from dataclasses import replace

from polyopt.errors import InputError
from polyopt.ir import Scop, dtype

__all__ = ["with_dtype", "with_reassociation"]


def with_dtype(scop: Scop, name: str) -> Scop:
    """Every floating tensor in element type `name`.  Raises InputError when that is no floating type."""
    if not dtype(name).is_float:
        raise InputError(
            f"{name} is no floating element type",
            help="only floating tensors change, and only to another floating element type",
            id="dtype",
        )
    tensors = (replace(t, dtype=name) if t.element.is_float else t for t in scop.tensors)
    return replace(scop, tensors=tuple(tensors))


def with_reassociation(scop: Scop) -> Scop:
    """The same program with the axiom that float reductions may be reordered and accumulated wider."""
    return replace(scop, reassociate=True)
