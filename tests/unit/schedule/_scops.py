"""Short programs for the tests of this layer."""

from __future__ import annotations

from polyopt.frontend import read_scop
from polyopt.ir import Scop


def program(
    tensors: str,
    *statements: tuple[str, str, str, str],
    params: str = "N",
    context: str = "",
    reassociate: bool = False,
) -> Scop:
    """A program from `A[N] float32 inout; ...` and (name, domain, order, body or call)."""
    lines = ["scop: small", f"params: [{params}]", f"reassociate: {str(reassociate).lower()}"]
    lines += [f'context: "{context}"'] if context else []
    lines.append("tensors:")
    for tensor in tensors.split(";"):
        head, dtype, role = _split(tensor)
        name, shape = head.split("[")
        lines.append(f"  {name.strip()}: {{shape: [{shape.rstrip(']')}], dtype: {dtype}, role: {role.strip()}}}")
    lines.append("statements:")
    for name, domain, order, body in statements:
        key = "call" if body.startswith("{") else "body"
        value = body if key == "call" else f'"{body}"'
        lines += [f"- name: {name}", f'  domain: "{domain}"', f'  order: "{order}"', f"  {key}: {value}"]
    return read_scop("\n".join(lines))


def _split(tensor: str) -> tuple[str, str, str]:
    head, rest = tensor.split("]")
    dtype, role = rest.split()
    return head + "]", dtype, role


def scan(reassociate: bool = False, dtype: str = "float32", body: str = "s[0] += A[i]") -> Scop:
    """A sum (or another combination) over A."""
    return program(
        f"A[N] {dtype} input; s[1] {dtype} inout", ("S", "[i] : 0 <= i < N", "[i]", body), reassociate=reassociate
    )
