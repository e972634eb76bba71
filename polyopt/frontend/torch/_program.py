"""`from_torch`: a module and example inputs -> a Scop with its parameters bound."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from polyopt.errors import InputError, MissingExtraError
from polyopt.frontend.torch._build import Builder
from polyopt.frontend.torch._draft import Draft, finish
from polyopt.frontend.torch._layout import choose_layouts
from polyopt.frontend.torch._rules import RULES
from polyopt.frontend.torch._value import Array
from polyopt.ir import Scop, access_chain
from polyopt.sets import Set

if TYPE_CHECKING:
    import torch
    from torch.export import ExportedProgram
    from torch.utils._pytree import TreeSpec

__all__ = ["TorchProgram", "from_exported", "from_torch", "known_operators", "plain_array"]


@dataclass(frozen=True, slots=True)
class TorchProgram:
    """A module as a Scop.

    `bound`: elements of parameters, buffers and of constants that no expression describes, by tensor name.
    `sources`: tensor name -> qualified name of the parameter or buffer.
    `inputs`: tensor names of the flattened example inputs in order (None for arguments that are no tensors).
    `outputs`: tensor names of the flattened results in order (None for results that are no tensors).
    """

    scop: Scop
    bound: Mapping[str, Array]
    sources: Mapping[str, str]
    inputs: tuple[str | None, ...]
    outputs: tuple[str | None, ...]
    in_spec: TreeSpec
    out_spec: TreeSpec

    def arguments(self, *args: object, **kwargs: object) -> dict[str, Array]:
        """The module's own arguments (tensors or arrays) by tensor name, parameters and buffers included.

        Raises InputError when their structure or shapes differ from the example inputs.
        """
        flat = _flatten(self.in_spec, args, kwargs)
        if len(flat) != len(self.inputs):
            raise InputError(
                f"{len(flat)} arguments, expected {len(self.inputs)}: {', '.join(map(str, self.inputs))}",
                help="pass the arguments that the module was exported with, in order",
            )
        found = dict(self.bound)
        for name, value in zip(self.inputs, flat, strict=True):
            if name is not None:
                found[name] = self._argument(name, value)
        return found

    def _argument(self, name: str, value: object) -> Array:
        tensor = self.scop.tensor(name)
        array = plain_array(value)
        if array.shape != tensor.sizes({}):
            raise InputError(
                f"{name} has shape {array.shape}, expected {tensor.sizes({})}",
                help="the program is made for the shapes of the example inputs; call from_torch again for others",
            )
        return array


def known_operators() -> tuple[str, ...]:
    """The names of the ATen operators that are taken in, sorted."""
    return tuple(sorted(RULES))


def from_torch(
    module: torch.nn.Module,
    example_inputs: Sequence[object],
    *,
    kwargs: Mapping[str, object] | None = None,
    reassociate: bool = True,
) -> TorchProgram:
    """The inference of `module` on inputs shaped like `example_inputs` (and `kwargs`), as a Scop without parameters.

    Views become access relations; what depends only on shapes and literals becomes expressions of the iterators;
    parameters and buffers are inputs, as they lie in memory.  Every statement's origin names the module path, the
    operator and the source line.  `reassociate` grants that sums may be reordered and kept in a wider type.

    Raises MissingExtraError without PyTorch, UnsupportedError naming an operator that is not known.
    """
    try:
        from polyopt.frontend.torch._export import decomposed
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise MissingExtraError("PyTorch is not installed", help="pip install 'polyopt[torch]'") from error
    return from_exported(
        decomposed(module, example_inputs, kwargs or {}), type(module).__name__, reassociate=reassociate
    )


def from_exported(program: ExportedProgram, name: str, *, reassociate: bool = True) -> TorchProgram:
    """`from_torch` for a program that is exported and decomposed to core ATen operators already."""
    from polyopt.frontend.torch._export import Reader

    reader = Reader(program)
    out_spec = program.call_spec.out_spec
    reader.read(_output_names(out_spec, reader.count_results()))
    scop = _scop(name, reader.builder, reassociate=reassociate)
    kept = {t.name for t in scop.tensors}
    return TorchProgram(
        scop,
        MappingProxyType({k: v for k, v in reader.builder.bound.items() if k in kept}),
        MappingProxyType({k: v for k, v in reader.sources.items() if k in kept}),
        tuple(reader.inputs),
        tuple(reader.outputs),
        program.call_spec.in_spec,
        out_spec,
    )


def _scop(name: str, builder: Builder, *, reassociate: bool) -> Scop:
    stores, drafts = choose_layouts(builder.stores, builder.drafts)
    drafts = [d.apart_from(stores) for d in drafts]
    outputs = {s.name for s in stores.values() if s.role == "output"}
    statements = [finish(d, k) for k, d in enumerate(_needed(drafts, outputs))]
    kept = tuple(s for s in statements if s is not None)
    used = {a.tensor for s in kept for r in (s.assign.target, *s.assign.reads()) for a in access_chain(r)}
    used |= {s.name for s in stores.values() if s.role == "input" and s.name not in builder.bound}
    used |= {s.name for s in stores.values() if s.role == "output" and 0 in s.shape}  # no statement writes these
    tensors = tuple(s.tensor() for s in stores.values() if s.name in used)
    return Scop(name, (), Set.universe("", ()), tensors, kept, reassociate)


def _needed(drafts: Sequence[Draft], outputs: set[str]) -> list[Draft]:
    """The drafts whose results an output depends on."""
    needed = set(outputs)
    kept: list[Draft] = []
    for d in reversed(drafts):
        if d.target.tensor in needed:
            kept.append(d)
            needed |= {a.tensor for r in d.accesses() for a in access_chain(r)}
    return kept[::-1]


def _output_names(spec: TreeSpec, count: int) -> list[str]:
    """Names of the results from their place in what the module returns: fields, keys, positions."""
    from torch.utils import _pytree as pytree

    whole = pytree.tree_unflatten(list(range(count)), spec)
    names = [""] * count
    for path, k in pytree.tree_flatten_with_path(whole)[0]:
        parts = [str(getattr(p, "key", getattr(p, "idx", getattr(p, "name", "")))) for p in path]
        name = re.sub(r"\W", "_", "_".join(parts))
        names[k] = name if name and not name[0].isdigit() else "_".join(filter(None, ("output", name)))
    return names


def _flatten(spec: TreeSpec, args: Sequence[object], kwargs: Mapping[str, object]) -> list[object]:
    from torch.utils import _pytree as pytree

    _, expected = pytree.tree_unflatten([None] * spec.num_leaves, spec)
    order = list(expected)
    if set(order) != set(kwargs):
        raise InputError(
            f"keyword arguments {sorted(kwargs)}, expected {sorted(order)}",
            help="pass the arguments that the module was exported with",
        )
    flat, _ = pytree.tree_flatten((tuple(args), {k: kwargs[k] for k in order}))
    return list(flat)


def plain_array(value: object) -> Array:
    """A tensor or anything else that NumPy takes, as an array (bfloat16 and float8 through ml_dtypes)."""
    import torch

    if isinstance(value, torch.Tensor):
        from polyopt.frontend.torch._export import array_of

        return array_of(value)
    return np.asarray(value)
