"""Parsed Python expressions -> quasi-affine expressions and conditions; never evaluated."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from itertools import product

from polyopt.errors import UnsupportedError
from polyopt.frontend._names import Names, arguments, function_name, not_affine, show, unknown_name, why_not
from polyopt.sets import Affine, Constraint, Set, affine, maximum, minimum, select, var

__all__ = [
    "MAX_PIECES",
    "NEGATED",
    "Condition",
    "choose",
    "comparison_sign",
    "divisor_of",
    "parse_affine",
    "parse_condition",
    "relation",
    "restrict",
]

COMPARE: dict[type[ast.cmpop], str] = {
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Eq: "==",
    ast.NotEq: "!=",
}

NEGATED = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}

MAX_PIECES = 256
"""Most conjunctions that one condition may unfold to."""

Condition = tuple[tuple[Constraint, ...], ...]
"""A disjunction of conjunctions of constraints: `()` never holds, `((),)` always."""


def parse_affine(node: ast.expr, names: Names) -> Affine:
    """`node` as a quasi-affine expression of iterators and params.

    Raises NotAffineError showing the offending part.
    """
    if isinstance(node, ast.Constant):
        return affine(_integer(node, names))
    if isinstance(node, ast.Name):
        return _variable(node, names)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.UAdd)):
        value = parse_affine(node.operand, names)
        return -value if isinstance(node.op, ast.USub) else value
    if isinstance(node, ast.BinOp):
        return _affine_binary(node, names)
    if isinstance(node, ast.IfExp):
        return _affine_choice(node, names)
    if isinstance(node, ast.Call):
        return _affine_call(node, names)
    raise not_affine(node, names, why_not(node, names))


def _integer(node: ast.Constant, names: Names) -> int:
    if type(node.value) is int:
        return node.value
    raise not_affine(node, names, "only integers may stand here")


def _variable(node: ast.Name, names: Names) -> Affine:
    if names.is_integer(node.id):
        return var(node.id)
    if node.id in names.ranks:
        raise not_affine(node, names, f"{node.id} is a tensor, its value is known only at run time")
    if node.id in ("inf", "nan"):
        raise not_affine(node, names, "only integers may stand here")
    raise unknown_name(node, names)


def _affine_binary(node: ast.BinOp, names: Names) -> Affine:
    left, right = parse_affine(node.left, names), parse_affine(node.right, names)
    if isinstance(node.op, ast.Add):
        return left + right
    if isinstance(node.op, ast.Sub):
        return left - right
    if isinstance(node.op, ast.Mult):
        if not (left.is_constant or right.is_constant):
            raise not_affine(node, names, "it multiplies two unknowns; one factor must be a constant")
        return left * right
    if isinstance(node.op, (ast.FloorDiv, ast.Mod)):
        divisor = divisor_of(node, right, names)
        return left // divisor if isinstance(node.op, ast.FloorDiv) else left % divisor
    if isinstance(node.op, ast.Div):
        raise not_affine(node, names, "/ gives fractions; write // for the floor of a division by a positive constant")
    raise not_affine(node, names, "this operator is not affine")


def divisor_of(node: ast.BinOp, right: Affine, names: Names) -> int:
    if right.is_constant and right.const > 0:
        return right.const
    sign = "//" if isinstance(node.op, ast.FloorDiv) else "%"
    raise not_affine(node, names, f"the right side of {sign} must be a positive constant")


def _affine_choice(node: ast.IfExp, names: Names) -> Affine:
    condition = parse_condition(node.test, names)
    return choose(condition, parse_affine(node.body, names), parse_affine(node.orelse, names))


def choose(condition: Condition, then: Affine, other: Affine) -> Affine:
    for conjunction in reversed(condition):
        other = select(conjunction, then, other)
    return other


def _affine_call(node: ast.Call, names: Names) -> Affine:
    function = function_name(node, names)
    if function in ("min", "max"):
        args = [parse_affine(a, names) for a in arguments(node, names, at_least=2)]
        return minimum(*args) if function == "min" else maximum(*args)
    if function == "floor":
        (arg,) = arguments(node, names, exactly=1)
        if isinstance(arg, ast.BinOp) and isinstance(arg.op, ast.Div):
            return parse_affine(arg.left, names) // _floor_divisor(arg, names)
        return parse_affine(arg, names)
    raise not_affine(node, names, f"{function} is not affine")


def _floor_divisor(node: ast.BinOp, names: Names) -> int:
    right = parse_affine(node.right, names)
    if right.is_constant and right.const > 0:
        return right.const
    raise not_affine(node, names, "the divisor must be a positive constant")


# -- affine conditions ------------------------------------------------------------------------------------------------
def parse_condition(node: ast.expr, names: Names, negate: bool = False) -> Condition:
    """An affine condition, or its negation: comparisons, chains of them, `and`, `or`, `not`; a number counts as `!= 0`.

    Raises NotAffineError showing the offending part.
    """
    if isinstance(node, ast.BoolOp):
        parts = [parse_condition(v, names, negate) for v in node.values]
        return _all(parts, node, names) if isinstance(node.op, ast.And) != negate else _any(parts, node, names)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return parse_condition(node.operand, names, not negate)
    if isinstance(node, ast.Compare):
        return _comparison(node, names, negate)
    if isinstance(node, ast.Constant) and isinstance(node.value, bool):
        return ((),) if node.value != negate else ()
    value = parse_affine(node, names)
    return relation("==" if negate else "!=", value)


def _comparison(node: ast.Compare, names: Names, negate: bool) -> Condition:
    values = [parse_affine(v, names) for v in (node.left, *node.comparators)]
    parts: list[Condition] = []
    for op, a, b in zip(node.ops, values, values[1:]):  # noqa: B905  (a chain has one value more)
        sign = comparison_sign(op, node, names)
        parts.append(relation(NEGATED[sign] if negate else sign, a - b))
    return _any(parts, node, names) if negate else _all(parts, node, names)


def comparison_sign(op: ast.cmpop, node: ast.Compare, names: Names) -> str:
    sign = COMPARE.get(type(op))
    if sign is None:
        raise UnsupportedError(
            f"cannot compare like this: {show(node)}", help="use < <= > >= == !=", where=names.locate(node)
        )
    return sign


def relation(sign: str, difference: Affine) -> Condition:
    """The condition `difference sign 0`."""
    rows = {
        "<": (Constraint(-difference - 1),),
        "<=": (Constraint(-difference),),
        ">": (Constraint(difference - 1),),
        ">=": (Constraint(difference),),
        "==": (Constraint(difference, equality=True),),
    }
    if sign == "!=":
        return (*relation("<", difference), *relation(">", difference))
    if difference.is_constant:
        return ((),) if all(c.holds({}) for c in rows[sign]) else ()
    return (rows[sign],)


def _all(parts: Iterable[Condition], node: ast.expr, names: Names) -> Condition:
    result: Condition = ((),)
    for part in parts:
        result = _limited([(*a, *b) for a, b in product(result, part)], node, names)
    return result


def _any(parts: Iterable[Condition], node: ast.expr, names: Names) -> Condition:
    return _limited([c for part in parts for c in part], node, names)


def _limited(pieces: list[tuple[Constraint, ...]], node: ast.expr, names: Names) -> Condition:
    if len(pieces) > MAX_PIECES:
        raise UnsupportedError(
            f"the condition unfolds into {len(pieces)} alternatives, at most {MAX_PIECES} are taken",
            help="split the statement",
            where=names.locate(node),
        )
    return ((),) if () in pieces else tuple(dict.fromkeys(pieces))


def restrict(points: Set, condition: Condition) -> Set:
    """The points where `condition` holds."""
    parts = [points.constrain(conjunction) for conjunction in condition]
    if not parts:
        return Set.empty(points.name, points.dims, points.params)
    result = parts[0]
    for part in parts[1:]:
        result = result.union(part)
    return result
