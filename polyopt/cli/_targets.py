"""`polyopt targets`: the machines, or one machine with every figure."""

from __future__ import annotations

import click

from polyopt.cli._options import json_option
from polyopt.cli._output import print_json, print_rich
from polyopt.machine import Machine, machine, machine_names

__all__ = ["targets"]


@click.command()
@click.argument("name", required=False)
@json_option
def targets(name: str | None, as_json: bool) -> int:
    """List the machines, or every figure of the machine NAME with its source and tag."""
    from polyopt.report import machine_table, machines_table

    if name is not None:
        found = machine(name)
        if as_json:
            print_json(_machine_json(found))
        else:
            print_rich(machine_table(found))
        return 0
    machines = [machine(n) for n in machine_names()]
    if as_json:
        print_json({"targets": [{"name": m.name, "title": m.title} for m in machines]})
    else:
        print_rich(machines_table(machines))
    return 0


def _machine_json(m: Machine) -> dict[str, object]:
    figures = [
        {"figure": path, "value": f.value, "unit": f.unit, "source": f.source, "tag": f.tag} for path, f in m.figures
    ]
    return {
        "name": m.name,
        "title": m.title,
        "dtypes": list(m.dtypes),
        "memories": [{"name": x.name, "kind": x.kind, "capacity_bytes": x.capacity_bytes or None} for x in m.memories],
        "engines": [e.name for e in m.engines],
        "instructions": [s.name for s in m.instructions],
        "peaks_flop_per_ns": dict(m.peaks),
        "figures": figures,
    }
