"""Integer sets addressed by dimension name.

isl matches dimensions by position, so `{[i]}` and `{[j]}` are equal there.  Here two sets meet only when they have
the same tuple name and the same dimension names; another order of the dimensions is lined up first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import islpy as isl

from polyopt.errors import InputError, InternalError
from polyopt.sets._convert import (
    constraint_set,
    constraint_to_affine,
    positions,
    pw_aff_to_affine,
    rename_dims,
)
from polyopt.sets._smallest import smallest_point
from polyopt.sets.affine import Affine, Constraint, affine, maximum, minimum

__all__ = ["Set"]

_SET, _PARAM, _DIV = isl.dim_type.set, isl.dim_type.param, isl.dim_type.div


class Set:
    """An immutable integer set `name[dims] : constraints` with named parameters."""

    __slots__ = ("_hash", "isl")

    def __init__(self, isl_set: isl.Set) -> None:
        space = isl_set.get_space()
        if any(not space.get_dim_name(_SET, k) for k in range(space.dim(_SET))):
            raise InternalError(f"unnamed dimension in {isl_set}")
        self.isl = isl_set
        self._hash: int | None = None

    # -- making ---------------------------------------------------------------------------------------------------
    @staticmethod
    def parse(text: str, *, name: str = "", params: Sequence[str] = ()) -> Set:
        """Read `[i, j] : 0 <= i < N` (isl syntax without tuple name and braces), or `: N >= 1` for no dimensions.

        Raises InputError with the offending text.
        """
        prefix = f"[{', '.join(params)}] -> " if params else ""
        body = text.strip()
        if not body.startswith("["):
            body = f"[] {body if body.startswith(':') or not body else ': ' + body}"
        try:
            return Set(isl.Set.read_from_str(isl.DEFAULT_CONTEXT, f"{prefix}{{ {name}{body} }}"))
        except isl.Error as error:
            raise InputError(
                f"cannot read the set {text!r}",
                help="write isl set text, for example '[i, j] : 0 <= i < N and 0 <= j <= i', with declared params only",
            ) from error

    @staticmethod
    def universe(name: str, dims: Sequence[str], params: Sequence[str] = ()) -> Set:
        """All integer points."""
        prefix = f"[{', '.join(params)}] -> " if params else ""
        return Set(isl.Set.read_from_str(isl.DEFAULT_CONTEXT, f"{prefix}{{ {name}[{', '.join(dims)}] }}"))

    @staticmethod
    def empty(name: str, dims: Sequence[str], params: Sequence[str] = ()) -> Set:
        """No points."""
        return Set(isl.Set.empty(Set.universe(name, dims, params).isl.get_space()))

    @staticmethod
    def from_constraints(
        name: str, dims: Sequence[str], constraints: Iterable[Constraint], params: Sequence[str] = ()
    ) -> Set:
        """The points of `name[dims]` where all constraints hold."""
        return Set.universe(name, dims, params).constrain(constraints)

    @staticmethod
    def box(name: str, bounds: Mapping[str, tuple[Affine | int, Affine | int]], params: Sequence[str] = ()) -> Set:
        """lower <= dim < upper for every dimension, in the order of `bounds`."""
        rows: list[Constraint] = []
        for dim, (low, high) in bounds.items():
            rows += [Constraint(affine(dim) - low), Constraint(affine(high) - 1 - dim)]
        return Set.from_constraints(name, tuple(bounds), rows, params)

    # -- asking ---------------------------------------------------------------------------------------------------
    @property
    def name(self) -> str:
        return self.isl.get_tuple_name() or ""

    @property
    def dims(self) -> tuple[str, ...]:
        return tuple(positions(self.isl.get_space(), _SET))

    @property
    def params(self) -> tuple[str, ...]:
        return tuple(positions(self.isl.get_space(), _PARAM))

    def is_empty(self) -> bool:
        return bool(self.isl.is_empty())

    def is_subset(self, other: Set) -> bool:
        return bool(self.isl.is_subset(self._line_up(other)))

    def is_equal(self, other: Set) -> bool:
        return bool(self.isl.is_equal(self._line_up(other)))

    def is_bounded(self, dim: str) -> bool:
        """Whether `dim` has a lower and an upper bound (in parameters)."""
        position = self._position(dim)
        return bool(self.isl.dim_has_lower_bound(_SET, position) and self.isl.dim_has_upper_bound(_SET, position))

    def basic(self) -> list[list[Constraint]]:
        """The set as a union of conjunctions, in an order of their own: isl's depends on what it did before."""
        return _sorted_rows(self.isl.coalesce().compute_divs().detect_equalities().get_basic_sets())

    def disjoint_basic(self) -> list[list[Constraint]]:
        """The set as a union of conjunctions that share no point."""
        return _sorted_rows(self.isl.coalesce().compute_divs().make_disjoint().get_basic_sets())

    def bounds(self, dim: str, known: Iterable[str] = ()) -> tuple[Affine, Affine]:
        """Inclusive (lower, upper) of `dim` in terms of parameters and the dims in `known`; other dims are projected
        out.

        Raises InputError when unbounded, InternalError when the set is empty.
        """
        if not self.is_bounded(dim):
            raise InputError(
                f"dimension {dim} of {self.name or 'the set'} is unbounded",
                help="bound it in the domain",
                id="unbounded",
            )
        kept = [d for d in self.dims if d in set(known)]
        flat = self.project_onto([*kept, dim]).isl.coalesce()
        rows = _plain_rows(flat)
        if rows is not None:
            return _bounds_from_rows(dim, rows)
        for d in kept:
            flat = flat.move_dims(_PARAM, flat.dim(_PARAM), _SET, flat.find_dim_by_name(_SET, d), 1)
        return pw_aff_to_affine(flat.dim_min(0)), pw_aff_to_affine(flat.dim_max(0))

    def smallest(self, sizes_first: Sequence[str] = ()) -> dict[str, int] | None:
        """Lexicographically smallest point, parameters of `sizes_first` before the dims; None when empty.

        Raises InputError when there is no smallest point.
        """
        moved = self.isl
        for k, p in enumerate(sizes_first):
            position = moved.find_dim_by_name(_PARAM, p)
            if position < 0:
                moved = moved.insert_dims(_SET, k, 1).set_dim_name(_SET, k, p)
            else:
                moved = moved.move_dims(_SET, k, _PARAM, position, 1)
        if moved.is_empty():
            return None
        point = smallest_point(moved)
        if point is None:
            raise InputError(f"{self.name or 'the set'} has no smallest point (unbounded below)", help="bound it below")
        return dict(zip([*sizes_first, *self.dims], point, strict=True))

    def points(self, sizes: Mapping[str, int] | None = None) -> list[tuple[int, ...]]:
        """Every point at the given parameter sizes, in lexicographic order.  The set must be bounded there."""
        fixed = self.fix(sizes or {}).isl
        found: list[tuple[int, ...]] = []
        n = fixed.dim(_SET)

        def visit(p: isl.Point) -> None:
            found.append(tuple(int(p.get_coordinate_val(_SET, k).to_python()) for k in range(n)))

        fixed.foreach_point(visit)
        return sorted(found)

    def count(self, sizes: Mapping[str, int] | None = None) -> int:
        """The number of points at fixed parameter sizes."""
        return int(self.fix(sizes or {}).isl.count_val().to_python())

    # -- deriving -------------------------------------------------------------------------------------------------
    def intersect(self, other: Set) -> Set:
        return Set(self.isl.intersect(self._line_up(other)))

    def union(self, other: Set) -> Set:
        return Set(self.isl.union(self._line_up(other)).coalesce())

    def subtract(self, other: Set) -> Set:
        return Set(self.isl.subtract(self._line_up(other)))

    def intersect_params(self, context: Set) -> Set:
        """Restrict to parameter values in `context` (a set without dimensions)."""
        return Set(self.isl.intersect_params(context.isl.params()))

    def constrain(self, constraints: Iterable[Constraint]) -> Set:
        """The points where all constraints hold as well."""
        result = self.isl
        for c in constraints:
            result = result.intersect(constraint_set(c, result.get_space()))
        return Set(result)

    def gist(self, context: Set) -> Set:
        """Drop what `context` (same space) implies."""
        return Set(self.isl.gist(self._line_up(context)))

    def fix(self, values: Mapping[str, int]) -> Set:
        """Give parameters or dimensions values; they stay as names."""
        result = self.isl
        for n, v in values.items():
            for kind in (_PARAM, _SET):
                position = result.find_dim_by_name(kind, n)
                if position >= 0:
                    result = result.fix_val(kind, position, isl.Val(v))
        return Set(result)

    def project_out(self, dims: Iterable[str]) -> Set:
        """Forget dimensions: the result holds a point when some values of them exist."""
        name, result = self.name, self.isl
        for d in dims:
            result = result.project_out(_SET, result.find_dim_by_name(_SET, d), 1)
        return Set(result.set_tuple_name(name) if name else result)

    def without_strides(self) -> Set:
        """The smallest superset without integer divisions that isl finds by dropping them."""
        return Set(self.isl.remove_divs().coalesce())

    def project_onto(self, dims: Sequence[str]) -> Set:
        """Keep only `dims`, in the given order."""
        kept = self.project_out([d for d in self.dims if d not in dims])
        return kept._reordered(dims)

    def rename(self, *, name: str | None = None, dims: Mapping[str, str] | None = None) -> Set:
        """Another tuple name, other dimension names."""
        result = rename_dims(self.isl, dims or {})
        if name is not None:
            result = result.set_tuple_name(name) if name else result.reset_tuple_id()
        return Set(result)

    def add_dims(self, dims: Sequence[str]) -> Set:
        """New unconstrained dimensions behind the present ones."""
        name, result = self.name, self.isl
        first = result.dim(_SET)
        result = result.add_dims(_SET, len(dims))
        for k, d in enumerate(dims):
            result = result.set_dim_name(_SET, first + k, d)
        return Set(result.set_tuple_name(name) if name else result)

    def coalesce(self) -> Set:
        return Set(self.isl.coalesce())

    # -- helpers --------------------------------------------------------------------------------------------------
    def _position(self, dim: str) -> int:
        position: int = self.isl.find_dim_by_name(_SET, dim)
        if position < 0:
            raise InternalError(f"no dimension {dim!r} in {self}")
        return position

    def _reordered(self, dims: Sequence[str]) -> Set:
        if tuple(dims) == self.dims:
            return self
        if sorted(dims) != sorted(self.dims):
            raise InternalError(f"dimensions {list(dims)} do not match those of {self}")
        result, name = self.isl, self.name
        for k, d in enumerate(dims):
            position = result.find_dim_by_name(_SET, d)
            if position != k:  # through a parameter, since isl moves only between kinds
                result = result.move_dims(_PARAM, result.dim(_PARAM), _SET, position, 1)
                result = result.move_dims(_SET, k, _PARAM, result.dim(_PARAM) - 1, 1)
        return Set(result.set_tuple_name(name) if name else result)

    def _line_up(self, other: Set) -> isl.Set:
        if other.name != self.name:
            raise InternalError(f"sets of different tuples meet: {self} and {other}")
        return other._reordered(self.dims).isl

    def text(self) -> str:
        """`[i, j] : ...`, the form `parse` reads."""
        body = self.isl.coalesce().to_str()
        body = body[body.index("{") + 1 : body.rindex("}")].strip()
        if self.name:
            body = body.replace(f"{self.name}[", "[")
        return self._rows_text() if ";" in body else body or "[] : false"

    def _rows_text(self) -> str:
        """As `text`, for a union that isl would print with a tuple for each part."""
        parts = [" and ".join(c.text() for c in rows) or "true" for rows in self.basic()]
        return f"[{', '.join(self.dims)}] : {' or '.join(f'({p})' for p in parts)}"

    def __str__(self) -> str:
        return str(self.isl.to_str())

    __repr__ = __str__

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Set):
            return NotImplemented
        same_space = self.name == other.name and self.dims == other.dims and set(self.params) == set(other.params)
        return same_space and bool(self.isl.is_equal(other.isl))

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash((self.name, self.dims))
        return self._hash


def _sorted_rows(parts: Sequence[isl.BasicSet]) -> list[list[Constraint]]:
    rows = [sorted((constraint_to_affine(c) for c in b.get_constraints()), key=_row_key) for b in parts]
    return sorted(rows, key=lambda part: [_row_key(row) for row in part])


def _row_key(row: Constraint) -> tuple[bool, str]:
    """Equalities first."""
    return not row.equality, row.expr.text()


def _plain_rows(flat: isl.Set) -> list[Constraint] | None:
    """The constraints of one conjunction without integer divisions, or None when the set is not that simple."""
    parts = flat.get_basic_sets()
    if len(parts) != 1 or parts[0].dim(_DIV):
        return None
    return [constraint_to_affine(c) for c in parts[0].remove_redundancies().get_constraints()]


def _bounds_from_rows(dim: str, rows: list[Constraint]) -> tuple[Affine, Affine]:
    low: list[Affine] = []
    high: list[Affine] = []
    for row in rows:
        c = row.expr.coefficient(dim)
        rest = row.expr - affine(dim) * c
        if c > 0 or (c and row.equality):  # c*dim + rest >= 0
            low.append((rest * (1 if c < 0 else -1) + abs(c) - 1) // abs(c))
        if c < 0 or (c and row.equality):
            high.append((rest * (1 if c < 0 else -1)) // abs(c))
    return maximum(*low), minimum(*high)
