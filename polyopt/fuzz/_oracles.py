"""Questions with two independent answers; an oracle raises Disagreement when they differ."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from polyopt.frontend import read_scop, write_scop
from polyopt.fuzz._case import MAP, TREE, Case
from polyopt.fuzz._enumerate import Answer, enumerate_verdict, instances_at
from polyopt.fuzz._execute import InexactError, execute
from polyopt.fuzz._variants import VARIANTS
from polyopt.ir import Scop
from polyopt.pipeline import Compiled, compile
from polyopt.reference import inputs, interpret
from polyopt.schedule import Verdict, check
from polyopt.simulator import simulate
from polyopt.verify import certificate as checker
from polyopt.verify import certify
from polyopt.verify._certify import unjudged

__all__ = ["ORACLES", "DisagreementError", "Oracle"]

TARGET = "trn2"

MOST_SMALLER = 40
"""Smaller sizes that are tried for a witness of all sizes."""

MOST_PAIRS_INSTANCES = 120
"""Instances that are compared pair by pair at those sizes."""


class DisagreementError(AssertionError):
    """Two answers differ: a fault in polyopt, or in the oracle."""


Oracle = Callable[[Case], frozenset[str]]
"""Gives what the case turned out to be, for the histogram."""


def _require(condition: object, message: str) -> None:
    if not condition:
        raise DisagreementError(message)


def _answer(verdict: Verdict) -> Answer:
    w = verdict.witness
    if w is None:
        return Answer(verdict.verdict)
    pair = (w.kind, w.tensor, w.cell, w.source.statement, w.source.values, w.sink.statement, w.sink.values)
    return Answer(verdict.verdict, pair)


def text(case: Case) -> frozenset[str]:
    """A program that was read from its text and written is read as the same program."""
    read = read_scop(write_scop(case.scop))
    _require(read_scop(write_scop(read)) == read, "the program read from its text is another one")
    return frozenset()


def judge_at_sizes(case: Case) -> frozenset[str]:
    """Verdict and smallest witness at fixed sizes, by enumeration."""
    vectors, free = case.meant()
    expected = enumerate_verdict(case.scop, vectors, case.sizes, free)
    found = check(case.scop, case.schedule(), parallel=case.parallel, at=case.sizes or None)
    _require(
        _answer(found) == expected, f"at {dict(case.sizes)} the judge says {_answer(found)}, enumeration {expected}"
    )
    return frozenset({f"{expected.verdict} schedule"})


def judge_for_all_sizes(case: Case) -> frozenset[str]:
    """The witness for all sizes is right at its sizes, and no smaller sizes have one."""
    vectors, free = case.meant()
    found = check(case.scop, case.schedule(), parallel=case.parallel)
    if found.witness is None:
        expected = enumerate_verdict(case.scop, vectors, case.sizes, free)
        allowed = ("legal",) if found.verdict == "legal" else ("legal", "unknown")
        _require(expected.verdict in allowed, f"{found.verdict} for all sizes, but {expected} at {dict(case.sizes)}")
        return frozenset()
    sizes = dict(found.witness.params)
    if _count(case.scop, sizes) <= MOST_PAIRS_INSTANCES:
        expected = enumerate_verdict(case.scop, vectors, sizes, free)
        _require(_answer(found) == expected, f"at its sizes {sizes} the witness is {_answer(found)}, not {expected}")
    for smaller in _smaller(case.scop, sizes):
        answer = enumerate_verdict(case.scop, vectors, smaller, free)
        _require(answer.verdict != "illegal", f"the witness has sizes {sizes}, but {smaller} has {answer}")
    return frozenset()


def _count(scop: Scop, sizes: Mapping[str, int]) -> int:
    return sum(map(len, instances_at(scop, sizes).values()))


def _smaller(scop: Scop, sizes: Mapping[str, int]) -> list[dict[str, int]]:
    """Sizes in the context that come before these in the order of the parameters."""
    top = max(sizes.values(), default=0) + 1
    found: list[dict[str, int]] = []
    for values in itertools.product(range(min(top, 5)), repeat=len(sizes)):
        at = dict(zip(sizes, values, strict=True))
        if values >= tuple(sizes.values()) or len(found) == MOST_SMALLER:
            break
        if not scop.context.fix(at).is_empty() and _count(scop, at) <= MOST_PAIRS_INSTANCES:
            found.append(at)
    return found


def certificates(case: Case) -> frozenset[str]:
    """What is legal is certified, what is not has no certificate that the checker accepts."""
    found = certify(case.scop, case.schedule(), parallel=case.parallel)
    if found.verdict:
        _require(found, f"legal, but not certified: {found.why_not}")
        return frozenset({"certified"})
    report = checker.check(unjudged(case.scop, case.schedule(), parallel=case.parallel).encode())
    _require(not report["accepted"], f"{found.verdict.verdict}, but the checker accepts a certificate")
    return frozenset()


def values(case: Case) -> frozenset[str]:
    """The reference and the simulated target against a plain execution on integers; bit for bit."""
    if any(s.is_opaque for s in case.scop.statements):
        return frozenset()
    scop, sizes = case.scop, dict(case.run_sizes)
    arrays = _small_integers(scop, sizes)
    exact = inputs(scop, sizes, mode="exact")
    compiled = compile(scop, TARGET, sizes)
    _same_exactly(scop, compiled, exact, sizes)
    try:
        expected = execute(scop, arrays, sizes)
    except InexactError:
        return frozenset({"too large to compare"})
    referred = interpret(scop, arrays, sizes)
    simulated = simulate(compiled.program, compiled.machine, arrays, sizes, detect_races=True)
    _require(not simulated.races, f"a race: {simulated.races}")
    for name in (t.name for t in scop.with_role("output", "inout")):
        _same(f"{name} of the reference", referred[name], expected[name])
        _same(f"{name} of the simulated target", simulated.outputs[name], expected[name])
    return frozenset({"compared"})


def _same_exactly(scop: Scop, compiled: Compiled, arrays: Mapping[str, Any], sizes: Mapping[str, int]) -> None:
    expected = interpret(scop, arrays, sizes, "exact")
    result = simulate(compiled.program, compiled.machine, arrays, sizes, mode="exact")
    for name, wanted in expected.items():
        _same(f"{name} in exact mode", result.outputs[name], wanted)


def _same(what: str, found: Any, expected: Any) -> None:
    wrong = np.argwhere(np.asarray(found != expected))
    if len(wrong):
        cell = [int(k) for k in wrong[0]]
        raise DisagreementError(f"{what}: {cell} is {found[tuple(cell)]}, expected {expected[tuple(cell)]}")


def _small_integers(scop: Scop, sizes: Mapping[str, int]) -> dict[str, Any]:
    """-2 to 2, not 0, and subscripts as they are drawn; an unsigned tensor holds 1 and 2."""
    made = inputs(scop, sizes, seed=1)
    for name, array in made.items():
        if name.startswith("p"):
            continue
        pattern = np.resize(np.array([1, -2, 2, -1, 1, 2]), array.shape)
        made[name] = (np.abs(pattern) if array.dtype.kind == "u" else pattern).astype(array.dtype)
    return made


def variants(case: Case) -> frozenset[str]:
    """Verdicts and values do not depend on names, on room, on statements that do nothing or on how sets are split."""
    base = check(case.scop, case.schedule(), parallel=case.parallel, at=case.sizes or None)
    for name, change in VARIANTS.items():
        other = change(case)
        if other is case:
            continue
        found = check(other.scop, other.schedule(), parallel=other.parallel, at=other.sizes or None)
        _require(
            found.verdict == base.verdict,
            f"{name}: the judge says {found.verdict} ({found.reason}) instead of {base.verdict} ({base.reason})",
        )
        if other.form == MAP and base.witness is not None and found.witness is not None:
            pair = [w.source.values + w.sink.values for w in (base.witness, found.witness)]
            _require(pair[0] == pair[1], f"{name}: the witness is {found.witness} instead of {base.witness}")
    return frozenset()


def determinism(case: Case) -> frozenset[str]:
    """The same program gives the same generated program."""
    if any(s.is_opaque for s in case.scop.statements):
        return frozenset()
    first, second = (compile(read_scop(write_scop(case.scop)), TARGET, dict(case.run_sizes)) for _ in range(2))
    _require(first.emit("program") == second.emit("program"), "two compilations give two programs")
    return frozenset()


def forms(case: Case) -> frozenset[str]:
    """Union map, vectors and tree of one order get one verdict."""
    if case.parallel or case.any_order:
        return frozenset()
    answers = {
        form: check(case.scop, replace(case, form=form).schedule(), at=case.sizes or None).verdict
        for form in (MAP, "vectors")
    }
    _require(len(set(answers.values())) == 1, f"the verdict depends on the form: {answers}")
    if answers[MAP] == "legal":
        tree = check(case.scop, replace(case, form=TREE).schedule(), at=case.sizes or None)
        _require(tree, f"legal as a map, as a tree {tree.verdict}: {tree.reason}")
    return frozenset()


ORACLES: Mapping[str, Oracle] = {
    "text": text,
    "judge at sizes": judge_at_sizes,
    "judge for all sizes": judge_for_all_sizes,
    "forms": forms,
    "certificates": certificates,
    "variants": variants,
    "values": values,
    "determinism": determinism,
}
"""Name -> oracle, in the order in which a case is put to them."""
