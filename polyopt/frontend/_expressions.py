"""Parsed Python expressions -> accesses and right-hand sides; never evaluated.

Both the SCoP file and the Python front end read their assignments here.  What a name means stands in `Names`;
everything unknown or not quasi-affine is refused at its own place in the user's text.
"""

from __future__ import annotations

import ast

from polyopt.errors import InputError, NotAffineError, UnsupportedError, nearest
from polyopt.frontend._affine import Condition, choose, comparison_sign, divisor_of, parse_affine, parse_condition
from polyopt.frontend._names import (
    Names,
    arguments,
    function_name,
    is_module_attribute,
    not_affine,
    show,
    unknown_name,
    why_not,
)
from polyopt.ir import Access, Apply, Cast, Const, Expr, Index, Indirect, Read, Subscript, Uninterpreted, dtype
from polyopt.sets import Affine, affine, maximum, minimum, var

__all__ = ["negated", "parse_access", "parse_truth", "parse_value", "reads_tensor"]

ARITHMETIC: dict[type[ast.operator], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.Pow: "**",
}


# -- accesses ---------------------------------------------------------------------------------------------------------
def parse_access(node: ast.expr, names: Names) -> Access:
    """`A[i, j + 1]`, `s[()]`, `x[idx[i] + 1]`, or the bare name of a scalar where `names` allows it."""
    if isinstance(node, ast.Name):
        return _bare_access(node, names)
    if not isinstance(node, ast.Subscript):
        raise InputError(
            f"expected a tensor element, found {show(node)}", help="write A[i, j]", where=names.locate(node)
        )
    tensor = _subscripted(node, names)
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    if len(parts) != names.ranks[tensor]:
        raise _wrong_rank(node, tensor, len(parts), names)
    return Access(tensor, tuple(_subscript(p, names) for p in parts))


def reads_tensor(node: ast.AST, names: Names) -> bool:
    """Whether a tensor element occurs anywhere below `node`."""
    return any(
        isinstance(n, ast.Subscript) or (isinstance(n, ast.Name) and n.id in names.ranks) for n in ast.walk(node)
    )


def _bare_access(node: ast.Name, names: Names) -> Access:
    if names.is_bare_scalar(node.id):
        return Access(node.id, ())
    if node.id not in names.ranks:
        raise unknown_name(node, names)
    raise InputError(
        f"the tensor {node.id} stands without subscripts", help=_usage(node.id, names), where=names.locate(node)
    )


def _subscripted(node: ast.Subscript, names: Names) -> str:
    if isinstance(node.value, ast.Subscript):
        raise UnsupportedError(
            f"cannot subscript twice: {show(node)}", help="write A[i, j], not A[i][j]", where=names.locate(node)
        )
    if not isinstance(node.value, ast.Name):
        raise UnsupportedError(
            f"only a tensor can be subscripted: {show(node)}", help="write A[i, j]", where=names.locate(node)
        )
    tensor = node.value.id
    if tensor not in names.ranks:
        what = "is no tensor" if names.is_integer(tensor) else "is not declared"
        raise InputError(
            f"{tensor} {what}, but is subscripted in {show(node)}{nearest(tensor, names.ranks)}",
            id="unknown-name",
            where=names.locate(node.value),
        )
    return tensor


def _wrong_rank(node: ast.Subscript, tensor: str, found: int, names: Names) -> InputError:
    rank = names.ranks[tensor]
    return InputError(
        f"{show(node)} has {found} subscript{'' if found == 1 else 's'}, but {tensor} has {rank} "
        f"dimension{'' if rank == 1 else 's'}",
        id="rank",
        help=_usage(tensor, names),
        where=names.locate(node),
    )


def _usage(tensor: str, names: Names) -> str:
    rank = names.ranks[tensor]
    return f"write {tensor}[{', '.join('ijklmnpq'[k % 8] for k in range(rank)) or '()'}]"


def _subscript(node: ast.expr, names: Names) -> Subscript:
    if isinstance(node, (ast.Slice, ast.Starred)):
        raise UnsupportedError(
            f"{show(node)} does not name one element", help="write a loop over the elements", where=names.locate(node)
        )
    if not reads_tensor(node, names):
        return parse_affine(node, names)
    gather: ast.expr | None = None
    offset = affine(0)
    for sign, term in _summands(node, 1):
        if not reads_tensor(term, names):
            offset = offset + parse_affine(term, names) * sign
        elif gather is None and sign == 1 and isinstance(term, (ast.Subscript, ast.Name)):
            gather = term
        else:
            raise not_affine(term, names, "a data-dependent subscript is one T[...] plus an affine offset")
    if gather is None:
        raise not_affine(node, names, "a data-dependent subscript is one T[...] plus an affine offset")
    return Indirect(parse_access(gather, names), offset)


def _summands(node: ast.expr, sign: int) -> list[tuple[int, ast.expr]]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
        right = sign if isinstance(node.op, ast.Add) else -sign
        return _summands(node.left, sign) + _summands(node.right, right)
    return [(sign, node)]


# -- values -----------------------------------------------------------------------------------------------------------
def parse_value(node: ast.expr, names: Names) -> Expr:
    """A right-hand side; its largest pieces that are affine in iterators and params become `Index` or `Const`."""
    if isinstance(node, ast.Constant):
        return _literal(node, names)
    if isinstance(node, ast.Name):
        return _named_value(node, names)
    if isinstance(node, ast.Subscript):
        return Read(parse_access(node, names))
    if isinstance(node, ast.UnaryOp):
        return _unary(node, names)
    if isinstance(node, ast.BinOp):
        return _binary(node, names)
    if isinstance(node, ast.BoolOp):
        return _logic(node, names)
    if isinstance(node, ast.Compare):
        return _comparison_value(node, names)
    if isinstance(node, ast.IfExp):
        return _choice(node, names)
    if isinstance(node, ast.Call):
        return _call(node, names)
    if isinstance(node, ast.Attribute) and is_module_attribute(node, names) and node.attr in ("inf", "nan"):
        return Const(float(node.attr))
    raise UnsupportedError(f"cannot read {show(node)}", help=why_not(node, names), where=names.locate(node))


def parse_truth(node: ast.expr, names: Names) -> Expr:
    """A condition: only whether the value is true counts."""
    if isinstance(node, ast.BoolOp):
        return _fold(_logical(node), [parse_truth(v, names) for v in node.values])
    return parse_value(node, names)


def _logical(node: ast.BoolOp) -> str:
    return "and" if isinstance(node.op, ast.And) else "or"


def _logic(node: ast.BoolOp, names: Names) -> Expr:
    """`a and b` as Python means it: a truth value where all operands are, otherwise `b if a else a`."""
    if all(_is_truth(v, names) for v in node.values):
        return parse_truth(node, names)
    op = _logical(node)
    result = parse_value(node.values[-1], names)
    for v in reversed(node.values[:-1]):
        test, value = parse_truth(v, names), parse_value(v, names)
        result = Apply("select", (test, result, value) if op == "and" else (test, value, result))
    return result


def _is_truth(node: ast.expr, names: Names) -> bool:
    """Whether the value is always a truth value."""
    if isinstance(node, ast.BoolOp):
        return all(_is_truth(v, names) for v in node.values)
    if isinstance(node, ast.IfExp):
        return _is_truth(node.body, names) and _is_truth(node.orelse, names)
    if isinstance(node, ast.UnaryOp):
        return isinstance(node.op, ast.Not)
    if isinstance(node, ast.Constant):
        return isinstance(node.value, bool)
    tensor = node.value if isinstance(node, ast.Subscript) else node
    return isinstance(node, ast.Compare) or (isinstance(tensor, ast.Name) and tensor.id in names.truths)


def _literal(node: ast.Constant, names: Names) -> Expr:
    if isinstance(node.value, int) and not -(2**63) <= node.value < 2**63:
        raise InputError(
            f"the integer {show(node)[:20]}... does not fit in 64 bits",
            help="write a float such as 1e30",
            where=names.locate(node),
        )
    if isinstance(node.value, (bool, int, float)):
        return Const(node.value)
    raise UnsupportedError(
        f"{show(node)} is not a number", help="values are real numbers and truth values", where=names.locate(node)
    )


def _named_value(node: ast.Name, names: Names) -> Expr:
    if names.is_integer(node.id):
        return Index(var(node.id))
    if node.id in ("inf", "nan") and node.id not in names.ranks:
        return Const(float(node.id))
    return Read(_bare_access(node, names))


def _as_affine(expr: Expr) -> Affine | None:
    if isinstance(expr, Index):
        return expr.value
    if isinstance(expr, Const) and type(expr.value) is int:
        return affine(expr.value)
    return None


def _integer_value(value: Affine) -> Expr:
    return Const(value.const) if value.is_constant else Index(value)


def _affine_or_none(node: ast.expr, names: Names) -> Affine | None:
    try:
        return None if reads_tensor(node, names) else parse_affine(node, names)
    except NotAffineError:
        return None


def _condition_or_none(node: ast.expr, names: Names) -> Condition | None:
    try:
        return None if reads_tensor(node, names) else parse_condition(node, names)
    except NotAffineError:
        return None


def _unary(node: ast.UnaryOp, names: Names) -> Expr:
    if isinstance(node.op, ast.Not):
        return Apply("not", (parse_truth(node.operand, names),))
    arg = parse_value(node.operand, names)
    if isinstance(node.op, ast.UAdd):
        return arg
    if isinstance(node.op, ast.Invert):
        raise UnsupportedError(f"cannot read {show(node)}", help="~ is not known; use not", where=names.locate(node))
    return negated(arg)


def negated(arg: Expr) -> Expr:
    """`-arg`, the sign of a literal folded."""
    value = _as_affine(arg)
    if value is not None:
        return _integer_value(-value)
    if isinstance(arg, Const) and isinstance(arg.value, float):
        return Const(-arg.value)
    return Apply("neg", (arg,))


def _binary(node: ast.BinOp, names: Names) -> Expr:
    left, right = parse_value(node.left, names), parse_value(node.right, names)
    a, b = _as_affine(left), _as_affine(right)
    if isinstance(node.op, (ast.FloorDiv, ast.Mod)):
        if a is None or b is None:
            raise not_affine(node, names, "// and % are known for iterators and params only")
        divisor = divisor_of(node, b, names)
        return _integer_value(a // divisor if isinstance(node.op, ast.FloorDiv) else a % divisor)
    op = ARITHMETIC.get(type(node.op))
    if op is None:
        raise UnsupportedError(
            f"the operator in {show(node)} is not known", help="use + - * / **", where=names.locate(node)
        )
    if a is not None and b is not None:
        if op in "+-":
            return _integer_value(a + b if op == "+" else a - b)
        if op == "*" and (a.is_constant or b.is_constant):
            return _integer_value(a * b)
    return Apply(op, (left, right))


def _fold(op: str, args: list[Expr]) -> Expr:
    result = args[0]
    for a in args[1:]:
        result = Apply(op, (result, a))
    return result


def _comparison_value(node: ast.Compare, names: Names) -> Expr:
    values = [parse_value(v, names) for v in (node.left, *node.comparators)]
    parts: list[Expr] = [
        Apply(comparison_sign(op, node, names), (a, b))
        for op, a, b in zip(node.ops, values, values[1:])  # noqa: B905  (a chain has one value more)
    ]
    return _fold("and", parts)


def _choice(node: ast.IfExp, names: Names) -> Expr:
    then, other = parse_value(node.body, names), parse_value(node.orelse, names)
    a, b = _as_affine(then), _as_affine(other)
    if a is not None and b is not None:
        condition = _condition_or_none(node.test, names)
        if condition is not None:
            return _integer_value(choose(condition, a, b))
    return Apply("select", (parse_truth(node.test, names), then, other))


def _call(node: ast.Call, names: Names) -> Expr:
    function = function_name(node, names)
    if function == "cast":
        return _cast(node, names)
    if function == "call":
        return _uninterpreted(node, names)
    if function in ("min", "max"):
        args = [parse_value(a, names) for a in arguments(node, names, at_least=2)]
        pieces = [_as_affine(a) for a in args]
        known = [p for p in pieces if p is not None]
        if len(known) == len(args):
            return _integer_value(minimum(*known) if function == "min" else maximum(*known))
        return _fold(function, args)
    (arg,) = arguments(node, names, exactly=1)
    if function == "floor":
        value = _affine_or_none(node, names)
        if value is not None:
            return _integer_value(value)
    return Apply(function, (parse_value(arg, names),))


def _cast(node: ast.Call, names: Names) -> Expr:
    kind, arg = arguments(node, names, exactly=2)
    if not isinstance(kind, ast.Constant) or not isinstance(kind.value, str):
        raise InputError(
            f"cast wants a dtype in quotes, found {show(kind)}",
            help='write cast("float32", e)',
            where=names.locate(kind),
        )
    try:
        dtype(kind.value)
    except InputError as error:
        raise InputError(error.message, help=error.diagnostic.help, id="dtype", where=names.locate(kind)) from error
    return Cast(kind.value, parse_value(arg, names))


def _uninterpreted(node: ast.Call, names: Names) -> Expr:
    function, *rest = arguments(node, names, at_least=1)
    if not isinstance(function, ast.Name):
        raise InputError(
            f"call wants the name of a function first, found {show(function)}",
            help="write call(f, x, y)",
            where=names.locate(function),
        )
    return Uninterpreted(function.id, tuple(parse_value(a, names) for a in rest))
