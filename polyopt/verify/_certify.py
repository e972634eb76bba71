"""Certificates of legal schedules: made here with proofs found by the optimizer, accepted only by the checker."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from polyopt.ir import Scop
from polyopt.schedule import (
    GivenUp,
    ScheduleLike,
    Step,
    Verdict,
    certificate_statement,
    check,
    fixed_scop,
    prove_empty,
    read_order,
)
from polyopt.verify import certificate as checker

__all__ = ["CERTIFIED", "Certificate", "certify", "is_certificate_for"]

CERTIFIED = "certified"


@dataclass(frozen=True, slots=True)
class Certificate:
    """The judge's verdict, its level `certified` when the independent checker accepted `text`.

    text: the certificate as JSON, empty when the schedule is not legal.  num_pairs: pairs of accesses that conflict, of
    which num_certified_pairs are shown to be kept.  refusals: claim -> why it is not shown, nothing when accepted.
    """

    verdict: Verdict
    text: str = ""
    num_pairs: int = 0
    num_certified_pairs: int = 0
    refusals: tuple[tuple[str, str], ...] = ()

    def __bool__(self) -> bool:
        return self.verdict.level == CERTIFIED

    @property
    def why_not(self) -> str:
        """Why the verdict is not certified; empty when it is."""
        if self:
            return ""
        if not self.verdict:
            return f"only a legal schedule has a certificate, and this one is {self.verdict.verdict}"
        claim, reason = self.refusals[0]
        of = f"{self.num_certified_pairs} of {self.num_pairs} pairs of accesses are certified"
        return f"{of}; {len(self.refusals)} claims are open, the first is '{claim}': {reason}"


def certify(
    scop: Scop, schedule: ScheduleLike, *, parallel: Sequence[int] = (), at: Mapping[str, int] | None = None
) -> Certificate:
    """Judge a schedule as `polyopt.check` does, and certify a legal one.

    The verdict's level is `certified` when the checker, which shares nothing with the judge, accepts the certificate;
    otherwise it stays `proved` and `refusals` says which claims are open.  Raises as `check`.
    """
    verdict = check(scop, schedule, parallel=parallel, at=at)
    if not verdict:
        return Certificate(verdict)
    if not read_order(fixed_scop(scop, at), schedule, parallel=parallel).orders_once():
        why = "the schedule runs an instance more than once, and certificates are about orders that run each once"
        return Certificate(verdict, refusals=(("certificate", why),))
    text = unjudged(scop, schedule, parallel=parallel, at=at)
    report = checker.check(text.encode())
    level = CERTIFIED if report["accepted"] else verdict.level
    axioms = tuple(report["axioms"]) if report["accepted"] else verdict.axioms
    refusals = tuple(report["refusals"].items())
    judged = replace(verdict, level=level, axioms=axioms)
    return Certificate(judged, text, report["pairs"], report["certified_pairs"], refusals)


def unjudged(
    scop: Scop, schedule: ScheduleLike, *, parallel: Sequence[int] = (), at: Mapping[str, int] | None = None
) -> str:
    """A certificate with every proof that is found, whatever the judge says: refused unless the schedule is legal."""
    document = _statement(scop, schedule, parallel, at)
    return json.dumps({**document, "proofs": _proofs(document)}, separators=(",", ":"))


def is_certificate_for(
    text: str | bytes,
    scop: Scop,
    schedule: ScheduleLike,
    *,
    parallel: Sequence[int] = (),
    at: Mapping[str, int] | None = None,
) -> bool:
    """Whether a certificate, accepted or not, speaks about this program, schedule and sizes: its statement is made
    again and compared.  Raises ValueError when the text is no certificate.
    """
    document = checker.read(text.encode() if isinstance(text, str) else text)
    statement = _statement(scop, schedule, parallel, at)
    return {**document, "proofs": {}} == {**statement, "proofs": {}}


def _statement(
    scop: Scop, schedule: ScheduleLike, parallel: Sequence[int], at: Mapping[str, int] | None
) -> dict[str, object]:
    program = fixed_scop(scop, at)
    return certificate_statement(program, read_order(program, schedule, parallel=parallel))


def _proofs(document: Mapping[str, object]) -> dict[str, list[Step]]:
    """Claim -> steps; a pair that only an axiom excuses gets that, and what has no proof says so."""
    program = checker.Program({**document, "proofs": {}})
    proofs: dict[str, list[Step]] = {}
    for claim, fill, axiom in program.claims():
        proofs[claim] = [["axiom", axiom]]
        if axiom == "":
            continue
        system = checker.System(program)
        fill(system)
        found = prove_empty(system.rows, system.clauses)
        if not isinstance(found, GivenUp):
            proofs[claim] = found
        elif axiom is None:
            proofs[claim] = [["open", found.reason]]
    return proofs
