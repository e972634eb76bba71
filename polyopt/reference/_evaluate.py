"""The fast evaluator: the interpreter's results from whole-array operations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from polyopt.ir import Assign, Scop, Tensor
from polyopt.reference._affine import compile_constraint
from polyopt.reference._algebra import Algebra, ExactAlgebra, Float64Algebra
from polyopt.reference._cells import (
    Array,
    CellError,
    Cells,
    bind_inputs,
    bind_sizes,
    check_mode,
    make_cells,
    outputs_of,
    refuse_opaque,
)
from polyopt.reference._leaf import LeafRunner
from polyopt.reference._part import Part
from polyopt.reference._plan import Block, Leaf, PlanNode, Repeat, leaves, make_plan
from polyopt.reference._reader import Store
from polyopt.reference._repeat import repeat
from polyopt.reference._scalar import Flat, Functions, compile_assign
from polyopt.reference._waves import WaveRunner, is_poor

__all__ = ["evaluate", "run_program"]

Runner = Callable[[dict[str, int]], None]


def evaluate(
    scop: Scop,
    inputs: Mapping[str, Any],
    sizes: Mapping[str, int],
    mode: str = "float64",
    *,
    round_outputs: bool = True,
    keep_temps: bool = False,
    functions: Functions | None = None,
) -> dict[str, Array]:
    """The same as `interpret`, up to the order in which float64 reductions are summed, but fast.

    Arguments, results and errors are those of `interpret`; with several faulty instances, another one may be named.
    """
    check_mode(mode)
    algebra: Algebra = Float64Algebra(functions) if mode == "float64" else ExactAlgebra()
    cells = run_program(scop, inputs, sizes, algebra, keep_temps=keep_temps, functions=functions)
    return outputs_of(cells, mode, round_outputs, keep_temps)


def run_program(
    scop: Scop,
    inputs: Mapping[str, Any],
    sizes: Mapping[str, int],
    algebra: Algebra,
    *,
    keep_temps: bool = False,
    functions: Functions | None = None,
) -> dict[str, Cells]:
    """Run the program with any algebra; all tensors as they are afterwards (temps only with `keep_temps`)."""
    refuse_opaque(scop)
    sizes = bind_sizes(scop, sizes)
    arrays = bind_inputs(scop, inputs, sizes, algebra.mode)
    plan = make_plan(scop, tuple(sorted(sizes.items())), keep_temps)
    machine = _Machine(plan.tensors, arrays, sizes, algebra, functions)
    with np.errstate(all="ignore"):
        machine.prepare(plan.root)
        machine.runner(plan.root)({})
    return {n: c for n, c in machine.cells.items() if keep_temps or c.tensor.role != "temp"}


class _Machine:
    """Tensors, and the functions that run a plan on them."""

    def __init__(
        self,
        tensors: tuple[Tensor, ...],
        arrays: Mapping[str, Array],
        sizes: Mapping[str, int],
        algebra: Algebra,
        functions: Functions | None,
    ) -> None:
        self.algebra, self.functions = algebra, functions
        self.tensors = {t.name: t for t in tensors}
        self.cells = make_cells(tensors, arrays, sizes, algebra.mode)
        self.store = Store(self.cells)
        self.flats = {n: _flat(c) for n, c in self.cells.items()}

    def prepare(self, root: PlanNode) -> None:
        """Let the algebra add its parts to every tensor."""
        combines: dict[str, set[str]] = {}
        for leaf in leaves(root):
            if leaf.part.combine is not None:
                combines.setdefault(leaf.part.target.tensor, set()).add(leaf.part.combine)
        for name, cells in self.cells.items():
            self.algebra.prepare(cells, frozenset(combines.get(name, ())))

    def runner(self, node: PlanNode) -> Runner:
        if isinstance(node, Block):
            return _block([self.runner(child) for child in node.children])
        if isinstance(node, Repeat):
            run = repeat(node, self.runner(node.body))
            return run if self.algebra.scalar or not node.alone else self.waves(node, run)
        return self.leaf(node)

    def waves(self, node: Repeat, run: Runner) -> Runner:
        """The loop in waves, when its leaves run few instances at a time."""
        inside = list(leaves(node))
        if not is_poor([(x.part, x.sequential) for x in inside]):
            return run
        runners = [
            LeafRunner(x.part, x.dims, x.sequential, self.algebra, self.store, self.tensors, None, listed=True)
            for x in inside
        ]
        return WaveRunner(runners, node.outer, self.cells, run).run

    def leaf(self, leaf: Leaf) -> Runner:
        part = leaf.part
        scalar = None
        if self.algebra.scalar:
            assign = Assign(part.target, part.value, part.combine)
            scalar = compile_assign(assign, self.flats, self.algebra.mode, self.functions)
        runner = LeafRunner(part, leaf.dims, leaf.sequential, self.algebra, self.store, self.tensors, scalar)
        if scalar is None or leaf.dims:
            return runner.run
        return _point(part, scalar, runner)


def _flat(cells: Cells) -> Flat:
    """The values of some cells as the flat sequence that scalar code reads and writes."""
    written = None if cells.written is None else _flat_view(cells.written)
    return Flat(cells.tensor, cells.shape, _flat_view(cells.parts[0]), written)


def _flat_view(array: Any) -> Any:
    """The elements of a contiguous array as a sequence of Python numbers, for reading and writing."""
    return memoryview(array.reshape(-1))


def _block(children: list[Runner]) -> Runner:
    def run(env: dict[str, int]) -> None:
        for child in children:
            child(env)

    return run


def _point(part: Part, scalar: Runner, runner: LeafRunner) -> Runner:
    """A leaf without vector dimensions: one instance wherever the domain holds."""
    pieces = [[compile_constraint(c) for c in piece] for piece in part.domain.basic()]

    def run(env: dict[str, int]) -> None:
        if any(all(holds(env) for holds in piece) for piece in pieces):
            try:
                scalar(env)
            except CellError as error:
                raise runner.explain(error, env) from None

    return run
