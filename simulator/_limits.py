"""Rules that depend on sizes: lane extents, partition starts, banks.  Bounds are checked where views are evaluated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from polyopt.simulator._plan import OperandPlan, SitePlan, fail

__all__ = ["check_limits", "role_extents", "watched_numbers"]


def role_extents(site: SitePlan, extents: Sequence[int]) -> dict[str, int]:
    """Specification lane -> extent: the product of the instruction's lanes of that role."""
    totals: dict[str, int] = {}
    for role, n in zip(site.roles, extents, strict=True):
        totals[role] = totals.get(role, 1) * n
    return totals


def watched_numbers(operand: OperandPlan) -> tuple[int, ...]:
    """Which numbers of an operand (axes, then the copy) the checks of `check_limits` look at."""
    if not operand.array.has_partitions:
        return ()
    axes = len(operand.base)
    if operand.spec.single_bank and operand.array.memory.bank_bytes:
        return tuple(range(axes + 1))
    return (0,)


def check_limits(site: SitePlan, extents: Sequence[int], numbers: Sequence[int], at: Mapping[str, int]) -> None:
    """Raise ProgramError when a compute instruction breaks a limit of its specification or of a memory.

    extents: of the lanes, all >= 1.  numbers: the evaluated bases of all views (only the watched ones are used).
    """
    totals = role_extents(site, extents)
    for lane in site.spec.lanes:
        if lane.max is not None and totals.get(lane.name, 1) > lane.max:
            fail(
                site,
                at,
                f"lane {lane.name} has extent {totals[lane.name]}, at most {lane.max}",
                help="use smaller tiles",
                id="lane-limit",
            )
    if site.spec.kind != "compute":
        return
    for operand in site.operands:
        if operand.array.has_partitions:
            _check_partitions(site, operand, extents, numbers, at)
            if operand.spec.single_bank and operand.array.memory.bank_bytes:
                _check_bank(site, operand, extents, numbers, at)


def _check_partitions(
    site: SitePlan, operand: OperandPlan, extents: Sequence[int], numbers: Sequence[int], at: Mapping[str, int]
) -> None:
    """Partitions are contiguous and begin where the memory allows it."""
    moving = [(steps[0], n) for steps, n in zip(operand.steps, extents, strict=True) if steps[0] and n > 1]
    count = 1
    for step, n in sorted(moving, key=lambda m: abs(m[0])):
        if step != count:
            fail(
                site,
                at,
                f"operand {operand.name} ({operand.array.name}) steps over partitions by {step}, expected {count}",
                help="an operand's partitions are contiguous",
                id="partition",
            )
        count *= n
    if operand.spec.partition is not None:
        wanted = role_extents(site, extents).get(operand.spec.partition, 1)
        if count != wanted:
            fail(
                site,
                at,
                f"operand {operand.name} ({operand.array.name}) lies on {count} partitions, lane "
                f"{operand.spec.partition} has extent {wanted}",
                help="one partition for each point of that lane",
                id="partition",
            )
    start = numbers[operand.first]
    for largest, allowed in operand.array.memory.starts:
        if count <= largest:
            if start not in allowed:
                fail(
                    site,
                    at,
                    f"operand {operand.name} ({operand.array.name}) takes {count} partitions from {start}",
                    help=f"that many may begin at {', '.join(map(str, allowed))} in {operand.array.memory.name}",
                    id="partition-start",
                )
            return


def _check_bank(
    site: SitePlan, operand: OperandPlan, extents: Sequence[int], numbers: Sequence[int], at: Mapping[str, int]
) -> None:
    array = operand.array
    bank = array.memory.bank_bytes
    axes = len(operand.base)
    base, copy = numbers[operand.first : operand.first + axes], numbers[operand.first + axes] % array.copies
    item = array.element_bytes
    low = high = sum(b * s for b, s in zip(base[1:], array.value_strides[2:], strict=True))
    for steps, n in zip(operand.steps, extents, strict=True):
        move = sum(t * s for t, s in zip(steps[1:], array.value_strides[2:], strict=True)) * (n - 1)
        low, high = low + min(move, 0), high + max(move, 0)
    begin = array.offset_bytes + copy * array.copy_bytes
    first, last = (begin + low * item) // bank, (begin + high * item + item - 1) // bank
    if first != last:
        fail(
            site,
            at,
            f"operand {operand.name} ({array.name}) touches bytes {begin + low * item} to {begin + high * item + item} "
            f"of each partition: banks {first} to {last} of {array.memory.name}",
            help=f"it must stay inside one bank of {bank} bytes",
            id="bank",
        )
