"""What a user is told about operators that the target does not run."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from torch.fx import Node

from polyopt.errors import Diagnostic
from polyopt.frontend.torch._export import origin_of

__all__ = ["EagerRegionWarning", "remark"]

MAX_OPERATORS = 12
MAX_PLACES = 3


class EagerRegionWarning(UserWarning):
    """Part of a graph runs eagerly in PyTorch, not on the target."""


def remark(reasons: Mapping[Node, str], target: str, num_inside: int, num_regions: int) -> str:
    """How many operators run on `target`, in how many regions, and where those in `reasons` stand and why they do not.

    Operators that run eagerly without a reason compute nothing (views of what is returned) and are not counted.
    """
    total = num_inside + len(reasons)
    share = f"{num_inside} of {total} operators ({100 * num_inside // total} %) run on {target}"
    where = f" in {num_regions} region{'s' if num_regions != 1 else ''}" if num_regions else ""
    grouped: dict[str, dict[str, list[str]]] = {}
    for n, reason in reasons.items():
        kinds = grouped.setdefault(reason.removeprefix(f"{n.target}: "), {})
        kinds.setdefault(str(n.target), []).append(_place(n))
    message = "\n".join([f"{share}{where}, the others eagerly", *_lines(grouped)])
    help = "polyopt.frontend.torch.known_operators() lists the operators that run on a target"
    return str(Diagnostic("warning", "torch-eager", message, help))


def _lines(grouped: Mapping[str, Mapping[str, Sequence[str]]]) -> Iterator[str]:
    for reason, operators in grouped.items():
        yield f"  {reason}:"
        for operator, places in list(operators.items())[:MAX_OPERATORS]:
            times = f" ({len(places)} times)" if len(places) > 1 else ""
            distinct = list(dict.fromkeys(filter(None, places)))
            more = ", ..." if len(distinct) > MAX_PLACES else ""
            yield f"    {operator}{times} {', '.join(distinct[:MAX_PLACES])}{more}".rstrip()
        if len(operators) > MAX_OPERATORS:
            yield f"    and {len(operators) - MAX_OPERATORS} other operators"


def _place(node: Node) -> str:
    """`in module 'layers.0' at model.py:12`, as far as it is known."""
    origin = origin_of(node)
    path = re.sub(r"^L\['\w+'\]\.?", "", origin.module)
    module = f"in module {path!r}" if path else ""
    line = f"at {origin.where.file}:{origin.where.line}" if origin.where else ""
    return " ".join(filter(None, (module, line)))
