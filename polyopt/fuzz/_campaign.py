"""A campaign: random cases, put to every oracle; failures shrunk and written to files of their own."""

from __future__ import annotations

import contextlib
import hashlib
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as seeded
from hypothesis.errors import Flaky

from polyopt import __version__
from polyopt.errors import BudgetError, UnsupportedError
from polyopt.fuzz._case import Case, read_case, write_case
from polyopt.fuzz._cases import cases
from polyopt.fuzz._features import FEATURES, features
from polyopt.fuzz._oracles import ORACLES, DisagreementError, Oracle

__all__ = ["Campaign", "Failure", "put_to", "replay", "run_campaign"]

BATCH = 50
"""Cases between two looks at the clock."""

CASE_S = 60
"""Seconds for one oracle and one case; more is a failure."""

DOCUMENTED = (UnsupportedError, BudgetError)
"""Refusals that are answers."""


@dataclass(frozen=True, slots=True)
class Failure:
    """path: a file that reproduces it alone."""

    path: str
    oracle: str
    message: str

    def to_json(self) -> dict[str, str]:
        return {"path": self.path, "oracle": self.oracle, "message": self.message}


@dataclass(frozen=True, slots=True)
class Campaign:
    """What `polyopt fuzz --json` prints."""

    programs: int
    failures: tuple[Failure, ...]
    seed: int
    features: Mapping[str, int]
    refused: int
    took_s: float

    def to_json(self) -> dict[str, object]:
        return {
            "programs": self.programs,
            "failures": [f.to_json() for f in self.failures],
            "seed": self.seed,
            "features": dict(self.features),
            "refused": self.refused,
            "version": __version__,
        }


class TooSlowError(Exception):
    """An oracle did not answer in time."""


@contextlib.contextmanager
def _time_limit(limit_s: int) -> Iterator[None]:
    """Raise TooSlowError in the body after that many seconds, where the system has such a clock."""
    if not hasattr(signal, "SIGALRM"):
        yield
        return

    def ring(_number: int, _frame: FrameType | None) -> None:
        raise TooSlowError(f"no answer within {limit_s} s")

    former = signal.signal(signal.SIGALRM, ring)
    signal.alarm(limit_s)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, former)


@dataclass(slots=True)
class _Batch:
    """counting: whether the cases are new ones, not those of a failure that is made smaller."""

    oracles: Mapping[str, Oracle]
    counts: Counter[str] = field(default_factory=Counter)
    programs: int = 0
    refused: int = 0
    counting: bool = True
    worst: tuple[Case, str, str] | None = None

    def try_case(self, case: Case) -> None:
        if self.counting:
            self.programs += 1
            self.counts.update(features(case))
        found: set[str] = set()
        for name, oracle in self.oracles.items():
            message = put_to(name, oracle, case, found)
            if message == REFUSED:
                self.refused += self.counting
            elif message is not None:
                self.counting = False
                self.worst = case, name, message
                raise DisagreementError(f"{name}: {message}")
        if self.counting:
            self.counts.update(found)


REFUSED = "refused"


def put_to(name: str, oracle: Oracle, case: Case, found: set[str] | None = None) -> str | None:
    """Why an oracle is not content with a case: None when it is, `refused` when polyopt says that it cannot do this.

    found: takes in what the case turned out to be.
    """
    del name
    try:
        with _time_limit(CASE_S):
            kinds = oracle(case)
    except DOCUMENTED:
        return REFUSED
    except DisagreementError as error:
        return str(error)
    except Exception as error:  # whatever else is raised is a fault, and the case shows it
        return f"{type(error).__name__}: {error}"
    if found is not None:
        found |= kinds
    return None


def run_campaign(
    seed: int,
    *,
    count: int | None = None,
    seconds: float | None = None,
    out: Path = Path("fuzz-failures"),
    oracles: Mapping[str, Oracle] = ORACLES,
    step: Callable[[int], None] | None = None,
    most_failures: int = 10,
    shrink: bool = True,
) -> Campaign:
    """Try `count` cases, or as many as `seconds` permit.  The same seed and count give the same cases.

    step: called with the number of cases so far.  Failures of one oracle with one kind of message are written once, and
    `most_failures` of them end a campaign.
    """
    begin = time.monotonic()
    counts: Counter[str] = Counter(dict.fromkeys((*FEATURES, *ANSWERS), 0))
    failures: dict[tuple[str, str], Failure] = {}
    programs = refused = batch_number = 0
    while True:
        left = BATCH if count is None else min(BATCH, count - programs)
        if left <= 0 or len(failures) >= most_failures or (seconds is not None and time.monotonic() - begin >= seconds):
            break
        batch = _run_batch(oracles, hash_of(seed, batch_number), left, shrink=shrink)
        batch_number += 1
        counts.update(batch.counts)
        programs += max(batch.programs, 1)
        refused += batch.refused
        if batch.worst is not None:
            case, name, message = batch.worst
            key = (name, message[:40])
            if key not in failures:
                failures[key] = _written(case, name, message, seed, out)
        if step is not None:
            step(programs)
    ordered = {name: counts[name] for name in (*FEATURES, *ANSWERS)}
    return Campaign(programs, tuple(failures.values()), seed, ordered, refused, time.monotonic() - begin)


ANSWERS = ("legal schedule", "illegal schedule", "unknown schedule", "certified", "compared", "too large to compare")
"""What oracles say of a case."""


def hash_of(*parts: int) -> int:
    """A seed for hypothesis that depends on all parts."""
    return int.from_bytes(hashlib.sha256(repr(parts).encode()).digest()[:8], "big")


def _run_batch(oracles: Mapping[str, Oracle], seed: int, count: int, *, shrink: bool) -> _Batch:
    batch = _Batch(oracles)

    @seeded(seed)
    @settings(
        max_examples=count,
        database=None,
        deadline=None,
        print_blob=False,
        report_multiple_bugs=False,
        phases=(Phase.generate, Phase.shrink) if shrink else (Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    @given(cases())
    def body(case: Case) -> None:
        batch.try_case(case)

    with contextlib.suppress(DisagreementError, Flaky):  # kept in `worst`, the smallest one last
        body()
    return batch


def _written(case: Case, name: str, message: str, seed: int, out: Path) -> Failure:
    key = hashlib.sha256(f"{name}{message}".encode()).hexdigest()[:10]
    path = out / f"{name.replace(' ', '-')}-{key}.yaml"
    write_case(case, path, oracle=name, message=message, seed=seed, version=__version__)
    print(f"{path}: {name}: {message}", file=sys.stderr)
    return Failure(str(path), name, message)


def replay(path: Path, oracles: Mapping[str, Oracle] = ORACLES) -> Sequence[tuple[str, str]]:
    """(oracle, message) of every oracle that is not content with the case in a file."""
    case, _ = read_case(path)
    answers = ((name, put_to(name, oracle, case)) for name, oracle in oracles.items())
    return [(name, message) for name, message in answers if message is not None and message != REFUSED]
