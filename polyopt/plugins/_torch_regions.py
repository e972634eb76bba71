"""Regions of a functional graph of ATen operators: which nodes run together, and a graph of their own for each.

The graph is the one that AOTAutograd makes: no operator changes its operands, so a region may run as soon as its inputs
are there.  Nodes get levels: even ones run on the target, odd ones eagerly, and a node depends on its own level and on
lower ones only.  All target nodes of a level are one region.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

import torch
from torch.fx import Graph, GraphModule, Node

from polyopt.frontend.torch._rules import VIEWS

__all__ = [
    "Region",
    "assemble",
    "computes",
    "is_item",
    "levels",
    "module_of",
    "region_of",
    "result_of",
    "tensors_of",
]


@dataclass(frozen=True, slots=True)
class Region:
    """Nodes that run together, in the order of their graph.

    `inputs`: nodes outside whose tensors they take; `outputs`: nodes inside whose results are used outside.
    """

    nodes: tuple[Node, ...]
    inputs: tuple[Node, ...]
    outputs: tuple[Node, ...]


def is_item(node: Node) -> bool:
    """Whether `node` picks one of several results of another; it stays with that one always."""
    return node.op == "call_function" and node.target is operator.getitem


def computes(node: Node) -> bool:
    """Whether `node` applies an operator."""
    return node.op == "call_function" and not is_item(node)


def tensors_of(node: Node) -> tuple[torch.Tensor, ...]:
    """The tensors that stand for the node's results."""
    found = node.meta.get("val")
    several = found if isinstance(found, (list, tuple)) else [found]
    return tuple(t for t in several if isinstance(t, torch.Tensor))


def result_of(node: Node) -> torch.Tensor | None:
    """The tensor that stands for the node's result; None when it is no tensor or several."""
    found = node.meta.get("val")
    return found if isinstance(found, torch.Tensor) else None


def levels(graph: Graph, wanted: Collection[Node]) -> dict[Node, int]:
    """The level of every node that applies an operator or picks a result; `wanted` may run on the target.

    Levels are as low as possible; a target node whose users are all higher then moves up to the first of them, unless
    that carries more bytes between levels than its own result has.  Wanted nodes that only rename elements, or that
    take no tensor, for eager users or results alone, stay eager: a program for them would only copy.
    """
    nodes = [n for n in graph.nodes if computes(n)]
    on_target = _worthwhile(nodes, wanted)
    found = _lowest(nodes, on_target)
    for n in reversed(nodes):
        if n in on_target:
            found[n] = _raised(n, found, on_target)
    return {n: found[_source(n)] for n in graph.nodes if n.op == "call_function"}


def _source(node: Node) -> Node:
    """The operator whose result `node` is."""
    while is_item(node):
        node = node.all_input_nodes[0]
    return node


def _users(node: Node) -> Iterable[Node]:
    """The nodes that use a result of `node`, picking one is no use."""
    for user in node.users:
        if is_item(user):
            yield from _users(user)
        else:
            yield user


def _worthwhile(nodes: Iterable[Node], wanted: Collection[Node]) -> set[Node]:
    """`wanted` without what only serves eager users and computes nothing."""
    kept = set(wanted)
    for n in reversed(list(nodes)):
        idle = str(n.target) in VIEWS or not (n.all_input_nodes or _is_ordered(n))
        users = list(_users(n))
        if not users or (idle and not any(u in kept for u in users)):
            kept.discard(n)
    return kept


def _is_ordered(node: Node) -> bool:
    """Whether `node` draws random numbers or has effects: such nodes keep their order among themselves."""
    tags = getattr(node.target, "tags", ())
    return torch.Tag.nondeterministic_seeded in tags or node.is_impure()


def _lowest(nodes: Iterable[Node], on_target: Collection[Node]) -> dict[Node, int]:
    found: dict[Node, int] = {}
    last: Node | None = None
    for n in nodes:
        before = [s for s in map(_source, n.all_input_nodes) if s in found]
        if _is_ordered(n):
            before += [last] if last is not None else []
            last = n
        inside = n in on_target
        found[n] = max((found[b] + ((b in on_target) != inside) for b in before), default=0 if inside else -1)
    return found


def _raised(node: Node, found: Mapping[Node, int], on_target: Collection[Node]) -> int:
    """The level of the first user of `node` where moving there pays, else its own."""
    users = list(_users(node))
    if any(u not in found for u in users):
        return found[node]
    first = min(found[u] - (u not in on_target) for u in users)
    fresh = [i for i in node.all_input_nodes if _source(i) in found and not _crosses(i, node, found)]
    carried = sum(_bytes(t) for i in fresh for t in tensors_of(i))
    return first if carried <= sum(_bytes(t) for t in tensors_of(node)) else found[node]


def _crosses(value: Node, but: Node, found: Mapping[Node, int]) -> bool:
    """Whether another user than `but` already needs `value` outside its level."""
    own = found[_source(value)]
    return any(found.get(u, own + 1) != own for u in _users(value) if u is not but)


def _bytes(tensor: torch.Tensor) -> int:
    return int(tensor.numel()) * tensor.element_size()


def region_of(nodes: Iterable[Node]) -> Region:
    """`nodes` as a region; constants of the graph's owner are no inputs."""
    inside = dict.fromkeys(nodes)
    outside = dict.fromkeys(i for n in inside for i in n.all_input_nodes if i not in inside)
    return Region(
        tuple(inside),
        tuple(i for i in outside if i.op != "get_attr"),
        tuple(n for n in inside if any(u not in inside for u in n.users)),
    )


def module_of(owner: GraphModule, regions: Iterable[Region], name: str) -> GraphModule:
    """A module that takes the inputs of all `regions`, one after the other, and returns their outputs, likewise.

    Constants of `owner` come along.  What one region computes is an input of another like any other.
    """
    graph = Graph()
    constants: dict[str, object] = {}
    results: list[Node] = []
    parts = list(regions)
    for region, copies in zip(parts, _placeholders(graph, parts), strict=True):
        for n in region.nodes:
            for i in n.all_input_nodes:
                if i.op == "get_attr" and i not in copies:
                    constants[str(i.target)] = attribute(owner, str(i.target))
                    copies[i] = graph.node_copy(i)
            copies[n] = graph.node_copy(n, copies.__getitem__)
        results += [copies[n] for n in region.outputs]
    graph.output(tuple(results))
    return GraphModule(constants, graph, name)


def _placeholders(graph: Graph, regions: Iterable[Region]) -> list[dict[Node, Node]]:
    """For each region its inputs and the placeholders made for them, all of different names."""
    names: set[str] = set()
    made: list[dict[Node, Node]] = []
    for region in regions:
        made.append({})
        for i in region.inputs:
            name = next(n for k in itertools.count() if (n := f"{i.name}_{k}" if k else i.name) not in names)
            names.add(name)
            made[-1][i] = graph.placeholder(name)
            made[-1][i].meta = dict(i.meta)
    return made


def attribute(owner: torch.nn.Module, path: str) -> object:
    """What `owner` holds under the dotted `path`."""
    return operator.attrgetter(path)(owner)


def assemble(
    owner: GraphModule,
    found: Mapping[Node, int],
    regions: Mapping[int, Region],
    runners: Mapping[int, torch.nn.Module],
) -> GraphModule:
    """The graph of `owner` in which each of `regions` is one call of its runner; the other nodes are copied.

    `found`: the level of every node, `regions` and `runners`: by level; levels without a runner run eagerly.
    """
    graph = Graph()
    root: dict[str, object] = {}
    copies: dict[Node, Node] = {}
    for n in owner.graph.nodes:
        if n.op in ("placeholder", "get_attr"):
            copies[n] = graph.node_copy(n)
            if n.op == "get_attr":
                root[str(n.target)] = attribute(owner, str(n.target))
    for level in sorted(set(found.values())):
        if level not in runners:
            for n in (n for n in found if found[n] == level):
                copies[n] = graph.node_copy(n, copies.__getitem__)
            continue
        name = f"region_{sorted(runners).index(level)}"
        root[name] = runners[level]
        call = graph.call_module(name, tuple(copies[i] for i in regions[level].inputs))
        for k, n in enumerate(regions[level].outputs):
            copies[n] = graph.call_function(operator.getitem, (call, k))
    graph.node_copy(owner.graph.output_node(), copies.__getitem__)
    return GraphModule(root, graph)
