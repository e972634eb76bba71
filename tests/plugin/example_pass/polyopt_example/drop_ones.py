"""The pass `drop-ones`: x * 1.0 and 1.0 * x become x, which is exact in every element type."""

from __future__ import annotations

from dataclasses import dataclass, replace

from polyopt.errors import Diagnostic
from polyopt.ir import Apply, Assign, Const, Expr, Statement, rewrite
from polyopt.passes import Unit


@dataclass(frozen=True, slots=True)
class DropOnes:
    """Options: `quiet` leaves out the remark."""

    quiet: bool = False

    @property
    def name(self) -> str:
        return "drop-ones"

    def run(self, unit: Unit) -> Unit:
        statements = tuple(_simplified(s) for s in unit.scop.statements)
        changed = [s.name for s, old in zip(statements, unit.scop.statements, strict=True) if s != old]
        unit = unit.with_scop(replace(unit.scop, statements=statements))
        if self.quiet or not changed:
            return unit
        message = f"multiplications by one removed in {', '.join(changed)}"
        return unit.with_remarks([Diagnostic("remark", "drop-ones", message)])


def _simplified(statement: Statement) -> Statement:
    if not isinstance(statement.body, Assign):
        return statement
    return replace(statement, body=replace(statement.body, value=rewrite(statement.body.value, _without_one)))


def _without_one(node: Expr) -> Expr:
    if not (isinstance(node, Apply) and node.op == "*"):
        return node
    left, right = node.args
    if left == Const(1.0):
        return right
    return left if right == Const(1.0) else node
