"""What the mapping made of a statement and of each of its loops."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from polyopt.ir.mapping import Kernel, kernels
from polyopt.ir.mapping import Mapping as ProgramMapping
from polyopt.pipeline import Compiled, Kernels, LoopSchedule
from polyopt.schedule import Absorbed, Leaf, LoopTree, SequentialLoop, leaves

__all__ = ["Use", "Uses"]


@dataclass(frozen=True, slots=True)
class Use:
    """How a loop of one statement runs: `parallel` when its iterations are in no particular order; `text` says how."""

    parallel: bool
    text: str


@dataclass(frozen=True, slots=True)
class Uses:
    """The final loop tree with all statements, what kernels took over, and the mapping where there is one.

    tree: as the pass `schedule` made it.  absorbed: reduction -> what its kernel took over.
    """

    tree: tuple[LoopTree, ...]
    absorbed: Mapping[str, Absorbed]
    mapping: ProgramMapping | None

    @staticmethod
    def of(compiled: Compiled) -> Uses:
        """InputError when the pipeline makes no schedule."""
        kernels_made = compiled.unit.products.get("kernels")
        absorbed = kernels_made.absorbed if isinstance(kernels_made, Kernels) else {}
        mapping = compiled.unit.products.get("mapping")
        tree = compiled.unit.product("schedule", LoopSchedule).tree
        return Uses(tree, absorbed, mapping if isinstance(mapping, ProgramMapping) else None)

    def kernel(self, statement: str) -> Kernel | None:
        """The kernel that the statement has of its own."""
        found = kernels(self.mapping.nodes) if self.mapping is not None else iter(())
        return next((k for k in found if k.statement.name == statement), None)

    def host(self, statement: str) -> tuple[str, str] | None:
        """(reduction whose kernel computes the statement, `before` or `behind`); None when it has its own kernel."""
        if self.mapping is not None and self.kernel(statement) is not None:
            return None
        for reduction, taken in self.absorbed.items():
            for place, leaf in (("before", taken.before), ("behind", taken.behind)):
                if leaf is not None and leaf.statement == statement:
                    return reduction, place
        return None

    def sequential(self, statement: str) -> tuple[SequentialLoop, ...]:
        """The sequential loops around a statement, outermost first."""
        return next(_around(self.tree, statement), ())

    def parallel(self, statement: str) -> tuple[str, ...]:
        """The iterators of a statement that no dependence orders inside its sequential loops."""
        return next((leaf.parallel for leaf in leaves(self.tree) if leaf.statement == statement), ())

    def of_loop(self, statement: str, iterator: str) -> Use:
        """How the loop with this iterator runs for one statement."""
        for loop in self.sequential(statement):
            if dict(loop.iterators).get(statement) == iterator:
                return Use(False, "run in order, as a sequential loop")
        if self.mapping is None:
            return Use(True, "left parallel")
        host = self.host(statement)
        if host is not None:
            return Use(True, f"part of the kernel of {host[0]}")
        kernel = self.kernel(statement)
        if kernel is None:
            return Use(True, "no instance")
        if kernel.remark:
            return Use(False, f"run point by point on the general engine ({kernel.remark})")
        return Use(True, _in_kernel(kernel, iterator))


def _around(nodes: tuple[LoopTree, ...], statement: str) -> Iterator[tuple[SequentialLoop, ...]]:
    for node in nodes:
        if isinstance(node, Leaf):
            if node.statement == statement:
                yield ()
        else:
            yield from ((node, *inside) for inside in _around(node.body, statement))


def _in_kernel(kernel: Kernel, iterator: str) -> str:
    """Lanes and tiles of a dimension, or of the dimensions that it was split into."""
    known = [d.name for d in kernel.dims]
    parts = [iterator] if iterator in known else [d for d in known if d.startswith(f"{iterator}_")]
    if not parts:
        return "follows from the other loops"
    return " and ".join(_dim_text(kernel, d, "" if d == iterator else f"{d}: ") for d in parts)


def _dim_text(kernel: Kernel, name: str, prefix: str) -> str:
    dim = kernel.dim(name)
    lanes = dict.fromkeys(f"{op.spec}.{role}" for op in kernel.ops for role, dims in op.lanes if name in dims)
    steps = [loop.step for loop in kernel.loops if loop.dim == name]
    found = [f"{dim.tile} at once on lanes {', '.join(lanes)}"] if lanes and dim.tile > 1 else []
    if any(p.partition == name and p.spans for p in kernel.placements):
        found.append("on the partitions")
    if steps:
        found.append(f"a loop in steps of {' and '.join(map(str, steps))}")
    return prefix + (", ".join(found) if found else "one point")
