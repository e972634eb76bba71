"""Small programs with known answers."""

from __future__ import annotations

import polyopt as po
from polyopt.bench import SUITES
from polyopt.explain import Explanation, Finding, explain
from polyopt.ir import Scop

HEAT = """\
scop: heat
params: [T, N]
context: T >= 1 and N >= 3
tensors:
  A: {shape: [2, N], dtype: float32, role: inout}
statements:
  - name: S
    domain: "[t, i] : 0 <= t < T and 1 <= i < N - 1"
    order: "[t, i]"
    body: "A[(t + 1) % 2, i] = A[t % 2, i - 1] + A[t % 2, i] + A[t % 2, i + 1]"
"""

STENCIL = """\
scop: stencil
params: [N]
tensors:
  X: {shape: [N], dtype: float32, role: input}
  B: {shape: [N], dtype: float32, role: output}
  C: {shape: [N], dtype: float32, role: output}
statements:
  - {name: P, domain: "[i] : 0 <= i < N", order: "[0, i]", body: "B[i] = 2.0*X[i]"}
  - {name: Q, domain: "[i] : 1 <= i < N - 2", order: "[1, i]", body: "C[i] = B[i - 1] + B[i + 2]"}
"""

CHAIN = """\
scop: chain
params: [N]
tensors:
  X: {shape: [N], dtype: float32, role: input}
  B: {shape: [N], dtype: float32, role: output}
  s: {shape: [], dtype: float32, role: output}
  C: {shape: [N], dtype: float32, role: output}
statements:
  - {name: P, domain: "[i] : 0 <= i < N", order: "[0, i]", body: "B[i] = 2.0*X[i]"}
  - {name: M, domain: "[] : N >= 1", order: "[1]", body: "s[()] = B[0]"}
  - {name: Q, domain: "[i] : 0 <= i < N", order: "[2, i]", body: "C[i] = B[i] + s[()]"}
"""


def suite(name: str) -> Scop:
    """A program of the suite `main`."""
    (workload,) = (w for w in SUITES["main"] if w.name == name)
    return workload.scop()


def explained(scop: Scop | str, at: dict[str, int] | None = None, passes: str | None = None) -> Explanation:
    source = po.read_scop(scop) if isinstance(scop, str) else scop
    return explain(po.compile(source, at=at, passes=passes))


def only(explanation: Explanation, kind: str, subject: str, order: str = "chosen") -> Finding:
    """The one finding of this kind with this subject."""
    found = [f for f in explanation.of(kind) if f.subject == subject and f.order == order]
    assert len(found) == 1, [f.subject for f in explanation.of(kind)]
    return found[0]


def pair(f: Finding) -> tuple[str, str, str]:
    assert f.witness is not None
    return f.witness.kind, str(f.witness.source), str(f.witness.sink)
