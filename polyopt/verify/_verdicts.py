"""How sure a property is, and why: the record behind every entry of a report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from polyopt.errors import InternalError

__all__ = ["LEVELS", "PropertyVerdict"]

LEVELS = ("certified", "proved", "tested", "unknown", "refuted")
"""certified: a certificate was accepted by a checker that trusts neither isl nor the optimizer.  proved: isl is
trusted.  tested: held in the runs that were made.  refuted: there is a witness.  unknown: nothing of these."""


@dataclass(frozen=True, slots=True)
class PropertyVerdict:
    """`level` of LEVELS; `reason` for people; `witness`: the smallest refuting case, in JSON's types; axioms used."""

    level: str
    reason: str = ""
    witness: Mapping[str, object] = field(default_factory=dict)
    axioms: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.level not in LEVELS:
            raise InternalError(f"no verdict level {self.level!r}")

    @property
    def is_refuted(self) -> bool:
        return self.level == "refuted"
