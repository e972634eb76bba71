"""Time of data movement: descriptors and bytes.

rows = transferred elements / longest contiguous run; time = ceil(rows / engines) * max(descriptor, run bytes / rate).
Source: machine file, section `transfer` (published DMA curves).
"""

from __future__ import annotations

from math import ceil

from polyopt.machine import Machine

__all__ = ["transfer_busy_ns"]


def transfer_busy_ns(machine: Machine, rows: float, row_bytes: float) -> float:
    """Busy nanoseconds of one transfer of `rows` runs of `row_bytes` bytes each (latency not included)."""
    t = machine.transfer
    return ceil(rows / t.engines) * max(t.descriptor_ns, row_bytes / t.bytes_per_ns)
