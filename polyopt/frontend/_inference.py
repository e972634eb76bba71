"""What follows from the use of names in a kernel: locals read too early, their element types."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from polyopt.ir import COMPARISONS, DTYPES, Access, Apply, Assign, Cast, Const, Expr, Index, Read, Uninterpreted

__all__ = ["Use", "first_reads", "infer_dtypes", "neutral"]

TRUTH = (*COMPARISONS, "and", "or", "not")
SAME_TYPE = ("+", "-", "*", "**", "min", "max", "neg", "abs", "relu", "floor")
"""Operators whose result has the type of their arguments; of the others it is a float."""

WEAK_INT, WEAK_FLOAT = "int", "float"
"""Types of literals and iterators: they give way to any element type of their kind."""


@dataclass(frozen=True, slots=True)
class Use:
    """One statement in textual order: what it reads, then what it writes."""

    reads: tuple[Access, ...]
    writes: str


def first_reads(tensor: str, uses: Sequence[Use]) -> int | None:
    """The position of the first use when it reads `tensor` before anything wrote it, else None."""
    for k, use in enumerate(uses):
        if any(a.tensor == tensor for a in use.reads):
            return k
        if use.writes == tensor:
            return None
    return None


def infer_dtypes(
    unknown: Sequence[str], known: Mapping[str, str], assigned: Sequence[Assign], default_float: str
) -> dict[str, str]:
    """Element types of the locals in `unknown`: wide enough for everything that is assigned to them.

    Literals alone give `default_float`, int64 or bool.
    """
    found: dict[str, str] = {}
    for _ in range(len(unknown) + 1):
        types = {**known, **found}
        for name in unknown:
            values = [_type(a.value, types) for a in assigned if a.target.tensor == name]
            joined = _join(v for v in values if v)
            if joined:
                found[name] = joined
    settle = {WEAK_FLOAT: default_float, WEAK_INT: "int64", "": default_float}
    return {name: settle.get(found.get(name, ""), found.get(name, "")) for name in unknown}


def neutral(combine: str, dtype: str) -> Const:
    """The value that changes nothing when it is combined in (-0.0 is the one for sums of floats)."""
    element = DTYPES[dtype]
    if combine in "+*":
        one = combine == "*"
        return Const(float(one) if one else -0.0) if element.is_float else Const(int(one))
    if element.is_float:
        return Const(float("-inf") if combine == "max" else float("inf"))
    if dtype == "bool":
        return Const(combine == "min")
    bits = 8 * element.element_bytes
    low, high = (0, 2**bits - 1) if dtype.startswith("u") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    return Const(low if combine == "max" else high)


def _type(expr: Expr, types: Mapping[str, str]) -> str:
    """The element type, a weak type, or an empty text while it is not known."""
    if isinstance(expr, Const):
        return "bool" if isinstance(expr.value, bool) else WEAK_INT if isinstance(expr.value, int) else WEAK_FLOAT
    if isinstance(expr, Index):
        return WEAK_INT
    if isinstance(expr, Read):
        return types.get(expr.access.tensor, "")
    if isinstance(expr, Cast):
        return expr.dtype
    args = [t for t in (_type(a, types) for a in expr.args) if t]
    if isinstance(expr, Uninterpreted):
        return _join([*args, WEAK_FLOAT])
    return _applied(expr, args)


def _applied(expr: Apply, args: list[str]) -> str:
    if expr.op in TRUTH:
        return "bool"
    if expr.op == "select":
        return _join(args[1:] if len(args) == 3 else args)
    return _join(args if expr.op in SAME_TYPE else [*args, WEAK_FLOAT])


def _join(types: Iterable[str]) -> str:
    found = sorted(set(types))
    floats = [t for t in found if t == WEAK_FLOAT or (t in DTYPES and DTYPES[t].is_float)]
    if floats:
        return _widest([t for t in floats if t != WEAK_FLOAT], WEAK_FLOAT)
    integers = [t for t in found if t != "bool"]
    if integers:
        return _widest([t for t in integers if t != WEAK_INT], WEAK_INT)
    return "bool" if found else ""


def _widest(types: list[str], weak: str) -> str:
    if not types:
        return weak
    widest = max(DTYPES[t].element_bytes for t in types)
    same = [t for t in types if DTYPES[t].element_bytes == widest]
    if len(same) == 1:
        return same[0]
    wider = {1: "float16", 2: "float32"} if DTYPES[same[0]].is_float else {1: "int16"}
    return wider[widest]
