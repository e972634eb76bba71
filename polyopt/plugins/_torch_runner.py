"""A compiled region as a module that takes and gives tensors."""

from __future__ import annotations

import torch

from polyopt.errors import InternalError
from polyopt.frontend.torch import TorchProgram
from polyopt.frontend.torch._export import tensor_of
from polyopt.pipeline import Compiled
from polyopt.plugins._torch_regions import Region, result_of

__all__ = ["Runner", "laid_out"]


class Runner(torch.nn.Module):
    """Runs a region on the simulated target: from the tensors of its inputs to those of its outputs.

    Results have the strides that the operators after the region were recorded for.
    """

    def __init__(self, program: TorchProgram, compiled: Compiled, region: Region) -> None:
        super().__init__()
        self.compiled = compiled
        self.results = [_result(n, o) for n, o in zip(program.outputs, region.outputs, strict=True)]

    def forward(self, *args: torch.Tensor) -> list[torch.Tensor]:
        found = self.compiled.run(*args)
        return [laid_out(tensor_of(found[name]), like) for name, like in self.results]


def _result(name: str | None, output: torch.fx.Node) -> tuple[str, torch.Tensor]:
    like = result_of(output)
    if name is None or like is None:
        raise InternalError(f"{output} leaves a region, but is no tensor")
    return name, like


def laid_out(given: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """`given` with the strides and on the device of `like`; dimensions of stride 0 are expanded.

    Cells of `like` that overlap in another way are given apart, contiguous: every view accepts that.
    """
    repeated = {k for k, (n, s) in enumerate(zip(like.shape, like.stride(), strict=True)) if n > 1 and s == 0}
    for k in sorted(repeated):
        given = given.narrow(k, 0, 1)
    axes = sorted((s, n) for n, s in zip(given.shape, like.stride(), strict=True) if n > 1)
    reach = 0
    for stride, extent in axes:
        if stride <= reach:
            return given.expand(like.shape).to(like.device)
        reach += stride * (extent - 1)
    apart = torch.empty_strided(given.shape, like.stride(), dtype=given.dtype, device=like.device)
    return apart.copy_(given).expand(like.shape)
