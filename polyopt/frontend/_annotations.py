"""`po.float32["M", "K"]`, `po.Tensor["N"]`: annotations of kernel arguments.

A kernel is parsed, so these objects only have to exist and to print well; their text is what is read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from polyopt.errors import InputError
from polyopt.ir import DTYPES

__all__ = ["ANNOTATIONS", "ElementType", "Tensor", "TensorType"]

Size = str | int
"""A number, or affine text in size names such as `"N + 1"`."""


@dataclass(frozen=True, slots=True)
class TensorType:
    """A tensor of `dtype` and `shape`; a scalar has no shape."""

    dtype: str
    shape: tuple[Size, ...]

    def __str__(self) -> str:
        return f"{self.dtype}[{', '.join(map(str, self.shape)) or '()'}]"


@dataclass(frozen=True, slots=True)
class ElementType:
    """`float32["M", "K"]` is a matrix, `float32` alone or `float32[()]` a scalar."""

    dtype: str

    def __getitem__(self, shape: Size | tuple[Size, ...]) -> TensorType:
        """A tensor type; raises InputError on a size that is neither text nor a number."""
        sizes = shape if isinstance(shape, tuple) else (shape,)
        for size in sizes:
            if not isinstance(size, (str, int)) or isinstance(size, bool):
                raise InputError(
                    f"{size!r} is no size of a {self.dtype} tensor",
                    help=f'write {self.dtype}["M", "N + 1", 3]: texts with size names, or numbers',
                )
        return TensorType(self.dtype, sizes)

    def __str__(self) -> str:
        return self.dtype


Tensor = ElementType("float32")
"""`Tensor["M", "K"]` is `float32["M", "K"]`."""

ANNOTATIONS: Mapping[str, ElementType] = MappingProxyType({**{n: ElementType(n) for n in DTYPES}, "Tensor": Tensor})
"""Every name that may annotate an argument."""
