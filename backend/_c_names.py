"""Names that a C function may use for what a program calls otherwise."""

from __future__ import annotations

import re
from collections.abc import Iterable

__all__ = ["c_names"]

_KEYWORDS = """
auto break case char const continue default do double else enum extern float for goto if inline int long register
restrict return short signed sizeof static struct switch typedef union unsigned void volatile while asm typeof
bool true false NULL EOF NAN INFINITY assert errno linux unix main
"""
_LIBRARY = """
acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh erf erfc exp exp2 expm1 fabs fdim floor fma fmax fmin
fmod frexp hypot ilogb ldexp lgamma llrint llround log log10 log1p log2 logb lrint lround modf nan nearbyint nextafter
nexttoward pow remainder remquo rint round scalbln scalbn sin sinh sqrt tan tanh tgamma trunc signbit signgam gamma
j0 j1 jn y0 y1 yn isnan isinf isfinite isnormal fpclassify isgreater isless isunordered
abort abs atexit atof atoi atol atoll bsearch calloc div exit free getenv labs ldiv llabs lldiv malloc mblen mbtowc
qsort rand realloc srand strtod strtof strtol strtold strtoll strtoul strtoull system random select
"""
_RESERVED = frozenset((*_KEYWORDS.split(), *_LIBRARY.split()))
_RESERVED_LIKE = re.compile(r"_|po_|U?INT|HUGE_VAL|M_|FP_|MATH_|EXIT_|RAND_|SIZE_|PTRDIFF_|MB_|math_err|.*_t$")
"""Beginnings (and an end) of names that belong to the compiler, to the headers, or to the functions in front."""


def c_names(names: Iterable[str], taken: Iterable[str] = ()) -> dict[str, str]:
    """Name -> the same, or with `_` behind where C, its headers or `taken` have it already; all different.

    >>> c_names(["A", "double", "y0"])
    {'A': 'A', 'double': 'double_', 'y0': 'y0_'}
    """
    used = set(taken)
    found: dict[str, str] = {}
    for name in names:
        new = re.sub(r"\W", "_", name, flags=re.ASCII)
        if _RESERVED_LIKE.match(new) or new[:1].isdigit():
            new = f"v{new}_"
        while new in _RESERVED or new in used:
            new += "_"
        used.add(new)
        found[name] = new
    return found
