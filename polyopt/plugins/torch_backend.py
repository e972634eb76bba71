"""`torch.compile(module, backend="polyopt")`: the graph runs on a simulated accelerator.

PyTorch finds `polyopt_backend` through the entry-point group `torch_dynamo_backends`.  Options, as in
`torch.compile(..., options={...})`: `target`, the machine's name.

What the target cannot run stays with PyTorch; an `EagerRegionWarning` says what and why.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch._dynamo.backends.common import aot_autograd
from torch._functorch._aot_autograd.utils import make_boxed_func
from torch._guards import tracing
from torch._subclasses.fake_tensor import unset_fake_temporarily
from torch.fx import GraphModule, Node

from polyopt.errors import InputError, UnsupportedError, nearest
from polyopt.machine import Machine, machine
from polyopt.plugins._torch_regions import Region, assemble, computes, levels, region_of
from polyopt.plugins._torch_remark import EagerRegionWarning, remark
from polyopt.plugins._torch_runner import Runner
from polyopt.plugins._torch_support import REFUSALS, Refusal, Support, compile_region

__all__ = ["EagerRegionWarning", "polyopt_backend"]

OPTIONS: Mapping[str, str] = {"target": "trn2"}
"""Option -> its default."""

Function = Callable[..., Sequence[object]]


def polyopt_backend(
    graph: GraphModule, example_inputs: Sequence[object], *, options: Mapping[str, str] | None = None
) -> Function:
    """A function that computes the outputs of `graph` for inputs shaped like the examples.

    Regions of supported operators run through the simulator, one program each; the others run eagerly, with an
    EagerRegionWarning that names them.  Changes of inputs and results that share memory with inputs are as in PyTorch.
    Symbolic sizes are fixed, so that PyTorch compiles again for other ones.  Inference only: raises UnsupportedError
    where gradients are asked for; InputError on an unknown option or target.
    """
    chosen = {**OPTIONS, **(options or {})}
    for name in chosen:
        if name not in OPTIONS:
            raise InputError(
                f"unknown option {name!r} of the backend polyopt{nearest(name, OPTIONS)}",
                help=f"options: {', '.join(OPTIONS)}",
            )
    target = machine(chosen["target"])
    if torch.is_grad_enabled() and any(x.requires_grad for x in example_inputs if isinstance(x, torch.Tensor)):
        raise UnsupportedError("gradients are not computed", help="call the compiled module under torch.no_grad()")
    _fix_sizes(example_inputs)

    def compile_graph(functional: GraphModule, _: Sequence[object]) -> Function:
        with unset_fake_temporarily(), tracing(None):  # constants are evaluated, and exports have guards of their own
            divided = Division(functional, target).divided()
        boxed: Function = make_boxed_func(divided.forward)
        return boxed

    made: Function = aot_autograd(fw_compiler=compile_graph)(graph, example_inputs)
    return made


def _fix_sizes(example_inputs: Iterable[object]) -> None:
    """Ask every symbolic size for its value: PyTorch then guards on it."""
    for given in example_inputs:
        if isinstance(given, torch.SymInt):
            int(given)
        elif isinstance(given, torch.Tensor) and given.layout == torch.strided:
            for n in (*given.shape, *given.stride(), given.storage_offset()):
                int(n)


@dataclass(frozen=True, slots=True)
class Division:
    """A functional graph on its way to regions; `made` keeps what became of each."""

    graph: GraphModule
    target: Machine
    made: dict[tuple[Node, ...], Runner | Refusal] = field(default_factory=dict)

    def divided(self) -> GraphModule:
        """The graph with its regions compiled; warns about what runs eagerly.

        While a region is refused, a costlier judge says which operators are to blame; a region that is refused although
        each of its operators would be taken in runs eagerly.
        """
        nodes = [n for n in self.graph.graph.nodes if computes(n)]
        for judge in Support(self.graph, self.target).judges():
            reasons = judge(nodes)
            found, regions = self._regions(reasons)
            made = {level: self._compiled(region) for level, region in regions.items()}
            if all(isinstance(m, Runner) for m in made.values()):
                break
        refused = {n: m.message for k, m in made.items() if not isinstance(m, Runner) for n in regions[k].nodes}
        reasons = {n: refused[n] if n in refused else reasons[n] for n in nodes if n in refused or n in reasons}
        runners = {level: m for level, m in made.items() if isinstance(m, Runner)}
        if reasons:
            inside = sum(found[n] in runners for n in nodes)
            text = remark(reasons, self.target.name, inside, len(runners))
            warnings.warn(text, EagerRegionWarning, stacklevel=2)
        return assemble(self.graph, found, regions, runners)

    def _regions(self, refused: Mapping[Node, str]) -> tuple[dict[Node, int], dict[int, Region]]:
        """The level of every node, and the regions by their levels."""
        wanted = {n for n in self.graph.graph.nodes if computes(n) and n not in refused}
        found = levels(self.graph.graph, wanted)
        numbers = sorted({k for k in found.values() if k % 2 == 0})
        return found, {k: region_of(n for n in found if found[n] == k) for k in numbers}

    def _compiled(self, region: Region) -> Runner | Refusal:
        """The region ready to run, or why it is not; found out once."""
        if region.nodes not in self.made:
            try:
                self.made[region.nodes] = compile_region(self.graph, region, self.target, "Region")
            except REFUSALS as error:
                self.made[region.nodes] = error
        return self.made[region.nodes]
