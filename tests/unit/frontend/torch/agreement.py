"""Comparing programs read from PyTorch with PyTorch itself, both in float64."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch.export import ExportedProgram
from torch.utils import _pytree as pytree

from polyopt.frontend.torch import TorchProgram, from_exported, from_torch
from polyopt.frontend.torch._export import decomposed
from polyopt.ir import verify_scop
from polyopt.reference import evaluate
from tests.models import Example

Case = tuple[Callable[..., Any], tuple[torch.Tensor, ...]]
NARROW = (torch.float32, torch.bfloat16, torch.float16)


class Cases(torch.nn.Module):
    """Many functions in one module, so that one export serves them all; the outputs are called after the cases."""

    def __init__(self, cases: Mapping[str, Case]) -> None:
        super().__init__()
        self.cases = dict(cases)

    def forward(self, *inputs: torch.Tensor) -> dict[str, torch.Tensor]:
        found = {}
        left = list(inputs)
        for name, (function, own) in self.cases.items():
            found[f"case_{name}"] = function(*left[: len(own)])
            left = left[len(own) :]
        return found


def results(cases: Mapping[str, Case]) -> dict[str, np.ndarray[Any, Any]]:
    """The evaluated outputs of all cases read as one program."""
    inputs = [x for _, own in cases.values() for x in own]
    program = from_torch(Cases(cases), inputs)
    verify_scop(program.scop)
    return evaluate(program.scop, program.arguments(*inputs), {}, round_outputs=False)


def assert_agrees(found: np.ndarray[Any, Any], case: Case, tolerance: float = 1e-9) -> None:
    """`found` is what the function gives in float64."""
    function, inputs = case
    wanted = function(*(_wide(x) for x in inputs)).numpy()
    assert found.shape == wanted.shape
    np.testing.assert_allclose(found.astype(np.float64), wanted.astype(np.float64), rtol=tolerance, atol=tolerance)


def _wide(x: Any) -> Any:
    if isinstance(x, torch.Tensor) and x.dtype in NARROW:
        return x.double()
    return torch.float64 if x in NARROW else x


class _Widened(torch.fx.Interpreter):
    """Runs a graph of ATen operators with every floating type replaced by float64."""

    def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
        if "_assert" in str(target):
            return None
        wide = super().call_function(target, pytree.tree_map(_wide, args), pytree.tree_map(_wide, kwargs))
        return pytree.tree_map(_wide, wide)


def in_float64(program: ExportedProgram, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[torch.Tensor]:
    """What PyTorch's own operators give for the flattened outputs, computed in float64 throughout.

    Unlike `module.double()` this also widens what a model casts to float32 by itself.
    """
    flat = iter(pytree.tree_flatten((tuple(args), dict(kwargs)))[0])
    given = []
    for spec in program.graph_signature.input_specs:
        if spec.kind.name == "USER_INPUT":
            given.append(_wide(next(flat)))
        else:
            given.append(_wide(program.state_dict.get(str(spec.target), program.constants.get(str(spec.target)))))
    with torch.no_grad():
        return list(_Widened(program.graph_module).run(*given))


@dataclass(frozen=True)
class Reading:
    """A module, its exported graph and the program made of that."""

    example: Example
    exported: ExportedProgram
    program: TorchProgram


def read(example: Example) -> Reading:
    """Export once, for the program and for PyTorch's own answer."""
    exported = decomposed(example.module, example.args, example.kwargs)
    program = from_exported(exported, type(example.module).__name__)
    verify_scop(program.scop)
    return Reading(example, exported, program)


def worst_error(reading: Reading) -> float:
    """The largest difference of an output from PyTorch in float64, relative to the output's largest magnitude."""
    program, args, kwargs = reading.program, reading.example.args, reading.example.kwargs
    found = evaluate(program.scop, program.arguments(*args, **kwargs), {}, round_outputs=False)
    worst = 0.0
    for name, wanted in zip(program.outputs, in_float64(reading.exported, args, kwargs), strict=True):
        assert name is not None and found[name].shape == tuple(wanted.shape)
        wide = wanted.numpy().astype(np.float64)
        worst = max(worst, float(np.abs(found[name] - wide).max() / np.abs(wide).max()))
    return worst
