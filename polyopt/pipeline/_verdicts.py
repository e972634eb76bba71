"""Verdicts of one run: what the judge proved, what the simulator and the comparison tested."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

from polyopt.errors import ProgramError
from polyopt.report import PROPERTIES
from polyopt.verify import SAMPLES, Comparison, PropertyVerdict

if TYPE_CHECKING:
    from polyopt.schedule import Verdict
    from polyopt.simulator import SimResult

__all__ = ["PROPERTY_OF", "is_refuted", "legality_verdict", "run_verdicts"]

RUNTIME = ("race_free", "deadlock_free", "in_bounds", "initialised", "capacity")
"""What the simulator watches."""

PROPERTY_OF: Mapping[str, str] = MappingProxyType(
    {
        "race": "race_free",
        "deadlock": "deadlock_free",
        "out-of-bounds": "in_bounds",
        "uninitialised": "initialised",
        "capacity": "capacity",
        "bank": "capacity",
    }
)
"""What the simulator refuses -> the property that it refutes; anything else is a program that no run should see."""


SURELY_WRONG = 16.0
"""Times a sampled bound beyond which a value counts as wrong; up to there nothing is known."""


def legality_verdict(judged: Verdict, substituted: Sequence[str] = ()) -> PropertyVerdict:
    """The judge's answer as an entry of the report.  substituted: temporaries that vanished before scheduling."""
    after = f" (judged after substituting {', '.join(substituted)})" if substituted else ""
    if judged.verdict == "legal":
        return PropertyVerdict(judged.level, judged.reason + after, axioms=judged.axioms)
    witness = judged.witness.to_json() if judged.witness else {}
    level = "refuted" if judged.verdict == "illegal" else "unknown"
    return PropertyVerdict(level, judged.reason + after, witness, judged.axioms)


def run_verdicts(
    legal: PropertyVerdict,
    result: SimResult | None,
    broken: ProgramError | None,
    comparison: Comparison | None,
) -> dict[str, PropertyVerdict]:
    """Property -> verdict, in the order of PROPERTIES.

    result: the finished run, or None when the simulator refused the program with `broken`.  comparison: None when no
    values were computed.
    """
    found = {"legal": legal, **_values(comparison, broken)}
    for name in RUNTIME:
        found[name] = _runtime(name, result, broken, has_values=comparison is not None)
    return {name: found[name] for name in PROPERTIES}


def is_refuted(verdicts: Mapping[str, PropertyVerdict]) -> bool:
    return any(v.is_refuted for v in verdicts.values())


def _runtime(name: str, result: SimResult | None, broken: ProgramError | None, *, has_values: bool) -> PropertyVerdict:
    if broken is not None:
        if PROPERTY_OF[broken.diagnostic.id] == name:
            return PropertyVerdict("refuted", broken.message)
        return PropertyVerdict("unknown", "the program was stopped before its end")
    if name == "race_free" and result is not None:
        return _races(result)
    if name in ("in_bounds", "initialised") and not has_values:
        return PropertyVerdict("unknown", "no values were computed")
    return PropertyVerdict("tested", "watched during the run")


def _races(result: SimResult) -> PropertyVerdict:
    if result.races is None:
        return PropertyVerdict("unknown", "races were not looked for")
    certain = [r for r in result.races if r.certain]
    if certain:
        return PropertyVerdict("refuted", str(certain[0]), {"race": str(certain[0])})
    if result.races:
        return PropertyVerdict("unknown", str(result.races[0]))
    return PropertyVerdict("tested", "no two conflicting accesses of the run are left unordered by waits")


def _values(comparison: Comparison | None, broken: ProgramError | None) -> dict[str, PropertyVerdict]:
    if comparison is None:
        why = "the program was stopped before its end" if broken is not None else "no values were computed"
        return dict.fromkeys(("equivalent", "rounding"), PropertyVerdict("unknown", why))
    if not comparison.is_within:
        worst = comparison.worst
        why = f"{worst['tensor']}{worst['cell']} is {worst['found']}, expected {worst['expected']} +- {worst['bound']}"
        if comparison.num_sampled:
            why += f" ({SAMPLES} sampled roundings)"
            if comparison.error_ratio <= SURELY_WRONG:
                return dict.fromkeys(("equivalent", "rounding"), PropertyVerdict("unknown", why, worst))
        return dict.fromkeys(("equivalent", "rounding"), PropertyVerdict("refuted", why, worst))
    if comparison.num_unbounded:
        why = f"the error bound of {comparison.num_unbounded} of {comparison.num_cells} cells is infinite"
        rounding = PropertyVerdict("unknown", why)
        equivalent = rounding if comparison.num_unbounded == comparison.num_cells else _tested(0, 0)
        return {"equivalent": equivalent, "rounding": rounding}
    return dict.fromkeys(("equivalent", "rounding"), _tested(comparison.num_sampled, comparison.num_cells))


def _tested(num_sampled: int, num_cells: int) -> PropertyVerdict:
    why = "the values of one run are within the bound"
    if num_sampled:
        why += f", which {SAMPLES} sampled roundings give for {num_sampled} of {num_cells} cells"
    return PropertyVerdict("tested", why)
