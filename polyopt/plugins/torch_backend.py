"""`torch.compile(module, backend="polyopt")`: the graph runs on a simulated accelerator.

PyTorch finds `polyopt_backend` through the entry-point group `torch_dynamo_backends`.  Options, as in
`torch.compile(..., options={...})`: `target`, the machine's name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import torch

from polyopt.errors import InputError, UnsupportedError, nearest
from polyopt.frontend.torch import TorchProgram, from_torch
from polyopt.frontend.torch._export import tensor_of
from polyopt.pipeline import Compiled, compile

__all__ = ["polyopt_backend"]

OPTIONS: Mapping[str, str] = {"target": "trn2"}
"""Option -> its default."""

Runner = Callable[..., list[torch.Tensor | None]]


def polyopt_backend(
    graph: torch.fx.GraphModule, example_inputs: Sequence[torch.Tensor], *, options: Mapping[str, str] | None = None
) -> Runner:
    """A function that computes the outputs of `graph` through the simulator, for inputs shaped like the examples.

    Inference only: the outputs have no gradients.  Raises UnsupportedError where gradients are asked for, where a size
    is symbolic (compile with dynamic=False), or for an operator that is not known; InputError on an unknown option.
    """
    chosen = {**OPTIONS, **(options or {})}
    for name in chosen:
        if name not in OPTIONS:
            raise InputError(f"unknown option {name!r} of the backend polyopt{nearest(name, OPTIONS)}")
    if torch.is_grad_enabled() and any(x.requires_grad for x in example_inputs if isinstance(x, torch.Tensor)):
        raise UnsupportedError("gradients are not computed", help="call the compiled module under torch.no_grad()")
    program = from_torch(graph, [_example(x) for x in example_inputs])
    return _runner(program, compile(program, target=chosen["target"]))


def _example(given: object) -> torch.Tensor:
    """A tensor of the same shape and type; the values do not matter."""
    if not isinstance(given, torch.Tensor):
        raise UnsupportedError(f"input {given!r} is not a tensor", help="torch.compile(..., dynamic=False)")
    return torch.zeros([int(n) for n in given.shape], dtype=given.dtype)


def _runner(program: TorchProgram, compiled: Compiled) -> Runner:
    def run(*args: torch.Tensor) -> list[torch.Tensor | None]:
        found = compiled.run(*args)
        return [None if name is None else tensor_of(found[name]) for name in program.outputs]

    return run
