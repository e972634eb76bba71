"""Short ways to write programs in tests."""

from __future__ import annotations

from collections.abc import Sequence

from polyopt.frontend import read_scop
from polyopt.ir import Scop

TensorLine = tuple[str, str, str]
"""Name and shape, element type and role: ("A", "N, N", "float32 input")."""
StatementLine = tuple[str, str, str]
"""Domain, order, body."""


def build(
    params: str,
    tensors: Sequence[tuple[str, ...]],
    statements: Sequence[StatementLine],
    *,
    context: str = "",
    reassociate: bool = False,
) -> Scop:
    """A program called `p` with statements S0, S1, ...; a fourth entry of a tensor is its init."""
    lines = ["scop: p", f"params: [{params}]", f"reassociate: {str(reassociate).lower()}"]
    if context:
        lines.append(f"context: {context}")
    lines.append("tensors:")
    for name, shape, kind, *init in tensors:
        dtype, role = kind.split()
        start = f', init: "{init[0]}"' if init else ""
        lines.append(f"  {name}: {{shape: [{shape}], dtype: {dtype}, role: {role}{start}}}")
    lines.append("statements:")
    for k, (domain, order, body) in enumerate(statements):
        lines += [f"  - name: S{k}", f'    domain: "{domain}"', f'    order: "{order}"', f'    body: "{body}"']
    return read_scop("\n".join(lines) + "\n")
