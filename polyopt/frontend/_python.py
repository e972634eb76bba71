"""A plain Python function of loops and assignments -> Scop.  The function is parsed, never executed.

Statements are called S0, S1, ... in textual order; their order vectors are [position, i, position, j, ..., position].
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import count

from polyopt.errors import InputError, Location, UnsupportedError
from polyopt.frontend._assignments import find_access
from polyopt.frontend._body import BodyReader, Placed
from polyopt.frontend._guarded_reads import keep_inside
from polyopt.frontend._guards import guarded, targets_of
from polyopt.frontend._inference import Use, first_reads, infer_dtypes
from polyopt.frontend._names import show
from polyopt.frontend._nest import Nest
from polyopt.frontend._roles import with_roles
from polyopt.frontend._set_text import context_set
from polyopt.frontend._signature import Declared, read_annotation, read_signature
from polyopt.ir import (
    DTYPES,
    Access,
    Origin,
    Places,
    Scop,
    Statement,
    Tensor,
    access_chain,
    accesses,
    check_name,
    verify_scop,
)
from polyopt.sets import Set, affine

__all__ = ["read_function"]


def read_function(
    function: ast.FunctionDef, locate: Callable[[ast.AST], Location], *, reassociate: bool = False, context: str = ""
) -> Scop:
    """The Scop of a parsed function.  `locate` says where a node stands; `context` bounds the sizes (isl constraints).

    Raises InputError, with file, line, caret and a remedy, on everything that is not loops over range with affine
    bounds, conditions, and assignments to elements and scalars.
    """
    signature = read_signature(function, locate)
    reader = BodyReader(signature, locate, taken=_all_names(function))
    _declare_locals(function, reader)
    try:
        reader.block(function.body, Nest(), count())
    except RecursionError as error:
        raise UnsupportedError(
            "the function is nested too deeply",
            help="split the expression or the loops into several",
            where=locate(function),
        ) from error
    return _finish(function, reader, reassociate, context)


def _all_names(function: ast.FunctionDef) -> set[str]:
    names = {n.id for n in ast.walk(function) if isinstance(n, ast.Name)}
    return names | {n.arg for n in ast.walk(function) if isinstance(n, ast.arg)}


def _declare_locals(function: ast.FunctionDef, reader: BodyReader) -> None:
    """Every name that is assigned to or annotated and is no argument becomes a temporary."""
    params, arguments = reader.signature.params, {t.name for t in reader.signature.tensors}
    for node in ast.walk(function):
        if not isinstance(node, ast.AnnAssign):
            continue
        if not isinstance(node.target, ast.Name) or node.target.id in (*params, *arguments, *reader.locals):
            raise InputError(
                f"{show(node.target)} cannot be declared here",
                id="duplicate",
                help="declare each new local name once",
                where=reader.locate(node.target),
            )
        name = node.target.id
        dtype, shape = read_annotation(node.annotation, name, params, reader.locate)
        reader.locals[name] = Declared(name, dtype, shape, node)
    for node in ast.walk(function):
        for target in targets_of(node):
            if isinstance(target, ast.Name) and target.id not in (*params, *arguments, *reader.locals):
                check_name(target.id, "local", reader.locate(target))
                reader.locals[target.id] = Declared(target.id, None, (), target)
    loops = {
        n.target.id: n.target for n in ast.walk(function) if isinstance(n, ast.For) and isinstance(n.target, ast.Name)
    }
    for name, loop in loops.items():
        if name in reader.locals:
            raise InputError(
                f"{name} is a loop variable and is assigned to",
                id="duplicate",
                help="use another name for one of them",
                where=reader.locate(loop),
            )


def _finish(function: ast.FunctionDef, reader: BodyReader, reassociate: bool, context: str) -> Scop:
    signature = reader.signature
    uses = [_use(p) for p in reader.placed]
    for name in reader.locals:
        _check_written_first(name, uses, reader)
    tensors = _tensors(reader)
    dtypes = {t.name: t.dtype for t in tensors}
    sizes = _context(context, signature.params, reader.locate(function))
    prefix = _prefix(t.name for t in tensors)
    statements: list[Statement] = []
    placed: dict[str, Placed] = {}
    for p in reader.placed:
        name = f"{prefix}{len(statements)}"
        statement = _statement(name, p, dtypes, signature.params, reader.locate(p.node))
        if not statement.domain.intersect_params(sizes).is_empty():
            body = keep_inside(statement.assign, statement.domain, sizes, {t.name: t for t in tensors})
            statements.append(replace(statement, body=body))
            placed[name] = p
    scop = Scop(function.name, signature.params, sizes, tensors, tuple(statements), reassociate)
    verify_scop(scop, _places(placed, reader))
    return with_roles(scop)


def _use(p: Placed) -> Use:
    assign = p.assign
    reads = [*access_chain(assign.target)[1:], *assign.reads()]
    if p.nest.guard is not None:
        reads += [*accesses(p.nest.guard), assign.target]
    return Use(tuple(reads), assign.target.tensor)


def _check_written_first(name: str, uses: Sequence[Use], reader: BodyReader) -> None:
    k = first_reads(name, uses)
    if k is None:
        return
    p = reader.placed[k]
    conditional = p.assign.target.tensor == name and p.nest.guard is not None
    raise InputError(
        f"{name} is assigned only under a condition" if conditional else f"{name} is read before it is assigned",
        id="never-written",
        help=f"give {name} a value before",
        where=reader.locate(_first_node(p, name)),
    )


def _first_node(p: Placed, name: str) -> ast.AST:
    """Where `name` occurs in the statement; the read rather than the target of an assignment."""
    found = [n for n in ast.walk(p.node) if isinstance(n, ast.Name) and n.id == name]
    return next((n for n in found if isinstance(n.ctx, ast.Load)), found[0] if found else p.node)


def _tensors(reader: BodyReader) -> tuple[Tensor, ...]:
    arguments, found = reader.signature.tensors, reader.locals.values()
    known = {d.name: d.dtype for d in (*arguments, *found) if d.dtype is not None}
    floats = [d.dtype for d in arguments if d.dtype is not None and DTYPES[d.dtype].is_float]
    widest = max(floats, key=lambda d: DTYPES[d].element_bytes, default="float32")
    unknown = [d.name for d in found if d.dtype is None]
    known |= infer_dtypes(unknown, known, [p.assign for p in reader.placed], widest)
    written = {p.assign.target.tensor for p in reader.placed}
    return (
        *(Tensor(d.name, d.shape, known[d.name], "inout" if d.name in written else "input") for d in arguments),
        *(Tensor(d.name, d.shape, known[d.name], "temp") for d in found),
    )


def _context(text: str, params: tuple[str, ...], where: Location) -> Set:
    try:
        return context_set(text, params)
    except InputError as error:
        raise InputError(
            f"cannot read the context {text!r}",
            id="context",
            help=f"write constraints on the sizes {', '.join(params) or '(there are none)'}, for example 'N >= 1'",
            where=where,
        ) from error


def _prefix(tensors: Iterable[str]) -> str:
    """`S`, made longer until no tensor has the name of a statement."""
    names, prefix = list(tensors), "S"
    while any(n.startswith(prefix) and n[len(prefix) :].isdigit() for n in names):
        prefix += "S"
    return prefix


def _statement(name: str, p: Placed, dtypes: Mapping[str, str], params: tuple[str, ...], where: Location) -> Statement:
    assign = p.assign
    if p.nest.guard is not None:
        assign = guarded(assign, p.nest.guard, dtypes[assign.target.tensor])
    order = (*p.nest.order, affine(p.position))
    return Statement(name, p.nest.domain(name, params), order, assign, Origin(where=where))


def _places(placed: Mapping[str, Placed], reader: BodyReader) -> Places:
    declared = {d.name: d.node for d in (*reader.signature.tensors, *reader.locals.values())}

    def places(name: str, part: Access | str) -> Location | None:
        if name not in placed or part in ("shape", "dtype", "role", "init"):
            return reader.locate(declared[name]) if name in declared else None
        p = placed[name]
        found = None if isinstance(part, str) else find_access(p.node, part, p.names)
        return reader.locate(found or p.node)

    return places
