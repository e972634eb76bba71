"""Writes that would depend on an order inside one instruction: two to one cell, or one over a cell still to be read."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from polyopt.simulator._memory import Region, View
from polyopt.simulator._plan import OperandPlan, SitePlan, fail
from polyopt.simulator._result import Array

__all__ = ["WriteCheck", "may_meet"]


class WriteCheck:
    """Checks the writes of one compute or transfer site.  reduced: the lanes over which its body folds.

    What was found sound for some extents and relative places is not looked at again.
    """

    def __init__(self, site: SitePlan, output: View, inputs: Mapping[str, View], reduced: tuple[int, ...]) -> None:
        self.site = site
        self.output = output
        self.reduced = reduced
        self.hazards = {n for n, v in inputs.items() if may_meet(site.output, v.plan)}
        self.safe: set[tuple[int, ...]] = set()

    def check(
        self,
        target: Region,
        regions: Mapping[str, Region],
        extents: Sequence[int],
        at: Mapping[str, int],
        points: Sequence[Array] | None = None,
    ) -> None:
        """Lane points write different cells, and no point writes a cell that another one reads."""
        key = (*extents, *(regions[n].cell_offset - target.cell_offset for n in sorted(self.hazards)))
        explicit = [r for r in (target, *regions.values()) if r.cell_index is not None]
        if not explicit and key in self.safe:
            return
        self.check_injective(target, extents, points, at)
        for name in sorted(self.hazards):
            self.check_overlap(target, regions[name], name, at)
        if not explicit:
            self.safe.add(key)

    def check_injective(
        self, target: Region, extents: Sequence[int], points: Sequence[Array] | None, at: Mapping[str, int]
    ) -> None:
        wanted = [1 if k in self.reduced else n for k, n in enumerate(extents)]
        if not self.output.indices and steps_apart(self.output, wanted):
            return
        count = math.prod(wanted) if points is None else points[0].size
        cells = target.cells()[:, 0] if target.cell_index is None else target.cell_index
        different = np.unique(cells).size == count
        if not different:
            fail(
                self.site,
                at,
                f"two lane points write the same cell of {self.output.plan.array.name}",
                help="move the output along every lane that is not reduced",
                id="output-overlap",
            )

    def check_overlap(self, target: Region, source: Region, name: str, at: Mapping[str, int]) -> None:
        if same_cells(target, source):
            return
        if np.intersect1d(target.cells(), source.cells()).size:
            fail(
                self.site,
                at,
                f"it overwrites cells of {source.view.plan.array.name} that other lane points still read as {name}",
                help="write to cells apart from the inputs, or to exactly the cell that the same point reads",
                id="operand-overlap",
            )


def may_meet(a: OperandPlan, b: OperandPlan) -> bool:
    """Whether two operands lie in buffers that share bytes, or in the same tensor."""
    if a.array.space != b.array.space:
        return False
    if a.array.name == b.array.name:
        return True
    return bool(set(spans(a)) & set(spans(b))) or overlaps(spans(a), spans(b))


def spans(operand: OperandPlan) -> list[tuple[int, int]]:
    """Cells of each copy within a partition, as half-open intervals."""
    array = operand.array
    axes = array.shape[1:] if array.has_partitions else array.shape
    size = math.prod(axes) * array.cells_per_element
    return [
        (array.cell_offset + c * array.cell_strides[0], array.cell_offset + c * array.cell_strides[0] + size)
        for c in range(array.copies)
    ]


def overlaps(a: Sequence[tuple[int, int]], b: Sequence[tuple[int, int]]) -> bool:
    return any(x < v and u < y for x, y in a for u, v in b)


def steps_apart(view: View, extents: Sequence[int]) -> bool:
    """Whether the steps alone show that the lane points of a whole box are different cells."""
    reach = 0
    for step, n in sorted((abs(s), n) for s, n in zip(view.value_steps, extents, strict=True) if n > 1):
        if step <= reach:
            return False
        reach += step * (n - 1)
    return True


def same_cells(a: Region, b: Region) -> bool:
    """Whether every lane point touches the same cell in both."""
    if a.view.plan.array.name != b.view.plan.array.name:
        return False
    if a.cell_index is not None or b.cell_index is not None:
        if a.cell_index is None or b.cell_index is None or a.cell_index.shape != b.cell_index.shape:
            return False
        return bool((a.cell_index == b.cell_index).all())
    if a.extents != b.extents or a.cell_offset != b.cell_offset:
        return False
    steps = zip(a.view.cell_steps, b.view.cell_steps, a.extents, strict=True)
    return all(s == t for s, t, n in steps if n > 1)
