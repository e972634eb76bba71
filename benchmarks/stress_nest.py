"""The stress nest of schedulers: sums of (2r + 1)^2 taps over two loops, as statements or loops, in place or not.

`python -m benchmarks.stress_nest` prints, for each form, how long isl's and Feautrier's schedulers take, the rung of
the ladder and whether the order is legal; with `--isl` isl alone, under no limit, which may take very long.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator

from polyopt.frontend import read_scop
from polyopt.ir import Scop
from polyopt.schedule import ScheduleResult, compute_schedule

__all__ = ["FORMS", "main", "nest"]

ROW = 516
"""Cells from one row of the picture to the next."""

FORMS = tuple((form, in_place) for form in ("statements", "loops") for in_place in (False, True))
LIMIT_S = {2: 10.0, 3: 20.0}
"""Reach of the taps -> seconds within which there must be an answer."""


def nest(reach: int, form: str, *, in_place: bool) -> Scop:
    """s = 0; s += in[k + n + 516*(l + m)] for m, n from -reach to reach; out[k + 516*l] = s; for all k < K, l < L."""
    source = "out" if in_place else "picture"
    middle = (ROW + 1) * reach
    box = "0 <= k < K and 0 <= l < L"
    rows = [("I", f"[k, l] : {box}", "[l, k, 0]", "s[()] = 0.0")]
    last = 2
    if form == "loops":
        window = f"-{reach} <= m <= {reach} and -{reach} <= n <= {reach}"
        body = f"s[()] += {source}[k + n + {ROW}*(l + m) + {middle}]"
        rows.append(("S", f"[k, l, m, n] : {box} and {window}", "[l, k, 1, m, n]", body))
    else:
        taps = [(m, n) for m in range(-reach, reach + 1) for n in range(-reach, reach + 1)]
        last = len(taps) + 1
        for number, (m, n) in enumerate(taps):
            body = f"s[()] += {source}[k + {n} + {ROW}*(l + {m}) + {middle}]"
            rows.append((f"S{number}", f"[k, l] : {box}", f"[l, k, {number + 1}]", body))
    rows.append(("W", f"[k, l] : {box}", f"[l, k, {last}]", f"out[k + {ROW}*l + {middle}] = s[()]"))
    return read_scop("\n".join(_lines(rows, 2 * middle, in_place=in_place)))


def _lines(rows: list[tuple[str, str, str, str]], margin: int, *, in_place: bool) -> Iterator[str]:
    shape = f'["K + {ROW}*L + {margin}"]'
    yield from ("scop: stress", "params: [K, L]", "context: K >= 1 and L >= 1", "tensors:")
    if not in_place:
        yield f"  picture: {{shape: {shape}, dtype: float32, role: input}}"
    yield f"  out: {{shape: {shape}, dtype: float32, role: inout}}"
    yield "  s: {shape: [], dtype: float32, role: temp}"
    yield "statements:"
    for name, domain, order, body in rows:
        yield f'- {{name: {name}, domain: "{domain}", order: "{order}", body: "{body}"}}'


def main(arguments: list[str]) -> int:
    """Exit status 0 when every form has a legal order within its limit."""
    good = True
    for reach, limit_s in LIMIT_S.items():
        for form, in_place in FORMS:
            scop = nest(reach, form, in_place=in_place)
            for scheduler in ("isl", "feautrier"):
                found, took_s = _timed(scop, scheduler, unlimited="--isl" in arguments)
                good = good and bool(found.verdict) and took_s <= limit_s
                where = "in place" if in_place else "apart"
                taps = (2 * reach + 1) ** 2
                print(
                    f"{taps} taps, {form}, {where}, {scheduler}: {took_s:.2f} s (limit {limit_s:.0f}), "
                    f"rung {found.rung}, {found.verdict.verdict}"
                )
                for remark in found.remarks:
                    print(f"  {remark.message}")
    return 0 if good else 1


def _timed(scop: Scop, scheduler: str, *, unlimited: bool) -> tuple[ScheduleResult, float]:
    begin = time.perf_counter()
    found = compute_schedule(scop, scheduler, max_operations=None) if unlimited else compute_schedule(scop, scheduler)
    return found, time.perf_counter() - begin


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
