"""The one way from a source to a compiled program."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from types import MappingProxyType

from polyopt.errors import Diagnostic, InternalError, PluginError, PolyoptError, require_type
from polyopt.frontend import Kernel, from_function
from polyopt.frontend.torch import TorchProgram
from polyopt.ir import Scop, verify_scop
from polyopt.machine import Machine, machine
from polyopt.passes import Pass, Unit, parse_pipeline, run_passes
from polyopt.pipeline._builtin import PASSES, default_pipeline, find_pass, loop_pipeline
from polyopt.pipeline._compiled import Arguments, Compiled
from polyopt.pipeline._sizes import check_sizes
from polyopt.registry import OWN

__all__ = ["compile", "compile_loops"]

Source = Scop | Kernel | TorchProgram


def compile(
    source: Source,
    target: str | Machine = "trn2",
    at: Mapping[str, int] | None = None,
    passes: str | Iterable[Pass] | None = None,
    *,
    verify_each: bool = False,
) -> Compiled:
    """Generate a program for `target`.

    source: a Scop, a kernel or a PyTorch module read by `from_torch`.  at: sizes that the program is made for; those
    left out stay open.  passes: a pipeline, as text or as passes, instead of `default_pipeline()`.  verify_each: run
    the verifiers after every pass.

    Raises InputError on bad sizes, an unknown target or pass, and element types that the target lacks; LegalityError,
    CapacityError and UnsupportedError when the program cannot be generated.
    """
    begin = time.perf_counter()
    require_type(source, (Scop, Kernel, TorchProgram), "source", help="give a Scop, for example po.load(FILE)")
    require_type(at or {}, Mapping, "at", help="write at={'N': 64}")
    scop, arguments = _read(source)
    found = _machine(target)
    for tensor in scop.tensors:
        found.require_dtype(tensor.dtype)
    chosen = _passes(passes)
    unit = Unit(scop, found, MappingProxyType(check_sizes(scop, at or {})))
    unit = run_passes(unit, chosen, _verify if verify_each else None)
    return Compiled(scop, unit, chosen, time.perf_counter() - begin, arguments)


def compile_loops(
    scop: Scop, target: str | Machine = "trn2", at: Mapping[str, int] | None = None, *, verify_each: bool = False
) -> Compiled:
    """As `compile`, but only up to the order of the loops, which needs no instructions: it can be emitted as C.

    The cost model of `target` chooses among orders, unless the target lacks an element type of the program; then a
    remark says so.
    """
    begin = time.perf_counter()
    found = _machine(target)
    foreign = sorted({t.dtype for t in scop.tensors} - set(found.dtypes))
    chosen = loop_pipeline(costed=not foreign)
    unit = Unit(scop, found, MappingProxyType(check_sizes(scop, at or {})))
    unit = run_passes(unit, chosen, _verify if verify_each else None)
    if foreign:
        text = f"target {found.name} has no {', '.join(foreign)}: its cost model takes no part in choosing the order"
        unit = unit.with_remarks([Diagnostic("remark", "target-dtype", text)])
    return Compiled(scop, unit, chosen, time.perf_counter() - begin, Arguments(MappingProxyType({})))


def _machine(target: str | Machine) -> Machine:
    require_type(target, (str, Machine), "target", help="name a machine that `polyopt targets` lists")
    return target if isinstance(target, Machine) else machine(target)


def _read(source: Source) -> tuple[Scop, Arguments]:
    if isinstance(source, TorchProgram):
        return source.scop, Arguments(source.bound, source.arguments)
    scop = from_function(source) if isinstance(source, Kernel) else source
    return scop, Arguments(MappingProxyType({}))


def _passes(passes: str | Iterable[Pass] | None) -> tuple[Pass, ...]:
    if passes is None:
        return default_pipeline()
    return parse_pipeline(passes, find_pass) if isinstance(passes, str) else tuple(passes)


def _verify(step: Pass, before: Unit, now: Unit) -> None:
    """The verifier of every level that `step` changed; what it finds is blamed on the pass, not on the user."""
    from polyopt.simulator import check_program

    try:
        if now.scop != before.scop:
            verify_scop(now.scop)
        if now.program is not None and now.program != before.program:
            check_program(now.program, now.machine)
    except PolyoptError as error:
        raise _blame(step, error) from error


def _blame(step: Pass, error: PolyoptError) -> PolyoptError:
    owner = PASSES.distribution(step.name) if step.name in PASSES.names() else OWN
    message = f"pass {step.name} made what breaks a rule: {error.message}"
    if owner == OWN:
        return InternalError(message)
    return PluginError(message, help=f"report it to the authors of {owner}, or leave the pass out")
