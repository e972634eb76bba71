"""Small programs written by hand for the machine trn2."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from polyopt.ir import Tensor
from polyopt.ir.expr import Expr
from polyopt.ir.program import Buffer, Instr, Lane, Loop, Node, Program, View, Wait
from polyopt.sets import Affine, AffineLike, Constraint, Set, affine, minimum, var

Steps = Mapping[str, Sequence[int]]


def view(
    array: str,
    base: Sequence[AffineLike],
    steps: Steps | None = None,
    *,
    copy: AffineLike = 0,
    indirect: tuple[tuple[int, View], ...] = (),
) -> View:
    moved = tuple((lane, tuple(s)) for lane, s in (steps or {}).items())
    return View(array, tuple(affine(b) for b in base), moved, affine(copy), indirect)


def tensor(name: str, shape: Sequence[AffineLike], role: str, dtype: str = "float32") -> Tensor:
    return Tensor(name, tuple(affine(n) for n in shape), dtype, role)


def instr(
    site: str,
    opcode: str,
    queue: str,
    lanes: Sequence[tuple[str, AffineLike] | tuple[str, str, AffineLike]],
    operands: Mapping[str, View],
    *,
    waits: Sequence[Wait] = (),
    guards: Sequence[Constraint] = (),
    mask: Sequence[Constraint] = (),
    index: Affine | None = None,
    value: Expr | None = None,
    form: int = 0,
    **attrs: Any,
) -> Instr:
    """Lanes are (name, extent), the role being the name, or (name, role, extent)."""
    box = tuple(Lane(n[0], n[1] if len(n) == 3 else n[0], affine(n[-1])) for n in lanes)
    return Instr(
        site=site,
        opcode=opcode,
        queue=queue,
        lanes=box,
        operands=tuple(operands.items()),
        attrs=(("form", form), *attrs.items()),
        guards=tuple(guards),
        mask=tuple(mask),
        waits=tuple(waits),
        index=index,
        value=value,
        statement="S",
    )


def program(
    tensors: Sequence[Tensor],
    buffers: Sequence[Buffer],
    body: Sequence[Node],
    params: Sequence[str] = (),
    context: str = "",
) -> Program:
    allowed = Set.parse(context, params=tuple(params))
    return Program("p", "trn2", tuple(params), allowed, tuple(tensors), tuple(buffers), tuple(body))


def loop(name: str, upper: AffineLike, *body: Node, lower: AffineLike = 0, step: int = 1) -> Loop:
    return Loop(name, affine(lower), affine(upper), tuple(body), step)


ROWS: Steps = {"p": (1, 0), "f": (0, 1)}
"""Steps of a two-dimensional view whose lanes are p and f."""


def load(site: str, buffer: str, source: View, p: AffineLike, f: AffineLike, **more: Any) -> Instr:
    """A transfer of p x f elements into the beginning of a buffer."""
    copy = more.pop("copy", 0)
    queue = more.pop("queue", "load0")
    target = view(buffer, (0, 0), ROWS, copy=copy)
    return instr(site, "dma", str(queue), (("p", p), ("f", f)), {"O": target, "A": source}, **more)


def store(site: str, target: View, buffer: str, p: AffineLike, f: AffineLike, **more: Any) -> Instr:
    """A transfer of p x f elements from the beginning of a buffer."""
    copy = more.pop("copy", 0)
    queue = more.pop("queue", "store0")
    source = view(buffer, (0, 0), ROWS, copy=copy)
    return instr(site, "dma", str(queue), (("p", p), ("f", f)), {"O": target, "A": source}, **more)


def change(program: Program, site: str, **fields: Any) -> Program:
    """The program with fields of one instruction replaced."""

    def visit(node: Node) -> Node:
        if isinstance(node, Loop):
            return replace(node, body=tuple(visit(n) for n in node.body))
        return replace(node, **fields) if node.site == site else node

    return replace(program, body=tuple(visit(n) for n in program.body))


TILE = {"m": 4, "n": 8, "k": 4}


def matmul(dtype: str = "float32") -> Program:
    """C[M, N] = A[K, M]^T B[K, N] in tiles of 4 x 8 x 4, two copies of every buffer, tails by shorter lanes."""
    mo, no, ko = var("mo"), var("no"), var("ko")
    m, n, k = (minimum(var(s.upper()) - var(f"{s}o") * t, t) for s, t in TILE.items())
    ta, tb = TILE["m"], TILE["n"]
    buffers = (
        Buffer("a", "sbuf", (TILE["k"], ta), dtype, 2, 0, 32),
        Buffer("b", "sbuf", (TILE["k"], tb), dtype, 2, 64, 32),
        Buffer("o", "psum", (ta, tb), "float32", 2, 0, 2048),
        Buffer("r", "sbuf", (ta, tb), "float32", 2, 128, 32),
    )
    w, x = (
        view("a", (0, 0), {"k": (1, 0), "m": (0, 1)}, copy=ko),
        view("b", (0, 0), {"k": (1, 0), "n": (0, 1)}, copy=ko),
    )
    o = view("o", (0, 0), {"m": (1, 0), "n": (0, 1)}, copy=no)
    reuse = (Wait("first", "ko", 2), Wait("more", "ko", 2))
    inner = (
        load("load_a", "a", view("A", (ko * 4, mo * 4), ROWS), k, m, copy=ko, waits=reuse),
        load("load_b", "b", view("B", (ko * 4, no * 8), ROWS), k, n, copy=ko, queue="load1", waits=reuse),
        instr(
            "first",
            "matmul",
            "tensor",
            (("k", k), ("m", m), ("n", n)),
            {"O": o, "W": w, "X": x},
            guards=(Constraint(ko, True),),
            waits=(Wait("load_a"), Wait("load_b"), Wait("evict", "no", 2)),
            accumulate=False,
        ),
        instr(
            "more",
            "matmul",
            "tensor",
            (("k", k), ("m", m), ("n", n)),
            {"O": o, "W": w, "X": x},
            guards=(Constraint(ko - 1),),
            waits=(Wait("load_a"), Wait("load_b")),
            accumulate=True,
        ),
    )
    evict = instr(
        "evict",
        "copy",
        "vector",
        (("p", m), ("f", n)),
        {"O": view("r", (0, 0), ROWS, copy=no), "A": view("o", (0, 0), ROWS, copy=no)},
        waits=(Wait("first"), Wait("more"), Wait("save", "no", 2)),
    )
    save = store("save", view("C", (mo * 4, no * 8), ROWS), "r", m, n, copy=no, waits=(Wait("evict"),))
    body = loop(
        "mo", (var("M") + 3) // 4, loop("no", (var("N") + 7) // 8, loop("ko", (var("K") + 3) // 4, *inner), evict, save)
    )
    tensors = (
        tensor("A", ("K", "M"), "input", dtype),
        tensor("B", ("K", "N"), "input", dtype),
        tensor("C", ("M", "N"), "output"),
    )
    return program(tensors, buffers, (body,), ("M", "N", "K"), "M >= 1 and N >= 1 and K >= 1")


def pointwise(
    compute: Instr, *, inputs: Sequence[str] = ("x",), dtype: str = "float32", result: str = "float32"
) -> Program:
    """Load every input (P x F), run `compute` from buffers of the inputs' names into buffer `y`, store Y."""
    p, f = 8, 16
    size = 512
    buffers = [Buffer(n, "sbuf", (p, f), dtype, 1, size * k, size) for k, n in enumerate(inputs)]
    buffers.append(Buffer("y", "sbuf", (p, f), result, 1, size * len(inputs), size))
    tensors = [tensor(n.upper(), (p, f), "input", dtype) for n in inputs]
    tensors.append(tensor("Y", (p, f), "output", result))
    loads = [load(f"load_{n}", n, view(n.upper(), (0, 0), ROWS), p, f) for n in inputs]
    ready = tuple(Wait(i.site) for i in loads)
    done = replace(compute, waits=ready)
    return program(
        tensors, buffers, (*loads, done, store("save", view("Y", (0, 0), ROWS), "y", p, f, waits=(Wait(done.site),)))
    )
