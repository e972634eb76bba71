"""Which operators of a graph the target can run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch.fx import GraphModule, Node, map_arg

from polyopt.errors import CapacityError, LegalityError, UnsupportedError
from polyopt.frontend.torch import TorchProgram, from_torch
from polyopt.frontend.torch._export import Reader, decomposed, dtype_name
from polyopt.machine import Machine
from polyopt.pipeline import compile
from polyopt.plugins._torch_regions import Region, is_item, module_of, region_of, result_of, tensors_of
from polyopt.plugins._torch_runner import Runner

__all__ = ["REFUSALS", "Refusal", "Support", "compile_region", "example_of"]

Refusal = UnsupportedError | CapacityError | LegalityError
REFUSALS = (UnsupportedError, CapacityError, LegalityError)
"""What a region may be refused with; everything else is a mistake of the user or of polyopt."""

Reasons = Mapping[Node, str]


def example_of(tensor: torch.Tensor) -> torch.Tensor:
    """Zeros of the same shape, strides and type."""
    cells = 1 + sum((n - 1) * s for n, s in zip(tensor.shape, tensor.stride(), strict=True))
    return torch.zeros(cells, dtype=tensor.dtype).as_strided(tensor.shape, tensor.stride())


def _examples(regions: Iterable[Region]) -> list[torch.Tensor]:
    return [example_of(t) for r in regions for i in r.inputs for t in tensors_of(i)]


def compile_region(owner: GraphModule, region: Region, target: Machine, name: str) -> Runner:
    """`region` of the graph of `owner` ready to run; raises one of REFUSALS when no program can be made of it."""
    program = from_torch(module_of(owner, [region], name), _examples([region]))
    missing = _missing(program, target)
    if missing:
        raise UnsupportedError(missing)
    return Runner(program, compile(program, target=target), region)


def _missing(program: TorchProgram, target: Machine) -> str:
    lacking = sorted({t.dtype for t in program.scop.tensors} - set(target.dtypes))
    return f"target {target.name} has no element type {', '.join(lacking)}" if lacking else ""


@dataclass(frozen=True, slots=True)
class Support:
    """Finds the nodes of the graph of `owner` that cannot run on `target`, and why."""

    owner: GraphModule
    target: Machine

    def judges(self) -> Iterator[Callable[[Sequence[Node]], Reasons]]:
        """Ever costlier ways to find such nodes: what their tensors are, reading, compiling each kind by itself."""
        yield self.by_operands
        yield lambda nodes: self._by_kind(nodes, self._read)
        yield lambda nodes: self._by_kind(nodes, self._compiled)

    def by_operands(self, nodes: Iterable[Node]) -> dict[Node, str]:
        """Nodes that no program can be made of, whatever their operator."""
        return {n: reason for n in nodes if (reason := self._operand_reason(n)) is not None}

    def _operand_reason(self, node: Node) -> str | None:
        if not isinstance(node.target, torch._ops.OpOverload):
            return "not an ATen operator"
        operands = [i for i in node.all_input_nodes if i.op != "get_attr"]
        if any(result_of(i) is None for i in operands):
            return "an operand is a number or an object that is known only when it runs"
        results = [t for n in _items(node) or [node] for t in tensors_of(n)]
        if not results:
            return "its result is no tensor"
        several = [*results, *(t for i in operands for t in tensors_of(i))]
        return next((reason for t in several if (reason := self._tensor_reason(t)) is not None), None)

    def _tensor_reason(self, tensor: torch.Tensor) -> str | None:
        if tensor.layout != torch.strided or tensor.is_quantized:
            return "a tensor is sparse or quantized"
        if any(not isinstance(n, int) for n in tensor.shape):
            return "a shape depends on data"
        if tensor.numel() == 0:
            return "a tensor has no elements"
        try:
            name = dtype_name(tensor.dtype)
        except UnsupportedError as error:
            return error.message
        return None if name in self.target.dtypes else f"target {self.target.name} has no element type {name}"

    def _by_kind(
        self, nodes: Sequence[Node], judge: Callable[[Sequence[Region]], Sequence[str | None]]
    ) -> dict[Node, str]:
        """What `judge` says about one node of each kind, for all of its kind."""
        found = self.by_operands(nodes)
        kinds: dict[str, list[Node]] = {}
        for n in nodes:
            if n not in found:
                kinds.setdefault(_kind(n), []).append(n)
        reasons = judge([region_of([n, *_items(n)]) for n, *_ in kinds.values()])
        for members, reason in zip(kinds.values(), reasons, strict=True):
            if reason is not None:
                found |= dict.fromkeys(members, reason)
        return found

    def _read(self, regions: Sequence[Region]) -> list[str | None]:
        """Why the front end refuses each region.  They are exported together, halves of them where that fails."""
        if not regions:
            return []
        try:
            program = decomposed(self._module(regions), _examples(regions), {})
        except UnsupportedError as error:
            half = len(regions) // 2
            return [*self._read(regions[:half]), *self._read(regions[half:])] if half else [error.message]
        reasons: list[str | None] = []
        first = 0
        for region in regions:
            last = first + len(region.outputs)
            try:
                PartReader(program, first=first, last=last).read(["output"] * (last - first))
            except UnsupportedError as error:
                reasons.append(error.message)
            else:
                reasons.append(None)
            first = last
        return reasons

    def _compiled(self, regions: Sequence[Region]) -> list[str | None]:
        """Why each region is refused when it is compiled by itself."""
        reasons: list[str | None] = []
        for region in regions:
            try:
                compile_region(self.owner, region, self.target, "Operator")
            except REFUSALS as error:
                reasons.append(error.message)
            else:
                reasons.append(None)
        return reasons

    def _module(self, regions: Iterable[Region]) -> GraphModule:
        """The regions side by side, without where they come from: equal operators at other places share reasons."""
        module = module_of(self.owner, regions, "Operators")
        for n in module.graph.nodes:
            n.meta.pop("nn_module_stack", None)
            n.meta.pop("stack_trace", None)
        return module


@dataclass
class PartReader(Reader):
    """Reads what the results number `first` to `last` (excluded) of a program depend on."""

    first: int = 0
    last: int = 0

    def _results(self) -> list[object]:
        return super()._results()[self.first : self.last]


def _items(node: Node) -> list[Node]:
    """The nodes that pick results of `node`."""
    return [u for u in node.users if is_item(u)]


def _kind(node: Node) -> str:
    """Equal for nodes that apply the same operator to operands of the same kind and use the same results."""
    numbers: dict[Node, int] = {}

    def described(n: Node) -> str:
        kinds = [(t.dtype, tuple(t.shape), t.stride()) for t in tensors_of(n)]
        return f"{numbers.setdefault(n, len(numbers))}:{n.target if n.op == 'get_attr' else kinds}"

    used = sorted(str(i.args[1]) for i in _items(node))
    return repr((str(node.target), map_arg(node.args, described), map_arg(dict(node.kwargs), described), used))
