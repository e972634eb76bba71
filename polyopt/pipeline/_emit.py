"""`compile --emit WHAT`: every level of the way as text."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from polyopt.backend import emit_c, mapping_text, program_text
from polyopt.errors import InputError, InternalError, nearest, require_type
from polyopt.frontend import write_scop
from polyopt.passes import pipeline_text
from polyopt.pipeline._schedule import order_vectors
from polyopt.report import json_value, program_json
from polyopt.schedule import Dependences, compute_dependences, fusion_groups, generate_loops
from polyopt.verify import validate_loops

if TYPE_CHECKING:
    from polyopt.pipeline._compiled import Compiled

__all__ = ["EMITTED", "check_emit", "emit"]


def check_emit(what: str) -> None:
    """Raise InputError, naming the nearest known one, unless `what` can be emitted."""
    require_type(what, str, "emit", help=f"known: {', '.join(EMITTED)}")
    if what not in EMITTED:
        raise InputError(
            f"cannot emit {what!r}{nearest(what, EMITTED)}", help=f"known: {', '.join(EMITTED)}", id="emit"
        )


def emit(compiled: Compiled, what: str) -> str:
    """The level `what` of a compiled program.  Raises InputError when its pipeline did not make that level."""
    check_emit(what)
    return EMITTED[what](compiled)


def _scop(compiled: Compiled) -> str:
    return write_scop(compiled.unit.scop)


def _dependences(compiled: Compiled) -> Dependences:
    found = compiled.unit.products.get("deps")
    return found if isinstance(found, Dependences) else compute_dependences(compiled.unit.scop.at(compiled.at))


def _deps(compiled: Compiled) -> str:
    return (_dependences(compiled).text() or "no two instances depend on each other") + "\n"


def _dot(compiled: Compiled) -> str:
    """The graph of statements and dependences in the language of Graphviz."""
    lines = [f"digraph {json.dumps(compiled.unit.scop.name)} {{", "  node [shape=box, fontname=monospace];"]
    for s in compiled.unit.scop.statements:
        text = f"{s.name}[{', '.join(s.iterators)}]\n{_body_text(compiled, s.name)}"
        lines.append(f"  {json.dumps(s.name)} [label={json.dumps(text)}];")
    for d in _dependences(compiled):
        label = json.dumps(f"{', '.join(d.kinds)} on {d.tensor}")
        style = "" if d.certain and d.is_ordered else ", style=dashed"
        lines.append(f"  {json.dumps(d.source)} -> {json.dumps(d.sink)} [label={label}{style}];")
    return "\n".join([*lines, "}"]) + "\n"


def _body_text(compiled: Compiled, statement: str) -> str:
    from polyopt.frontend import assignment_text

    s = compiled.unit.scop.statement(statement)
    return "opaque call" if s.is_opaque else assignment_text(s.assign)


def _schedule(compiled: Compiled) -> str:
    """Also which statements may share their outer loops, by the dependences alone."""
    found = fusion_groups(compiled.unit.scop, _dependences(compiled))
    return compiled.schedule.text([f"fusion group {k}: {', '.join(g)}" for k, g in enumerate(found.coarsest)])


def _mapping(compiled: Compiled) -> str:
    return mapping_text(compiled.mapping)


def _program(compiled: Compiled) -> str:
    return program_text(compiled.program)


def _c(compiled: Compiled) -> str:
    """The loops of the schedule, read back and validated before anything is written."""
    schedule = compiled.schedule
    vectors, parallel = order_vectors(schedule)
    at = compiled.at or None
    loops = generate_loops(schedule.scop, vectors, parallel=parallel, at=at)
    verdict = validate_loops(schedule.scop, vectors, loops, parallel=parallel, at=at)
    if verdict.is_refuted:
        raise InternalError(f"the loops of {schedule.scop.name} are wrong: {verdict.reason}")
    given = f", given {' and '.join(verdict.axioms)}" if verdict.axioms else ""
    context = schedule.scop.at(compiled.at).context.text().removeprefix("[]").strip(" :")
    notes = [f"loops: {verdict.level}: {verdict.reason}{given}", f"sizes: {context or 'any'}"]
    return emit_c(schedule.scop, loops, notes=notes)


def _json(compiled: Compiled) -> str:
    everything = {
        "scop": write_scop(compiled.unit.scop),
        "target": compiled.machine.name,
        "at": dict(compiled.at),
        "pipeline": pipeline_text(compiled.passes),
        "schedule": compiled.schedule.text(),
        "mapping": mapping_text(compiled.mapping),
        "program": program_json(compiled.program),
        "estimated_time_ns": compiled.estimated_time_ns,
        "legal": compiled.legal.level,
        "remarks": [{"severity": r.severity, "id": r.id, "message": r.message} for r in compiled.remarks],
    }
    return json.dumps(json_value(everything), indent=2, allow_nan=False) + "\n"


EMITTED: Mapping[str, Callable[[Compiled], str]] = {
    "scop": _scop,
    "deps": _deps,
    "schedule": _schedule,
    "mapping": _mapping,
    "program": _program,
    "c": _c,
    "dot": _dot,
    "json": _json,
}
"""What can be emitted -> how."""
