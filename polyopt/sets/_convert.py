"""Between `Affine` and isl's (piecewise) affine expressions; dimensions are found by name."""

from __future__ import annotations

from collections.abc import Mapping

import islpy as isl

from polyopt.errors import InternalError, NotAffineError
from polyopt.sets.affine import Affine, Constraint, Extremum, Floor, Select, affine, select, var

__all__ = ["aff_to_affine", "constraint_set", "constraint_to_affine", "pw_aff_to_affine", "to_pw_aff"]


LARGEST = 2**62
"""Sums of two such numbers fit in 64 bits."""


def positions(space: isl.Space, kind: isl.dim_type) -> dict[str, int]:
    """Dimension name -> position, for one kind of dimension."""
    return {str(space.get_dim_name(kind, k)): k for k in range(space.dim(kind))}


def to_pw_aff(expr: Affine, domain: isl.Space) -> isl.PwAff:
    """`expr` as an isl function on `domain` (a set space whose dims and params carry names)."""
    local = isl.LocalSpace.from_space(domain)
    total = isl.PwAff.from_aff(isl.Aff.zero_on_domain(local).set_constant_val(_val(expr.const)))
    for atom, c in expr.terms:
        total = total.add(_atom(atom, domain, local).scale_val(_val(c)))
    return total


def _val(value: int) -> isl.Val:
    if not abs(value) < LARGEST:
        raise NotAffineError(
            f"the number {value} is too large for a subscript, bound or order", help="use numbers below 2**62"
        )
    return isl.Val(value)


def _atom(atom: str | Floor | Extremum | Select, domain: isl.Space, local: isl.LocalSpace) -> isl.PwAff:
    if isinstance(atom, str):
        for kind in (isl.dim_type.set, isl.dim_type.param):
            position = domain.find_dim_by_name(kind, atom)
            if position >= 0:
                return isl.PwAff.from_aff(isl.Aff.var_on_domain(local, kind, position))
        raise NotAffineError(
            f"unknown name {atom!r} in an affine expression",
            help=f"iterators here: {sorted(positions(domain, isl.dim_type.set))}, "
            f"params: {sorted(positions(domain, isl.dim_type.param))}",
        )
    if isinstance(atom, Floor):
        return to_pw_aff(atom.arg, domain).scale_down_val(_val(atom.divisor)).floor()
    if isinstance(atom, Extremum):
        parts = [to_pw_aff(a, domain) for a in atom.args]
        result = parts[0]
        for p in parts[1:]:
            result = result.min(p) if atom.kind == "min" else result.max(p)
        return result
    where = isl.Set.universe(domain)
    for c in atom.conditions:
        where = where.intersect(constraint_set(c, domain))
    then = to_pw_aff(atom.then, domain).intersect_domain(where)
    return then.union_add(to_pw_aff(atom.other, domain).subtract_domain(where))


def constraint_set(constraint: Constraint, domain: isl.Space) -> isl.Set:
    """The points of `domain` where `constraint` holds."""
    value = to_pw_aff(constraint.expr, domain)
    zero = isl.PwAff.from_aff(isl.Aff.zero_on_domain(isl.LocalSpace.from_space(domain)))
    return value.eq_set(zero) if constraint.equality else value.ge_set(zero)


def aff_to_affine(aff: isl.Aff) -> Affine:
    """An integer-valued isl affine expression (with floors) as an Affine."""
    total = _fraction(aff, _denominator(aff))
    return total // _denominator(aff) if _denominator(aff) > 1 else total


def _denominator(aff: isl.Aff) -> int:
    return int(aff.get_denominator_val().to_python())


def _fraction(aff: isl.Aff, scale: int) -> Affine:
    """scale * aff, without the outer floor."""

    def value(v: isl.Val) -> int:
        return int(v.mul(isl.Val(scale)).to_python())

    total = affine(value(aff.get_constant_val()))
    for kind in (isl.dim_type.param, isl.dim_type.in_):
        for k in range(aff.dim(kind)):
            c = value(aff.get_coefficient_val(kind, k))
            if c:
                total = total + var(str(aff.get_dim_name(kind, k))) * c
    for k in range(aff.dim(isl.dim_type.div)):
        c = value(aff.get_coefficient_val(isl.dim_type.div, k))
        if c:
            div = aff.get_div(k)
            total = total + (_fraction(div, _denominator(div)) // _denominator(div)) * c
    return total


def constraint_to_affine(constraint: isl.Constraint) -> Constraint:
    """One isl constraint, its integer divisions written out as floors."""
    return Constraint(_fraction(constraint.get_aff(), 1), bool(constraint.is_equality()))


def pw_aff_to_affine(pw: isl.PwAff) -> Affine:
    """A piecewise function as nested selections; the last piece is the default.

    Raises InternalError on a piece that is not convex (callers coalesce first).
    """
    pieces = pw.coalesce().get_pieces()
    if not pieces:
        raise InternalError("an affine function with an empty domain has no value")
    result = aff_to_affine(pieces[-1][1])
    for where, aff in reversed(pieces[:-1]):
        for part in where.compute_divs().make_disjoint().get_basic_sets():
            result = select([constraint_to_affine(c) for c in part.get_constraints()], aff_to_affine(aff), result)
    return result


def rename_dims(obj: isl.Set, names: Mapping[str, str]) -> isl.Set:
    """Set dimensions renamed; names not in `names` stay."""
    for old, position in positions(obj.get_space(), isl.dim_type.set).items():
        if old in names:
            obj = obj.set_dim_name(isl.dim_type.set, position, names[old])
    return obj
