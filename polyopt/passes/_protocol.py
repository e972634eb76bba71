"""What a pass is: a frozen dataclass whose fields are its options, with a name and a function from unit to unit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Protocol, TypeVar

from polyopt.errors import Diagnostic, InputError
from polyopt.ir import Program, Scop
from polyopt.machine import Machine

__all__ = ["Pass", "Unit", "run_passes"]

T = TypeVar("T")


def _nothing() -> Mapping[str, T]:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Unit:
    """One program on its way through the pipeline.

    at: parameters that are fixed.  products: what passes computed, by name (`deps`, `schedule`, `mapping`, ...).
    program: the generated program, once there is one.  remarks: what passes had to say, in order.
    """

    scop: Scop
    machine: Machine
    at: Mapping[str, int] = field(default_factory=_nothing)
    products: Mapping[str, object] = field(default_factory=_nothing)
    program: Program | None = None
    remarks: tuple[Diagnostic, ...] = ()

    def product(self, name: str, kind: type[T]) -> T:
        """The product called `name`; InputError when no earlier pass made it, or made something else."""
        found = self.products.get(name)
        if not isinstance(found, kind):
            made = ", ".join(sorted(self.products)) or "nothing"
            raise InputError(
                f"a pass needs {name!r} ({kind.__name__}), which no pass before it made; there is {made}",
                help="put the pass that makes it in front",
                id="pipeline",
            )
        return found

    def with_product(self, name: str, value: object) -> Unit:
        """The same unit with one product more (or another one of that name)."""
        return replace(self, products=MappingProxyType({**self.products, name: value}))

    def with_scop(self, scop: Scop) -> Unit:
        """The same unit with another source program; products and program, being of the old one, are dropped."""
        return replace(self, scop=scop, products=MappingProxyType({}), program=None)

    def with_remarks(self, remarks: Iterable[Diagnostic]) -> Unit:
        return replace(self, remarks=(*self.remarks, *remarks))


class Pass(Protocol):
    """Implemented by frozen dataclasses.  `name` is what the pipeline text calls it; `run` must not have effects."""

    @property
    def name(self) -> str: ...

    def run(self, unit: Unit) -> Unit: ...


def run_passes(unit: Unit, passes: Iterable[Pass], after: Callable[[Pass, Unit, Unit], None] | None = None) -> Unit:
    """All passes one after the other; `after(pass, before, now)` sees every step and may raise."""
    for step in passes:
        before, unit = unit, step.run(unit)
        if after is not None:
            after(step, before, unit)
    return unit
