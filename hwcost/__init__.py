"""Cost model: footprints, traffic and time of a mapping on a machine (layer 5)."""

from polyopt.hwcost._kernel import KernelCost, OpCost, PlacementCost, kernel_cost
from polyopt.hwcost._transfer import transfer_busy_ns

__all__ = ["KernelCost", "OpCost", "PlacementCost", "kernel_cost", "transfer_busy_ns"]
