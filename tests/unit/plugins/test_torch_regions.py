"""Division of graphs into regions: whatever may run on the target, the whole computes what the graph computes."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence

import pytest

pytest.importorskip("torch")

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.fx import Graph, GraphModule, Interpreter, Node

from polyopt.plugins._torch_regions import (
    Region,
    assemble,
    computes,
    is_item,
    levels,
    module_of,
    region_of,
    result_of,
)
from polyopt.plugins._torch_runner import laid_out
from polyopt.plugins._torch_support import example_of

pytestmark = pytest.mark.torch

aten = torch.ops.aten


def apply(graph: Graph, target: torch._ops.OpOverload, *args: object) -> Node:
    """A call of `target`, named after it: `relu`, then `relu_1`, ..."""
    return graph.create_node("call_function", target, args, name=str(target).split(".")[1])  # type: ignore[arg-type]


def item(graph: Graph, several: Node, k: int) -> Node:
    return graph.call_function(operator.getitem, (several, k))


class Recorder(Interpreter):
    """Runs a graph and keeps every result as the metadata of its node."""

    def run_node(self, n: Node) -> object:
        n.meta["val"] = super().run_node(n)
        found: object = n.meta["val"]
        return found


def recorded(build: Callable[[Graph, Sequence[Node]], Sequence[Node]], *inputs: torch.Tensor) -> GraphModule:
    """The graph that `build` makes of placeholders for `inputs`, with metadata."""
    graph = Graph()
    graph.output(tuple(build(graph, [graph.placeholder(f"x{k}") for k in range(len(inputs))])))
    module = GraphModule({}, graph)
    Recorder(module).run(*inputs)
    return module


def divided(module: GraphModule, wanted: set[str]) -> tuple[GraphModule, dict[int, Region]]:
    """`module` with the regions that the nodes called `wanted` form, each run by PyTorch."""
    chosen = {n for n in module.graph.nodes if computes(n) and n.name in wanted}
    found = levels(module.graph, chosen)
    regions = {k: region_of(n for n in found if found[n] == k) for k in set(found.values()) if k % 2 == 0}
    runners = {k: module_of(module, [r], f"Region{k}") for k, r in regions.items()}
    return assemble(module, found, regions, runners), regions


KINDS = ("relu", "add", "t", "sort", "split", "ones")


@st.composite
def graphs(draw: st.DrawFn) -> tuple[GraphModule, set[str]]:
    """A random graph on 3 x 3 tensors; names of the nodes wanted on the target."""

    def build(graph: Graph, inputs: Sequence[Node]) -> Sequence[Node]:
        values = list(inputs)
        for kind in draw(st.lists(st.sampled_from(KINDS), min_size=1, max_size=12)):
            a, b = (values[draw(st.integers(0, len(values) - 1))] for _ in range(2))
            if kind == "relu":
                values.append(apply(graph, aten.relu.default, a))
            elif kind == "add":
                values.append(apply(graph, aten.add.Tensor, a, b))
            elif kind == "t":
                values.append(apply(graph, aten.t.default, a))
            elif kind == "ones":
                values.append(apply(graph, aten.ones.default, [3, 3]))
            elif kind == "sort":
                both = apply(graph, aten.sort.default, a)
                values.append(item(graph, both, 0))
            else:
                parts = apply(graph, aten.split.Tensor, a, 2)
                items = [item(graph, parts, k) for k in range(2)]
                values.append(apply(graph, aten.cat.default, items[::-1]))
        count = draw(st.integers(1, 3))
        return [values[draw(st.integers(0, len(values) - 1))] for _ in range(count)]

    module = recorded(build, *(torch.arange(9.0).reshape(3, 3) * s for s in (1.0, -2.0)))
    names = [n.name for n in module.graph.nodes if computes(n)]
    return module, set(draw(st.lists(st.sampled_from(names), unique=True)))


@settings(max_examples=80, deadline=None)
@given(graphs())
def test_divided_graph_computes_the_same(drawn: tuple[GraphModule, set[str]]) -> None:
    module, wanted = drawn
    whole, regions = divided(module, wanted)
    inputs = [torch.tensor([[3.0, -1.0, 2.0], [0.5, 7.0, -4.0], [1.0, 0.0, -6.0]]) * s for s in (1.0, 3.0)]
    for found, expected in zip(whole(*inputs), module(*inputs), strict=True):
        torch.testing.assert_close(found, expected, rtol=0, atol=0)
    inside = [n for r in regions.values() for n in r.nodes]
    assert len(set(inside)) == len(inside)
    assert {n.name for n in inside if computes(n)} <= wanted
    for r in regions.values():
        assert r.outputs and all(result_of(n) is not None for n in (*r.inputs, *r.outputs))
        assert all(n.all_input_nodes[0] in r.nodes for n in r.nodes if is_item(n))


@settings(max_examples=30, deadline=None)
@given(graphs())
def test_regions_side_by_side(drawn: tuple[GraphModule, set[str]]) -> None:
    """Each operator with inputs of its own gives what it gave in the graph."""
    module, _ = drawn
    regions = [region_of([n, *filter(is_item, n.users)]) for n in module.graph.nodes if computes(n)]
    inputs = [i.meta["val"] for r in regions for i in r.inputs]
    expected = [o.meta["val"] for r in regions for o in r.outputs]
    torch.testing.assert_close(list(module_of(module, regions, "All")(*inputs)), expected, rtol=0, atol=0)


def test_weights_are_turned_where_they_are_used() -> None:
    """A view of an input goes to the region of its first user, not to an earlier one that would copy it."""

    def build(graph: Graph, inputs: Sequence[Node]) -> Sequence[Node]:
        x, first, second = inputs
        t = apply(graph, aten.t.default, first)
        last_t = apply(graph, aten.t.default, second)
        y = apply(graph, aten.mm.default, x, t)
        both = apply(graph, aten.sort.default, y)
        ordered = item(graph, both, 0)
        z = apply(graph, aten.mm.default, ordered, last_t)
        return [apply(graph, aten.t.default, z)]

    module = recorded(build, torch.rand(2, 3), torch.rand(4, 3), torch.rand(5, 4))
    _, regions = divided(module, {"t", "t_1", "mm", "mm_1", "t_2"})
    assert [[n.name for n in r.nodes] for _, r in sorted(regions.items())] == [["t", "mm"], ["t_1", "mm_1"]]


def test_small_results_travel_instead_of_large_operands() -> None:
    def build(graph: Graph, inputs: Sequence[Node]) -> Sequence[Node]:
        large = apply(graph, aten.relu.default, inputs[0])
        total = apply(graph, aten.sum.default, large)
        sorted_total = apply(graph, aten.sort.default, apply(graph, aten.sum.default, inputs[1]))
        value = item(graph, sorted_total, 0)
        return [apply(graph, aten.add.Tensor, value, total)]

    module = recorded(build, torch.rand(9, 9), torch.rand(2))
    _, regions = divided(module, {"relu", "sum_1", "sum_2", "add"})
    assert {n.name for n in regions[0].outputs} == {"sum_1", "sum_2"}


def test_random_numbers_are_drawn_in_their_order() -> None:
    def build(graph: Graph, inputs: Sequence[Node]) -> Sequence[Node]:
        late = apply(graph, aten.rand_like.default, apply(graph, aten.relu.default, inputs[0]))
        early = apply(graph, aten.rand_like.default, inputs[0])
        return [late, apply(graph, aten.relu.default, early)]

    module = recorded(build, torch.rand(3, 3))
    whole, _ = divided(module, {"relu", "relu_1"})
    torch.manual_seed(3)
    found = whole(torch.ones(3, 3))
    torch.manual_seed(3)
    torch.testing.assert_close(found, module(torch.ones(3, 3)))


def test_a_program_that_would_only_copy_is_not_made() -> None:
    def build(graph: Graph, inputs: Sequence[Node]) -> Sequence[Node]:
        ones = apply(graph, aten.ones.default, [3, 3])
        return [apply(graph, aten.t.default, inputs[0]), apply(graph, aten.sort.default, ones)]

    module = recorded(build, torch.rand(2, 3))
    _, regions = divided(module, {"t", "ones"})
    assert not regions


@pytest.mark.parametrize(
    "like",
    [
        torch.rand(3, 4),
        torch.rand(4, 3).t(),
        torch.rand(2, 3, 4, 5).to(memory_format=torch.channels_last),
        torch.rand(3, 1).expand(3, 4),
        torch.rand(()),
        torch.rand(3, 8)[:, ::2],
    ],
    ids=["contiguous", "transposed", "channels_last", "expanded", "scalar", "gaps"],
)
def test_results_have_the_recorded_strides(like: torch.Tensor) -> None:
    given = like.contiguous() + 1
    found = laid_out(given, like)
    assert [s for n, s in zip(found.shape, found.stride(), strict=True) if n > 1] == [
        s for n, s in zip(like.shape, like.stride(), strict=True) if n > 1
    ]
    torch.testing.assert_close(found, given)
    example = example_of(like)
    assert (example.shape, example.stride(), example.dtype) == (like.shape, like.stride(), like.dtype)
    assert not example.any()


def test_overlapping_results_are_given_apart() -> None:
    like = torch.arange(6.0).unfold(0, 3, 1)
    torch.testing.assert_close(laid_out(like.contiguous(), like), like)
