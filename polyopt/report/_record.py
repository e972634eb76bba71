"""The result of one run as a value: the keys of `run --json`."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["PROPERTIES", "RunReport", "json_value"]

PROPERTIES = (
    "legal",
    "equivalent",
    "race_free",
    "deadlock_free",
    "in_bounds",
    "initialised",
    "capacity",
    "rounding",
)


@dataclass(frozen=True, slots=True)
class RunReport:
    """What one program did on one target at fixed sizes.

    ok: values within the bound (where they were computed) and no verdict refuted.
    verdicts: property of PROPERTIES -> certified, proved, tested, unknown or refuted.
    reasons: property -> why the verdict is what it is.  witnesses: property -> what refutes it.
    max_abs_error, error_bound: the largest of each over all outputs; error_ratio: the largest quotient of the two, cell
    by cell.  All three are None when no values were computed.  error_bound_kind: `rigorous`, or `sampled` where the
    rigorous bound of some cells said nothing.
    dtype: the element type whose peak `peak_fraction` refers to.  Times in microseconds or seconds as the names say.
    """

    name: str
    target: str
    params: Mapping[str, int]
    ok: bool
    verdicts: Mapping[str, str]
    reasons: Mapping[str, str]
    witnesses: Mapping[str, object]
    axioms: tuple[str, ...]
    max_abs_error: float | None
    error_bound: float | None
    error_ratio: float | None
    cycles: int
    time_us: float
    estimated_time_us: float | None
    flops: int
    dtype: str
    peak_fraction: float
    roofline_fraction: float
    hbm_bytes: int
    hbm_compulsory_bytes: int
    hbm_lower_bound_bytes: int
    scratchpad_peak_bytes: int
    engine_busy: Mapping[str, float]
    bottleneck: str
    general_engine_fraction: float
    tensor_engine_fraction: float
    seed: int
    compile_s: float
    simulate_s: float
    version: str
    error_bound_kind: str | None = None

    def to_json(self) -> dict[str, object]:
        """Every field under its name, ready for `json.dumps(..., allow_nan=False)`."""
        return {f.name: json_value(getattr(self, f.name)) for f in dataclasses.fields(self)}


def json_value(value: Any) -> Any:
    """`value` in JSON's types: mappings and sequences copied, numbers that JSON lacks as text ('inf', 'nan')."""
    if isinstance(value, Mapping):
        return {str(k): json_value(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [json_value(v) for v in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value
