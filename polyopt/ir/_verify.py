"""What must hold of every Scop, whoever made it: used by the readers and between passes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from polyopt.errors import InputError, InternalError, Location, NotAffineError, nearest
from polyopt.ir._bounds import (
    DomainFacts,
    domain_facts,
    is_injective,
    same_place_example,
    smallest_example,
    unbounded_side,
    violation,
)
from polyopt.ir._declarations import Places, check_context, check_names, check_tensor, shape_text
from polyopt.ir._unwritten import Unwritten, unwritten_reads
from polyopt.ir.dtypes import dtype
from polyopt.ir.expr import (
    APPLY_OPS,
    Access,
    Apply,
    Cast,
    Index,
    Indirect,
    access_chain,
    access_variables,
    walk,
)
from polyopt.ir.scop import COMBINES, Assign, OpaqueCall, Scop, Statement, Tensor
from polyopt.sets import Affine

__all__ = ["verify_scop"]


def verify_scop(scop: Scop, places: Places | None = None) -> None:
    """Raise unless `scop` is well formed; every message names the statement and the tensor.

    InputError: a name twice or unusable; an unknown dtype, role or init; sizes that may be negative; a domain without
    bounds; an unknown name; a wrong number of subscripts; a cell out of bounds (with the smallest sizes and the first
    instance); a write to an input; a read of a temp or output that nothing wrote before (with an example); an output
    that nothing writes; two instances at one place of the original order (with an example).
    InternalError: what no user can write, such as an unknown operator.
    """
    check = _Checker(scop, places or (lambda _name, _part: None), scop.tensor_map())
    check_names(scop, check.places)
    check_context(scop, check.places)
    for tensor in scop.tensors:
        check_tensor(scop, tensor, check.places)
    rows = scop.context.basic()
    context_rows = rows[0] if len(rows) == 1 else []
    for statement in scop.statements:
        check.statement(statement, domain_facts(statement.domain, scop.context, context_rows))
    check.flow()


@dataclass(frozen=True, slots=True)
class _Checker:
    scop: Scop
    places: Places
    tensors: Mapping[str, Tensor]

    # -- statements ---------------------------------------------------------------------------------------------------
    def statement(self, s: Statement, facts: DomainFacts) -> None:
        if s.domain.name != s.name or not set(s.domain.params) <= set(self.scop.params):
            raise InternalError(f"the domain of {s.name} is {s.domain}, with params {list(self.scop.params)}")
        missing = unbounded_side(facts)
        if missing is not None:
            raise InputError(
                f"{_title(s)}: iterator {missing[0]} has no {missing[1]} bound",
                id="unbounded",
                help=f"bound {missing[0]} by params and constants in the domain",
                where=self._where(s, "domain"),
            )
        self._order(s, facts)
        if isinstance(s.body, OpaqueCall):
            self._opaque(s, s.body)
        else:
            self._assign(s, s.body, facts)

    def _order(self, s: Statement, facts: DomainFacts) -> None:
        for expr in s.order:
            self._known(s, expr.variables(), f"order {_order_text(s)}", "order")
        if is_injective(facts, s.order):
            return
        pair = same_place_example(facts, s.order, self.scop.params)
        raise InputError(
            f"{_title(s)}: two instances have the same place in order {_order_text(s)}"
            f"{_pair_text(s, self.scop.params, pair)}",
            id="order",
            help="add iterators to the order until every instance has its own place",
            where=self._where(s, "order"),
        )

    def _opaque(self, s: Statement, body: OpaqueCall) -> None:
        for name in (*body.may_read, *body.may_write):
            if name not in self.tensors:
                raise InputError(
                    f"{_title(s)}: the call names {name}, which is not declared{nearest(name, self.tensors)}",
                    help="declare it under tensors, or correct the name",
                    id="unknown-name",
                    where=self._where(s, "body"),
                )

    def _assign(self, s: Statement, body: Assign, facts: DomainFacts) -> None:
        if body.combine is not None and body.combine not in COMBINES:
            raise InternalError(f"{s.name} combines with {body.combine!r}; known: {', '.join(COMBINES)}")
        self._value(s, body)
        for access in dict.fromkeys(access_chain(body.target)):
            written = access is body.target
            self._access(s, access, facts, "writes" if written else "reads")
        for access in dict.fromkeys(body.reads()):
            if access != body.target:
                self._access(s, access, facts, "reads")

    def _value(self, s: Statement, body: Assign) -> None:
        for node in walk(body.value):
            if isinstance(node, Apply) and APPLY_OPS.get(node.op) != len(node.args):
                raise InternalError(f"{s.name}: operator {node.op!r} with {len(node.args)} arguments")
            if isinstance(node, Cast):
                dtype(node.dtype)
            if isinstance(node, Index):
                self._known(s, node.value.variables(), "value", "body")

    def _access(self, s: Statement, access: Access, facts: DomainFacts, verb: str) -> None:
        tensor = self.tensors.get(access.tensor)
        if tensor is None:
            raise InputError(
                f"{_title(s)} {verb} {access}, but {access.tensor} is not declared"
                f"{nearest(access.tensor, self.tensors)}",
                help="declare it under tensors, or correct the name",
                id="unknown-name",
                where=self._where(s, access),
            )
        if len(access.subscripts) != len(tensor.shape):
            raise InputError(
                f"{_title(s)} {verb} {access}, but {tensor.name} has shape {shape_text(tensor)}",
                help=f"give {len(tensor.shape)} subscripts",
                id="rank",
                where=self._where(s, access),
            )
        self._known(s, access_variables(access), f"subscript of {access}", access)
        for axis, subscript in enumerate(access.subscripts):
            if isinstance(subscript, Indirect):
                self._gather(s, access, subscript)
                continue
            at = violation(facts, subscript, tensor.shape[axis], self.scop.params)
            if at is not None:
                raise self._outside(s, access, tensor, axis, verb, at)

    def _gather(self, s: Statement, access: Access, subscript: Indirect) -> None:
        tensor = self.tensors.get(subscript.access.tensor)
        if tensor is None or (not tensor.element.is_float and tensor.dtype != "bool"):
            return
        raise InputError(
            f"{_title(s)}: {tensor.name} subscripts {access.tensor}, but its dtype is {tensor.dtype}",
            id="dtype",
            help=f"give {tensor.name} an integer dtype such as int32",
            where=self._where(s, access),
        )

    def _outside(
        self, s: Statement, access: Access, tensor: Tensor, axis: int, verb: str, at: Mapping[str, int]
    ) -> InputError:
        example = ""
        if at:
            sizes = "".join(f"{p}={at[p]}, " for p in self.scop.params)
            cell = ", ".join(str(i.evaluate(at)) if isinstance(i, Affine) else str(i) for i in access.subscripts)
            shape = ", ".join(str(e.evaluate(at)) for e in tensor.shape)
            example = f": at {sizes}{_instance(s, at)} it touches {tensor.name}[{cell}] of shape [{shape}]"
        return InputError(
            f"{_title(s)} {verb} {access}, out of bounds in dimension {axis} of {tensor.name}, whose shape is "
            f"{shape_text(tensor)}{example}",
            id="out-of-bounds",
            help="restrict the domain, enlarge the tensor, or bound the sizes in context",
            where=self._where(s, access),
        )

    # -- flow of values between tensors -------------------------------------------------------------------------------
    def flow(self) -> None:
        written = {name for s in self.scop.statements for name in _written(s)}
        for s in self.scop.statements:
            self._forbid_input_writes(s)
            for name, part in _read(s):
                tensor = self.tensors[name]
                if tensor.role in ("output", "temp") and name not in written:
                    raise InputError(
                        f"{_title(s)} reads {name}, whose role is {tensor.role}, but no statement writes it",
                        id="never-written",
                        help=f"write {name} first, or give it the role input",
                        where=self._where(s, part),
                    )
        for tensor in self.scop.tensors:
            if tensor.role == "output" and tensor.name not in written and self._has_cells(tensor):
                raise InputError(
                    f"tensor {tensor.name} has the role output, but no statement writes it",
                    id="never-written",
                    help="write it, or give it another role",
                    where=self.places(tensor.name, "role"),
                )
        for found in unwritten_reads(self.scop):
            raise self._unwritten(found)

    def _has_cells(self, tensor: Tensor) -> bool:
        """Whether the tensor has a cell at any size in the context."""
        cells = tensor.cells([f"cell{k}" for k in range(len(tensor.shape))], self.scop.params)
        return not cells.intersect_params(self.scop.context).is_empty()

    def _unwritten(self, found: Unwritten) -> InputError:
        s, access = found.statement, found.access
        tensor = self.tensors[access.tensor]
        at = smallest_example(found.instances, self.scop.params)
        sizes = "".join(f"{p}={at[p]}, " for p in self.scop.params) if at else ""
        example = ""
        if at:
            cell = ", ".join(str(e.evaluate(at)) for e in access.affine_subscripts)
            example = f": at {sizes}{_instance(s, at)} it needs {tensor.name}[{cell or '()'}]"
        return InputError(
            f"{_title(s)} reads {access}, whose role is {tensor.role}, before any statement wrote it{example}",
            id="read-before-written",
            help=f"write {tensor.name} first, or give it the role inout",
            where=self._where(s, access),
        )

    def _forbid_input_writes(self, s: Statement) -> None:
        for name in _written(s):
            if self.tensors[name].role == "input":
                raise InputError(
                    f"{_title(s)} writes {name}, whose role is input",
                    id="role",
                    help=f"give {name} the role inout or output",
                    where=self._where(s, s.body.target if isinstance(s.body, Assign) else "body"),
                )

    # -- helpers ------------------------------------------------------------------------------------------------------
    def _where(self, s: Statement, part: Access | str) -> Location | None:
        return self.places(s.name, part) or s.origin.where

    def _known(self, s: Statement, used: Iterable[str], what: str, part: Access | str) -> None:
        known = (*s.iterators, *self.scop.params)
        for name in sorted(set(used) - set(known)):
            raise NotAffineError(
                f"{_title(s)}: unknown name {name} in its {what}{nearest(name, known)}",
                help=f"known here: {', '.join(known) or 'nothing'}",
                id="unknown-name",
                where=self._where(s, part),
            )


def _written(s: Statement) -> tuple[str, ...]:
    return s.body.may_write if isinstance(s.body, OpaqueCall) else (s.body.target.tensor,)


def _read(s: Statement) -> list[tuple[str, Access | str]]:
    if isinstance(s.body, OpaqueCall):
        return [(name, "body") for name in s.body.may_read]
    inner = access_chain(s.body.target)[1:]
    return [(access.tensor, access) for access in (*inner, *s.body.reads())]


def _title(s: Statement) -> str:
    """The statement's name, with the operator that it comes from."""
    parts = [p for p in (s.origin.operator, s.origin.module and f"module {s.origin.module}") if p]
    return f"{s.name} ({', '.join(parts)})" if parts else s.name


def _instance(s: Statement, at: Mapping[str, int]) -> str:
    return f"{s.name}[{', '.join(f'{d}={at[d]}' for d in s.iterators)}]"


def _pair_text(s: Statement, params: Sequence[str], pair: tuple[Mapping[str, int], Mapping[str, int]] | None) -> str:
    if pair is None:
        return ""
    sizes = "".join(f"{p}={pair[0][p]}, " for p in params)
    return f": at {sizes}{_instance(s, pair[0])} and {_instance(s, pair[1])}"


def _order_text(s: Statement) -> str:
    return f"[{', '.join(e.python() for e in s.order)}]"
