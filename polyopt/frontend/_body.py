"""The statements of a kernel's body, with their loops and conditions."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import count

from polyopt.errors import InputError, Location, UnsupportedError
from polyopt.frontend._affine import parse_condition
from polyopt.frontend._assignments import parse_assignment, with_reduction
from polyopt.frontend._expressions import negated, parse_access, parse_truth, parse_value, reads_tensor
from polyopt.frontend._guards import assigned_names, both, is_single_assignment, otherwise
from polyopt.frontend._names import Names, show
from polyopt.frontend._nest import Nest, read_loop
from polyopt.frontend._signature import Declared, Signature
from polyopt.ir import Access, Apply, Assign, Expr, Read, accesses

__all__ = ["BodyReader", "Placed"]

MODULES = frozenset({"math", "np", "numpy", "po", "polyopt"})
"""Modules whose functions may be written with their prefix."""

SIZE_HELP = 'sizes come from the annotations, such as po.float32["N"], or from an argument N: int'

REMEDIES: dict[type[ast.stmt], str] = {
    ast.While: "write for i in range(...) with affine bounds",
    ast.Break: "put the condition into the bounds or into an if",
    ast.Continue: "put what follows into an if",
    ast.Return: "write results into an argument",
    ast.FunctionDef: "write the loops in place",
    ast.ClassDef: "write loops and assignments only",
    ast.Expr: "an expression alone has no effect; assign its value",
}


@dataclass(frozen=True, slots=True)
class Placed:
    """An assignment with its place; `guard` is in `nest`."""

    nest: Nest
    position: int
    assign: Assign
    node: ast.stmt
    names: Names


@dataclass(slots=True)
class BodyReader:
    """The state of one reading: what is declared, and the assignments so far."""

    signature: Signature
    locate: Callable[[ast.AST], Location]
    locals: dict[str, Declared] = field(default_factory=dict)
    placed: list[Placed] = field(default_factory=list)
    taken: set[str] = field(default_factory=set)

    def names(self, nest: Nest) -> Names:
        declared = (*self.signature.tensors, *self.locals.values())
        return Names(
            iterators=nest.iterators,
            params=self.signature.params,
            ranks={d.name: len(d.shape) for d in declared},
            locate=self.locate,
            bare_scalars=True,
            modules=MODULES,
            unknown_help=SIZE_HELP,
            truths=frozenset(d.name for d in declared if d.dtype == "bool"),
        )

    # -- statements ---------------------------------------------------------------------------------------------------
    def block(self, nodes: Sequence[ast.stmt], nest: Nest, positions: Iterator[int]) -> None:
        for node in nodes:
            if isinstance(node, ast.For):
                loop = read_loop(node, self.names(nest))
                self.block(node.body, nest.inside(loop, next(positions)), count())
            elif isinstance(node, ast.If):
                self.branch(node, nest, positions)
            elif isinstance(node, (ast.Assign, ast.AugAssign)):
                self.place(self.assignment(node, self.names(nest)), node, nest, positions)
            elif isinstance(node, ast.AnnAssign):
                self.declaration(node, nest, positions)
            elif not _is_nothing(node):
                raise self.unsupported(node)

    def place(self, assign: Assign, node: ast.stmt, nest: Nest, positions: Iterator[int]) -> None:
        self.placed.append(Placed(nest, next(positions), assign, node, self.names(nest)))

    def assignment(self, node: ast.Assign | ast.AugAssign, names: Names) -> Assign:
        target = node.target if isinstance(node, ast.AugAssign) else node.targets[0]
        self.check_target(target, names)
        if isinstance(node, ast.AugAssign) and isinstance(node.op, (ast.Sub, ast.Div, ast.Pow)):
            access, value = parse_access(node.target, names), parse_value(node.value, names)
            if isinstance(node.op, ast.Sub):
                return Assign(access, negated(value), "+")
            return Assign(access, Apply("/" if isinstance(node.op, ast.Div) else "**", (Read(access), value)))
        if isinstance(node, ast.AugAssign) and not isinstance(node.op, (ast.Add, ast.Mult)):
            raise UnsupportedError(
                f"this augmented assignment is not known: {show(node)}",
                help="known are += -= *= /= **=",
                where=self.locate(node),
            )
        return parse_assignment(node, names)

    def check_target(self, target: ast.expr, names: Names) -> None:
        if not isinstance(target, ast.Name):
            return
        name = target.id
        if names.is_integer(name):
            what = "loop variable" if name in names.iterators else "size"
            raise InputError(f"the {what} {name} is assigned to", help="use another name", where=self.locate(target))
        if any(t.name == name for t in self.signature.tensors):
            raise InputError(
                f"the argument {name} is assigned as a whole",
                id="target",
                help=f"write {name}[()] = ... for a scalar, subscripts for a tensor, or use a local name",
                where=self.locate(target),
            )

    def declaration(self, node: ast.AnnAssign, nest: Nest, positions: Iterator[int]) -> None:
        """`T: po.float32["M"]` declares a temporary (done before); `t: po.float32 = e` assigns as well."""
        if node.value is None or not isinstance(node.target, ast.Name):
            return
        if self.locals[node.target.id].shape:
            raise UnsupportedError(
                f"the local tensor {node.target.id} is assigned as a whole",
                help="declare it, then assign its elements in a loop",
                where=self.locate(node.value),
            )
        plain = ast.copy_location(ast.Assign([node.target], node.value), node)
        self.place(parse_assignment(plain, self.names(nest)), plain, nest, positions)

    # -- conditions ---------------------------------------------------------------------------------------------------
    def branch(self, node: ast.If, nest: Nest, positions: Iterator[int]) -> None:
        names = self.names(nest)
        if not reads_tensor(node.test, names):
            self.block(node.body, nest.where(parse_condition(node.test, names)), positions)
            self.block(node.orelse, nest.where(parse_condition(node.test, names, negate=True)), positions)
            return
        affine_part, test = self.split_test(node, names)
        if affine_part is not None:
            nest = nest.where(parse_condition(affine_part, names))
        choice = self.choice(node, names)
        if choice is not None:
            self.place(choice, node, nest, positions)
            return
        guard = self.guard(node, test, nest, positions)
        self.block(node.body, replace(nest, guard=both(nest.guard, guard)), positions)
        self.block(node.orelse, replace(nest, guard=both(nest.guard, otherwise(guard))), positions)

    def split_test(self, node: ast.If, names: Names) -> tuple[ast.expr | None, ast.expr]:
        """The affine conjuncts of `a and b and ...` apart from the others, where there is no else."""
        test = node.test
        if node.orelse or not (isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And)):
            return None, test
        plain = [v for v in test.values if not reads_tensor(v, names)]
        data = [v for v in test.values if reads_tensor(v, names)]
        return _conjunction(plain, test), _conjunction(data, test) or test

    def choice(self, node: ast.If, names: Names) -> Assign | None:
        """One assignment, when both branches are one assignment to the same element, nested conditions included."""
        then, other = (self.only_assignment(b, names) for b in (node.body, node.orelse))
        if then is None or other is None or then.target != other.target:
            return None
        test = parse_truth(node.test, names)
        if then.combine is not None and then.combine == other.combine:
            return replace(then, value=Apply("select", (test, then.value, other.value)))
        return with_reduction(then.target, Apply("select", (test, then.full_value(), other.full_value())))

    def only_assignment(self, nodes: Sequence[ast.stmt], names: Names) -> Assign | None:
        if len(nodes) != 1:
            return None
        node = nodes[0]
        if isinstance(node, ast.If):
            return self.choice(node, names)
        return self.assignment(node, names) if isinstance(node, (ast.Assign, ast.AugAssign)) else None

    def guard(self, node: ast.If, test: ast.expr, nest: Nest, positions: Iterator[int]) -> Expr:
        """The condition as a value; kept in a temporary when the branches change what it reads."""
        names = self.names(nest)
        value = parse_truth(test, names)
        read = {a.tensor for a in accesses(value)}
        if is_single_assignment(node) or not read & assigned_names([*node.body, *node.orelse]):
            return value
        name = next(n for n in (f"guard{k}" for k in count()) if n not in self.taken)
        self.taken.add(name)
        self.locals[name] = Declared(name, "bool", (), node.test)
        kept = Access(name, ())
        self.place(Assign(kept, value), node, replace(nest, guard=None), positions)
        return Read(kept)

    # -- refusals -----------------------------------------------------------------------------------------------------
    def unsupported(self, node: ast.stmt) -> UnsupportedError:
        what = type(node).__name__.lower()
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            what, remedy = (
                f"the call {show(node)}",
                "a call for its effects is not known; assign the value of a function",
            )
        else:
            what = {"expr": f"the expression {show(node)}", "functiondef": "a nested function"}.get(what, f"`{what}`")
            remedy = REMEDIES.get(type(node), "write loops over range, if, and assignments only")
        return UnsupportedError(f"{what} is not known in a kernel", help=remedy, where=self.locate(node))


def _is_nothing(node: ast.stmt) -> bool:
    """`pass` and texts such as the docstring."""
    text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    return text or isinstance(node, ast.Pass)


def _conjunction(parts: list[ast.expr], like: ast.expr) -> ast.expr | None:
    if len(parts) < 2:
        return parts[0] if parts else None
    return ast.copy_location(ast.BoolOp(ast.And(), parts), like)
