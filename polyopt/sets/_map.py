"""Relations between named tuples, addressed by dimension name: access relations, schedules, dependences."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import islpy as isl

from polyopt.errors import InputError
from polyopt.sets._convert import positions, to_pw_aff
from polyopt.sets._set import Set
from polyopt.sets.affine import Affine

__all__ = ["Map"]

_IN, _OUT, _PARAM = isl.dim_type.in_, isl.dim_type.out, isl.dim_type.param


class Map:
    """An immutable relation `in_name[in_dims] -> out_name[out_dims]`.  Output dimensions may be unnamed."""

    __slots__ = ("isl",)

    def __init__(self, isl_map: isl.Map) -> None:
        self.isl = isl_map

    @staticmethod
    def parse(text: str) -> Map:
        """Read full isl map text.  Raises InputError."""
        try:
            return Map(isl.Map.read_from_str(isl.DEFAULT_CONTEXT, text))
        except isl.Error as error:
            raise InputError(
                f"cannot read the map {text!r}", help="write isl map text: '{ S[i] -> A[i + 1] }'"
            ) from error

    @staticmethod
    def from_exprs(domain: Set, out_name: str, exprs: Sequence[Affine]) -> Map:
        """{ x -> out_name[exprs(x)] : x in domain }."""
        space = domain.isl.get_space()
        result = isl.Map.from_domain(domain.isl)
        for k, e in enumerate(exprs):
            column = isl.Map.from_pw_aff(to_pw_aff(e, space))
            result = column.intersect_domain(domain.isl) if k == 0 else result.flat_range_product(column)
        if out_name:
            result = result.set_tuple_name(_OUT, out_name)
        return Map(result)

    @property
    def in_name(self) -> str:
        return (self.isl.get_tuple_name(_IN) if self.isl.has_tuple_name(_IN) else "") or ""

    @property
    def out_name(self) -> str:
        return (self.isl.get_tuple_name(_OUT) if self.isl.has_tuple_name(_OUT) else "") or ""

    @property
    def in_dims(self) -> tuple[str, ...]:
        return tuple(positions(self.isl.get_space().domain(), isl.dim_type.set))

    @property
    def params(self) -> tuple[str, ...]:
        return tuple(positions(self.isl.get_space(), isl.dim_type.param))

    @property
    def out_arity(self) -> int:
        return int(self.isl.dim(_OUT))

    def is_empty(self) -> bool:
        return bool(self.isl.is_empty())

    def is_equal(self, other: Map) -> bool:
        return bool(self.isl.is_equal(other.isl))

    def is_subset(self, other: Map) -> bool:
        return bool(self.isl.is_subset(other.isl))

    def is_single_valued(self) -> bool:
        return bool(self.isl.is_single_valued())

    def is_injective(self) -> bool:
        return bool(self.isl.is_injective())

    def domain(self) -> Set:
        return Set(self.isl.domain())

    def range(self, dims: Sequence[str]) -> Set:
        """The image, its dimensions called `dims`."""
        image = self.isl.range()
        for k, d in enumerate(dims):
            image = image.set_dim_name(isl.dim_type.set, k, d)
        return Set(image)

    def reverse(self) -> Map:
        return Map(self.isl.reverse())

    def apply_range(self, other: Map) -> Map:
        """First self, then `other`."""
        return Map(self.isl.apply_range(other.isl))

    def union(self, other: Map) -> Map:
        return Map(self.isl.union(other.isl).coalesce())

    def intersect(self, other: Map) -> Map:
        return Map(self.isl.intersect(other.isl))

    def subtract(self, other: Map) -> Map:
        return Map(self.isl.subtract(other.isl))

    def intersect_domain(self, domain: Set) -> Map:
        return Map(self.isl.intersect_domain(domain.isl))

    def intersect_params(self, context: Set) -> Map:
        return Map(self.isl.intersect_params(context.isl.params()))

    def fix_params(self, values: Mapping[str, int]) -> Map:
        result = self.isl
        for n, v in values.items():
            position = result.find_dim_by_name(_PARAM, n)
            if position >= 0:
                result = result.fix_val(_PARAM, position, isl.Val(v))
        return Map(result)

    def forget_in(self, dims: Iterable[str], in_name: str) -> Map:
        """Project input dimensions out (they become existential); the input tuple is called `in_name` again."""
        result = self.isl
        for d in dims:
            result = result.project_out(_IN, result.find_dim_by_name(_IN, d), 1)
        return Map(result.set_tuple_name(_IN, in_name) if in_name else result)

    def wrapped(self, in_dims: Iterable[str], out_dims: Iterable[str]) -> Set:
        """The pairs as one set with dimensions `in_dims` then `out_dims` (which must all differ)."""
        flat = self.isl.wrap().flatten().reset_tuple_id()
        for k, d in enumerate((*in_dims, *out_dims)):
            flat = flat.set_dim_name(isl.dim_type.set, k, d)
        return Set(flat)

    def __str__(self) -> str:
        return str(self.isl.to_str())

    __repr__ = __str__

    def __eq__(self, other: object) -> bool:
        return self.is_equal(other) if isinstance(other, Map) else NotImplemented

    def __hash__(self) -> int:
        return hash((self.in_name, self.out_name))
