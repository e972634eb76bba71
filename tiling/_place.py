"""Where a term's buffer stands among the tile loops and how much it covers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod

from polyopt.hwcost import transfer_busy_ns
from polyopt.ir import Access, Indirect, Subscript, access_variables, dtype
from polyopt.ir.mapping import Temp, Window
from polyopt.sets import Affine
from polyopt.tiling._problem import Problem
from polyopt.tiling._sketch import SketchPlacement, contiguous_run, crossing_cost
from polyopt.tiling._space import LoopShape
from polyopt.tiling._specs import transpose_spec

__all__ = ["natural_depth", "place_access", "place_temp"]


def natural_depth(dims: Sequence[str], loops: Sequence[LoopShape]) -> int:
    """Number of loops down to the last one that moves a term along one of `dims`: inside it, the term's tile is
    constant.
    """
    return max((k + 1 for k, loop in enumerate(loops) if loop.dim in dims), default=0)


def covered(problem: Problem, dim: str, loops: Sequence[LoopShape], tiles: Mapping[str, int]) -> int:
    """Points of `dim` that a buffer inside `loops` covers: the innermost step, or the whole extent."""
    steps = [loop.step for loop in loops if loop.dim == dim]
    extent = max(1, problem.extent(dim))
    return min(steps[-1], extent) if steps else max(extent, tiles[dim] if tiles[dim] < extent else 1)


def place_access(
    problem: Problem,
    access: Access,
    loops: Sequence[LoopShape],
    tiles: Mapping[str, int],
    partition: str | None,
    memory: str,
    *,
    depth: int | None = None,
    store: bool = False,
) -> SketchPlacement:
    """Buffer of an access at `depth` (default: the natural one), transposed on the way when its rows lie along
    `partition`.
    """
    dims = problem.dims_of(access)
    at = natural_depth(dims, loops) if depth is None else depth
    points = {d: covered(problem, d, loops[:at], tiles) for d in dims}
    windows = _windows(problem, access, points, partition) if not store else ()
    sizes = _window_sizes(access, points, windows)
    placed = SketchPlacement(
        term=access,
        memory=memory,
        dtype=problem.tensors[access.tensor].dtype,
        depth=at,
        copies=2 if at else 1,
        partition=partition,
        partition_tile=tiles[partition] if partition else 1,
        sizes=sizes,
        direction="store" if store else "load",
        windows=windows,
    )
    return replace(placed, through=_through(problem, placed, access, tiles))


def _windows(problem: Problem, access: Access, points: Mapping[str, int], partition: str | None) -> tuple[Window, ...]:
    """Subscripts worth covering as a range: several dimensions move along them, or one in larger steps."""
    if access.tensor not in problem.whole or any(isinstance(s, Indirect) for s in access.subscripts):
        return ()
    found: list[Window] = []
    for axis, s in enumerate(access.affine_subscripts):
        moving = [d for d in points if s.coefficient(d)]
        strided = any(abs(s.coefficient(d)) > 1 and points[d] > 1 for d in moving)
        if partition not in moving and (len(moving) > 1 or strided):
            found.append(Window(axis, f"w{axis}_{access.tensor}", s))
    return tuple(found)


def _window_sizes(access: Access, points: Mapping[str, int], windows: Sequence[Window]) -> dict[str, int]:
    """Covered points by dimension or window, in the order of the tensor's axes, so that rows stay rows on the chip.

    Dimensions that move only along windows have none of their own.
    """
    axes = {w.axis for w in windows}
    rest = [s for axis, s in enumerate(access.subscripts) if axis not in axes]
    alone = {d for d in points for s in rest if d in subscript_variables(s)}
    sizes = {d: n for d, n in points.items() if d in alone}
    for w in windows:
        sizes[w.name] = 1 + sum(abs(w.expr.coefficient(d)) * (n - 1) for d, n in points.items())
    axis_of = {d: axis for axis, s in enumerate(access.subscripts) for d in sizes if d in subscript_variables(s)}
    axis_of.update({w.name: w.axis for w in windows})
    return {d: sizes[d] for d in sorted(sizes, key=lambda d: axis_of[d])}


def subscript_variables(s: Subscript) -> frozenset[str]:
    """Names in a subscript, those of a data-dependent one included."""
    return s.variables() if isinstance(s, Affine) else access_variables(s.access) | s.offset.variables()


def place_temp(
    problem: Problem,
    temp: Temp,
    loops: Sequence[LoopShape],
    tiles: Mapping[str, int],
    partition: str | None,
    memory: str,
    depth: int,
) -> SketchPlacement:
    """Buffer of a value that never leaves the chip."""
    sizes = {d: covered(problem, d, loops[:depth], tiles) for d in temp.dims}
    copies = 2 if depth else 1
    tile = tiles[partition] if partition else 1
    return SketchPlacement(temp, memory, temp.dtype, depth, copies, partition, tile, sizes)


def _through(problem: Problem, p: SketchPlacement, access: Access, tiles: Mapping[str, int]) -> str | None:
    """The dimension to put on the partitions of a copy that is then transposed, when that takes less time than copying
    with the rows as they must lie.
    """
    partition, sizes = p.partition, p.sizes
    if partition is None or sizes.get(partition, 1) < 2 or any(isinstance(s, Indirect) for s in access.subscripts):
        return None
    if transpose_spec(problem.machine, problem.tensors[access.tensor].dtype) is None:
        return None
    others = [d for d in sizes if d != partition and sizes[d] >= 2]
    times = {d: _crossing_ns(problem, replace(p, through=d), access) for d in others}
    best = min(others, key=lambda d: (times[d], -sizes[d]), default=None)
    return best if best is not None and times[best] < _rows_ns(problem, p, access) else None


def _rows_ns(problem: Problem, p: SketchPlacement, access: Access) -> float:
    """Busy time of one copy of what `p` covers."""
    points, run = prod(p.sizes.values()), contiguous_run(problem, p, access)
    return transfer_busy_ns(problem.machine, points / run, run * dtype(p.dtype).element_bytes)


def _crossing_ns(problem: Problem, p: SketchPlacement, access: Access) -> float:
    """Busy time of a crossing copy: whole rows, then every tile turned and moved."""
    total = _rows_ns(problem, p, access)
    for op in crossing_cost(problem, p, 1.0):
        engine = problem.machine.engine(op.engine)
        cycles = problem.machine.spec(op.spec).cycles.evaluate(op.lanes, op.operands) + engine.overhead_cycles
        total += op.count * cycles / engine.clock_ghz
    return total
