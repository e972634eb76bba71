"""Scalar expressions over read accesses: the right-hand sides of statements.

A tree of frozen values.  Functions are the names of INTERFACE.md; `APPLY_OPS` lists every operator with its arity.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from polyopt.sets import Affine, AffineLike

__all__ = [
    "APPLY_OPS",
    "COMPARISONS",
    "Access",
    "Apply",
    "Cast",
    "Const",
    "Expr",
    "Index",
    "Indirect",
    "Read",
    "Subscript",
    "Uninterpreted",
    "accesses",
    "expr_iterators",
    "map_accesses",
    "rewrite",
    "substitute_access",
    "substitute_expr",
    "walk",
]

COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")

APPLY_OPS: dict[str, int] = {
    **dict.fromkeys(("+", "-", "*", "/", "**", "min", "max", "and", "or", *COMPARISONS), 2),
    **dict.fromkeys(("neg", "not", "abs", "exp", "log", "sin", "cos", "sqrt", "rsqrt", "tanh", "sigmoid", "erf"), 1),
    **dict.fromkeys(("gelu", "gelu_tanh", "silu", "relu", "floor"), 1),
    "select": 3,
}
"""Operator name -> arity.  `select(c, a, b)` is `a if c else b`; `gelu` is the erf form."""


@dataclass(frozen=True, slots=True)
class Indirect:
    """A data-dependent subscript `T[...] + offset`: the access that holds it is a may-access."""

    access: Access
    offset: Affine = Affine()  # noqa: RUF009  (a frozen value)

    def __str__(self) -> str:
        return str(self.access) if self.offset == Affine() else f"{self.access} + {self.offset.python()}"


Subscript = Affine | Indirect


@dataclass(frozen=True, slots=True)
class Access:
    """One element of `tensor`, at quasi-affine or data-dependent subscripts.  A scalar has no subscripts."""

    tensor: str
    subscripts: tuple[Subscript, ...]

    @property
    def is_exact(self) -> bool:
        return all(isinstance(s, Affine) for s in self.subscripts)

    @property
    def affine_subscripts(self) -> tuple[Affine, ...]:
        """The subscripts of an exact access; TypeError otherwise."""
        out: list[Affine] = []
        for s in self.subscripts:
            if not isinstance(s, Affine):
                raise TypeError(f"{self} has a data-dependent subscript")
            out.append(s)
        return tuple(out)

    def __str__(self) -> str:
        inner = ", ".join(s.python() if isinstance(s, Affine) else str(s) for s in self.subscripts)
        return f"{self.tensor}[{inner or '()'}]"


@dataclass(frozen=True, slots=True)
class Const:
    """A literal number (int, float, bool; inf and nan allowed)."""

    value: float | int | bool


@dataclass(frozen=True, slots=True)
class Index:
    """The value of a quasi-affine expression of iterators and parameters, used as a number."""

    value: Affine


@dataclass(frozen=True, slots=True)
class Read:
    """The value of one tensor element."""

    access: Access


@dataclass(frozen=True, slots=True)
class Apply:
    """`op(args...)` with `op` in APPLY_OPS."""

    op: str
    args: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Cast:
    """The argument rounded to an element type."""

    dtype: str
    arg: Expr


@dataclass(frozen=True, slots=True)
class Uninterpreted:
    """`call(name, args...)`: a pure scalar function about which nothing is known."""

    name: str
    args: tuple[Expr, ...]


Expr = Const | Index | Read | Apply | Cast | Uninterpreted


def children(expr: Expr) -> tuple[Expr, ...]:
    """Direct sub-expressions (not those inside data-dependent subscripts)."""
    if isinstance(expr, (Apply, Uninterpreted)):
        return expr.args
    return (expr.arg,) if isinstance(expr, Cast) else ()


def walk(expr: Expr) -> Iterator[Expr]:
    """Every node, parents first, arguments from left to right."""
    yield expr
    for child in children(expr):
        yield from walk(child)


def accesses(expr: Expr) -> tuple[Access, ...]:
    """Every read access from left to right, an indirect subscript's own reads after the access that uses them."""
    found: list[Access] = []
    for node in walk(expr):
        if isinstance(node, Read):
            found += access_chain(node.access)
    return tuple(found)


def access_chain(access: Access) -> list[Access]:
    """The access itself and the accesses in its data-dependent subscripts."""
    chain = [access]
    for s in access.subscripts:
        if isinstance(s, Indirect):
            chain += access_chain(s.access)
    return chain


def rewrite(expr: Expr, change: Callable[[Expr], Expr]) -> Expr:
    """Bottom-up rewriting: `change` sees every node after its children were rewritten."""
    if isinstance(expr, Apply):
        expr = Apply(expr.op, tuple(rewrite(a, change) for a in expr.args))
    elif isinstance(expr, Uninterpreted):
        expr = Uninterpreted(expr.name, tuple(rewrite(a, change) for a in expr.args))
    elif isinstance(expr, Cast):
        expr = Cast(expr.dtype, rewrite(expr.arg, change))
    return change(expr)


def map_accesses(expr: Expr, change: Callable[[Access], Access]) -> Expr:
    """Replace every read access (the outermost ones; `change` handles indirect subscripts)."""
    return rewrite(expr, lambda e: Read(change(e.access)) if isinstance(e, Read) else e)


def substitute_access(access: Access, values: Mapping[str, AffineLike]) -> Access:
    """Replace iterators in all subscripts, indirect ones included."""
    out: list[Subscript] = []
    for s in access.subscripts:
        if isinstance(s, Affine):
            out.append(s.substitute(values))
        else:
            out.append(Indirect(substitute_access(s.access, values), s.offset.substitute(values)))
    return Access(access.tensor, tuple(out))


def substitute_expr(expr: Expr, values: Mapping[str, AffineLike]) -> Expr:
    """Replace iterators in every access and index value."""

    def change(node: Expr) -> Expr:
        if isinstance(node, Read):
            return Read(substitute_access(node.access, values))
        return Index(node.value.substitute(values)) if isinstance(node, Index) else node

    return rewrite(expr, change)


def access_variables(access: Access) -> frozenset[str]:
    """Every iterator or parameter that occurs in the subscripts."""
    found: frozenset[str] = frozenset()
    for s in access.subscripts:
        found |= s.variables() if isinstance(s, Affine) else access_variables(s.access) | s.offset.variables()
    return found


def expr_iterators(expr: Expr) -> frozenset[str]:
    """Every iterator or parameter that occurs in accesses and index values."""
    found: frozenset[str] = frozenset()
    for node in walk(expr):
        if isinstance(node, Read):
            found |= access_variables(node.access)
        elif isinstance(node, Index):
            found |= node.value.variables()
    return found
