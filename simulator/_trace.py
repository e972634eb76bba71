"""Chrome trace JSON of a run: one thread per engine and queue, complete events, times in microseconds."""

from __future__ import annotations

from typing import Any

from polyopt.errors import InputError
from polyopt.simulator._result import SimResult

__all__ = ["chrome_trace"]


def chrome_trace(result: SimResult) -> dict[str, Any]:
    """A dictionary for `json.dump` that chrome://tracing and Perfetto open.

    Raises InputError when the run kept no events.
    """
    if not result.events and result.instruction_count:
        raise InputError("the run kept no events", help="simulate with keep_events=True", id="trace")
    threads = {q: k + 1 for k, q in enumerate(result.queues)}
    events: list[dict[str, Any]] = [
        {
            "ph": "M",
            "name": "process_name",
            "pid": 1,
            "tid": 0,
            "args": {"name": f"{result.program} on {result.machine}"},
        }
    ]
    for queue, thread in threads.items():
        events.append({"ph": "M", "name": "thread_name", "pid": 1, "tid": thread, "args": {"name": queue}})
        events.append({"ph": "M", "name": "thread_sort_index", "pid": 1, "tid": thread, "args": {"sort_index": thread}})
    for e in result.events:
        events.append(
            {
                "ph": "X",
                "name": e.site,
                "cat": e.opcode,
                "pid": 1,
                "tid": threads[e.queue],
                "ts": e.start_ns / 1e3,
                "dur": (e.end_ns - e.start_ns) / 1e3,
                "args": {**({"statement": e.statement} if e.statement else {}), **dict(e.at)},
            }
        )
    return {"traceEvents": events, "displayTimeUnit": "ns", "otherData": {"program": result.program}}
