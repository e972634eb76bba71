"""Loops and statements as one C99 function over flat row-major arrays.

Floats are computed in double and rounded when they are stored, integers wrap at 64 bits and then to their element type,
division of iterators is floor: what the reference interpreter does, but for the element type of temporaries.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from polyopt.backend._c_names import c_names
from polyopt.backend._c_values import HELPERS, CWriter, c_type
from polyopt.errors import UnsupportedError
from polyopt.ir import (
    LoopProgram,
    Scop,
    Statement,
    Tensor,
    Uninterpreted,
    substitute_access,
    substitute_expr,
    walk,
)
from polyopt.reference import build_node, promote
from polyopt.sets import Block, Call, For, If, LoopNode, loops

__all__ = ["emit_c"]

_HEAD = ("#include <math.h>", "#include <stdbool.h>", "#include <stdint.h>", "#include <stdlib.h>")


def emit_c(scop: Scop, program: LoopProgram, *, notes: Sequence[str] = ()) -> str:
    """The text of a C99 file with one function, called as the program, that runs `scop` in the loops of `program`.

    Arguments: the sizes, then every input, inout and output in declared order, dense, row-major and not overlapping;
    cells of an output that the program does not write keep their values.  The function returns 0, or 1 when there was
    no memory for the temporaries.  A function `call(f, ...)` of the program is declared `double f(double, ...)` and
    left to the user.  notes: lines of the comment in front.

    Raises UnsupportedError on element types that C does not have, data-dependent subscripts and opaque calls.
    """
    return _Emitter(scop, program).file(notes)


class _Emitter:
    """One function on its way."""

    def __init__(self, scop: Scop, program: LoopProgram) -> None:
        self.scop, self.program = scop, program
        self.tensors = scop.tensor_map()
        self.function = c_names([scop.name])[scop.name]
        iterators = dict.fromkeys(f.iterator for f in loops(program.root))
        outside = dict.fromkeys(name for s in scop.statements for name in _outside(s))
        known = dict.fromkeys((*scop.params, *self.tensors, *outside, *iterators))
        self.writer = CWriter(self.tensors, c_names(known, taken=[self.function]))

    def file(self, notes: Sequence[str]) -> str:
        body = list(self.lines(self.program.root, 1))
        allocate = list(self.allocations())
        free = [f"    free({self.name(t)});" for t in self.temps()]
        comment = ["/*", *(f" * {note.replace('*/', '* /')}" for note in (self.program.name, *notes)), " */"]
        helpers = [text for name, (text, _) in HELPERS.items() if name in self.writer.helpers]
        outside = [
            f"extern double {self.writer.names[f]}({', '.join(['double'] * n) or 'void'});"
            for f, n in self.writer.outside.items()
        ]
        head = [*comment, *_HEAD, "", *helpers, *outside, *([""] if helpers or outside else [])]
        unused = list(self.unused("\n".join((*allocate, *body))))
        return "\n".join([*head, self.signature(), "{", *unused, *allocate, *body, *free, "    return 0;", "}"]) + "\n"

    def unused(self, body: str) -> Iterator[str]:
        """Says to the compiler that arguments which do not occur in `body` are there on purpose."""
        words = set(re.findall(r"\w+", body))
        arguments = (*self.scop.params, *(t.name for t in self.scop.tensors if t.role != "temp"))
        for name in (self.writer.names[a] for a in arguments):
            if name not in words:
                yield f"    (void){name};"

    def name(self, tensor: Tensor) -> str:
        return self.writer.names[tensor.name]

    def temps(self) -> list[Tensor]:
        return list(self.scop.with_role("temp"))

    def signature(self) -> str:
        written = {s.assign.target.tensor for s in self.scop.statements if not s.is_opaque}
        sizes = [f"int64_t {self.writer.names[p]}" for p in self.scop.params]
        arrays = [
            f"{'' if t.name in written else 'const '}{c_type(t)} *restrict {self.name(t)}"
            for t in self.scop.tensors
            if t.role != "temp"
        ]
        return f"int {self.function}({', '.join([*sizes, *arrays]) or 'void'})"

    def allocations(self) -> Iterator[str]:
        """Temporaries, at least one byte each, so that NULL says that there is no memory."""
        temps = self.temps()
        for t in temps:
            cells = " * ".join(["(size_t)1", *(f"(size_t){self.writer.affine(e)}" for e in t.shape)])
            yield f"    {c_type(t)} *{self.name(t)} = malloc({cells} * sizeof({c_type(t)}) + 1);"
        if temps:
            missing = " || ".join(f"!{self.name(t)}" for t in temps)
            yield f"    if ({missing}) {{ {' '.join(f'free({self.name(t)});' for t in temps)} return 1; }}"

    def lines(self, node: LoopNode, depth: int) -> Iterator[str]:
        pad = "    " * depth
        if isinstance(node, Call):
            yield f"{pad}{self.statement(node)}"
        elif isinstance(node, For):
            i = self.writer.names[node.iterator]
            first, last = self.writer.bare(node.lower), self.writer.bare(node.upper)
            note = "" if node.kind == "sequential" else "  /* iterations in any order */"
            yield f"{pad}for (int64_t {i} = {first}; {i} <= {last}; {i} += {node.step}) {{{note}"
            yield from self.lines(node.body, depth + 1)
            yield f"{pad}}}"
        elif isinstance(node, If):
            yield f"{pad}if ({self.writer.condition(node.condition)}) {{"
            yield from self.lines(node.then, depth + 1)
            if node.other != Block():
                yield f"{pad}}} else {{"
                yield from self.lines(node.other, depth + 1)
            yield f"{pad}}}"
        else:
            for child in node.children:
                yield from self.lines(child, depth)

    def statement(self, call: Call) -> str:
        """The assignment of one instance, iterators replaced by the call's arguments."""
        statement = self.scop.statement(call.statement)
        if statement.is_opaque:
            raise UnsupportedError(
                f"{statement.name} is an opaque call, about whose values nothing is known",
                help="replace the call by statements",
                id="c-opaque",
            )
        values = dict(zip(statement.iterators, call.arguments, strict=True))
        assign = statement.assign
        target = self.tensors[assign.target.tensor]
        c_type(target)
        expr = substitute_expr(assign.full_value(), values)
        (node,) = promote((build_node(expr, self.tensors),), "float" if target.element.is_float else "int")
        cell = self.writer.cell(substitute_access(assign.target, values))
        return f"{cell} = {self.writer.stored(node, target.dtype)};  /* {statement.name} */"


def _outside(statement: Statement) -> Iterator[str]:
    """Uninterpreted functions that a statement calls."""
    if not statement.is_opaque:
        yield from (e.name for e in walk(statement.assign.value) if isinstance(e, Uninterpreted))
