"""Random kernels: the Scop computes what the function computes when Python runs it."""

from __future__ import annotations

import textwrap
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from polyopt.frontend import from_source, read_scop, write_scop
from polyopt.reference import interpret

HEADER = '@po.kernel(context="N <= 4")\n'
HEADER += "def f(A: po.float64[60, 60], x: po.float64[60], k: po.int32[60], t0: po.float64[()], N: int):\n"
PLAIN = "def f(A, x, k, t0, N):\n"
CENTRE = 25
"""Added to subscripts: iterators lie in -4..8, so every subscript lies in 0..59."""


@st.composite
def affine_texts(draw: st.DrawFn, names: tuple[str, ...]) -> str:
    parts = [f"{draw(st.sampled_from(['', '-', '2*']))}{n}" for n in names if draw(st.booleans())][:2]
    parts.append(str(draw(st.integers(-2, 3))))
    text = " + ".join(parts)
    kind = draw(st.sampled_from(["", "", "", "floor", "mod", "min", "choice"]))
    if kind == "floor":
        return f"({text}) // {draw(st.integers(2, 3))}"
    if kind == "mod":
        return f"({text}) % {draw(st.integers(2, 4))}"
    if kind == "min":
        return f"{draw(st.sampled_from(['min', 'max']))}({text}, {draw(st.integers(0, 3))})"
    return f"(3 if {text} > 1 else {names[0] if names else 0})" if kind == "choice" else text


@st.composite
def cells(draw: st.DrawFn, names: tuple[str, ...]) -> str:
    def subscript() -> str:
        return f"{CENTRE} + {draw(affine_texts(names))}"

    kind = draw(st.sampled_from(["A", "A", "x", "x", "t0", "t1", "gather"]))
    if kind == "A":
        return f"A[{subscript()}, {subscript()}]"
    if kind == "gather":
        return f"x[k[{subscript()}] + {draw(st.integers(0, 2))}]"
    return {"x": f"x[{subscript()}]", "t0": "t0[()]", "t1": "t1"}[kind]


@st.composite
def conditions(draw: st.DrawFn, names: tuple[str, ...]) -> str:
    def comparison() -> str:
        sign = draw(st.sampled_from(["<", "<=", "==", "!=", ">"]))
        left = draw(affine_texts(names)) if draw(st.booleans()) else draw(cells(names))
        return f"{left} {sign} {draw(st.integers(-1, 3))}"

    kind = draw(st.sampled_from(["one", "one", "not", "and", "or"]))
    if kind == "one":
        return comparison()
    return f"not {comparison()}" if kind == "not" else f"{comparison()} {kind} {comparison()}"


@st.composite
def values(draw: st.DrawFn, names: tuple[str, ...]) -> str:
    a, b = draw(cells(names)), draw(st.one_of(cells(names), affine_texts(names)))
    kind = draw(st.sampled_from(["+", "-", "max", "if", "one", "neg"]))
    if kind in "+-":
        return f"{a} {kind} ({b})"
    if kind == "max":
        return f"max({a}, {b})"
    if kind == "if":
        return f"{a} if {draw(conditions(names))} else {b}"
    return a if kind == "one" else f"-({a})"


@st.composite
def assignments(draw: st.DrawFn, names: tuple[str, ...]) -> str:
    target = draw(cells(names))
    if draw(st.integers(0, 5)) == 0:
        return f"{target} = max({target}, {draw(values(names))})"
    return f"{target} {draw(st.sampled_from(['=', '=', '+=', '-=']))} {draw(values(names))}"


@st.composite
def blocks(draw: st.DrawFn, names: tuple[str, ...], depth: int) -> str:
    lines: list[str] = []
    for _ in range(draw(st.integers(1, 2))):
        kind = draw(st.sampled_from(["assign", "assign", "loop", "if"] if depth else ["assign"]))
        if kind == "assign":
            lines.append(draw(assignments(names)))
        elif kind == "loop":
            name = "ijlm"[len(names)] if len(names) < 3 else ""
            lines.append(draw(loops(names, name, depth)) if name else draw(assignments(names)))
        else:
            lines.append(draw(branches(names, depth)))
    return "\n".join(lines)


@st.composite
def loops(draw: st.DrawFn, names: tuple[str, ...], name: str, depth: int) -> str:
    outer = draw(st.sampled_from(names)) if names else "0"
    ranges = ["N", f"{outer}, N", f"-1, min(N, {outer} + 2)", "N - 1, -1, -1", f"N, {outer}, -2", "0, N + 1, 2", "2"]
    body = draw(blocks((*names, name), depth - 1))
    return f"for {name} in range({draw(st.sampled_from(ranges))}):\n{textwrap.indent(body, '    ')}"


@st.composite
def branches(draw: st.DrawFn, names: tuple[str, ...], depth: int) -> str:
    text = f"if {draw(conditions(names))}:\n{textwrap.indent(draw(blocks(names, depth - 1)), '    ')}"
    if draw(st.booleans()):
        text += f"\nelif {draw(conditions(names))}:\n{textwrap.indent(draw(blocks(names, depth - 1)), '    ')}"
    if draw(st.booleans()):
        text += f"\nelse:\n{textwrap.indent(draw(blocks(names, depth - 1)), '    ')}"
    return text


kernels = st.builds(lambda body: f"t1: po.float64 = 1.0\n{body}", blocks((), 4))


def make_arrays(seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    floats = {n: rng.integers(-3, 4, s).astype(np.float64) for n, s in (("A", (60, 60)), ("x", (60,)), ("t0", ()))}
    return floats | {"k": rng.integers(0, 50, 60).astype(np.int32)}


@settings(max_examples=60)
@given(kernels, st.integers(0, 4))
def test_a_random_kernel_means_what_python_means(body: str, size: int) -> None:
    text = HEADER + textwrap.indent(body, "    ") + "\n"
    with TemporaryDirectory() as folder:
        path = Path(folder) / "kernel.py"
        path.write_text(text)
        scop = from_source(path, "f")
    arrays = {n: np.array(a) for n, a in make_arrays(size).items()}
    scope: dict[str, Any] = {}
    exec(text.replace(HEADER, PLAIN).replace("t1: po.float64", "t1"), scope)
    scope["f"](**arrays, N=size)
    given_arrays = {t.name: make_arrays(size)[t.name] for t in scop.with_role("input", "inout")}
    got = interpret(scop, given_arrays, {"N": size})
    for name, value in got.items():
        role = scop.tensor(name).role
        written = np.ones(value.shape, bool) if role == "inout" else value != 0
        np.testing.assert_array_equal(value[written], arrays[name][written], err_msg=text)
    assert read_scop(write_scop(scop)) == scop
