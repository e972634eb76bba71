"""What the judge answers."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["ILLEGAL", "LEGAL", "UNKNOWN", "Instance", "Verdict", "Witness"]

LEGAL, ILLEGAL, UNKNOWN = "legal", "illegal", "unknown"


@dataclass(frozen=True, slots=True)
class Instance:
    """One execution of a statement: iterator -> value, in the order of the iterators."""

    statement: str
    at: tuple[tuple[str, int], ...]

    @property
    def values(self) -> tuple[int, ...]:
        return tuple(v for _, v in self.at)

    def to_json(self) -> dict[str, object]:
        return {"statement": self.statement, "at": dict(self.at)}

    def __str__(self) -> str:
        return f"{self.statement}[{', '.join(str(v) for v in self.values)}]"


@dataclass(frozen=True, slots=True)
class Witness:
    """The smallest violated dependence: sizes first, then the earliest source, then the earliest sink."""

    params: tuple[tuple[str, int], ...]
    kind: str
    tensor: str
    cell: tuple[int, ...]
    source: Instance
    sink: Instance

    def to_json(self) -> dict[str, object]:
        return {
            "params": dict(self.params),
            "kind": self.kind,
            "tensor": self.tensor,
            "cell": list(self.cell),
            "source": self.source.to_json(),
            "sink": self.sink.to_json(),
        }

    def __str__(self) -> str:
        sizes = ", ".join(f"{n} = {v}" for n, v in self.params)
        cell = ", ".join(str(c) for c in self.cell) or "()"
        pair = f"{self.kind} dependence {self.source} -> {self.sink} on {self.tensor}[{cell}]"
        return f"{pair} with {sizes}" if sizes else pair


@dataclass(frozen=True, slots=True)
class Verdict:
    """legal, illegal with a witness, or unknown with the access that blocks an answer.  True only when legal.

    level: how sure the answer is, also for illegal.  axioms: those without which the answer would be another one.
    spent: unknown only because a budget was spent.
    """

    verdict: str
    level: str
    reason: str
    axioms: tuple[str, ...] = ()
    witness: Witness | None = None
    spent: bool = False

    def __bool__(self) -> bool:
        return self.verdict == LEGAL

    def to_json(self) -> dict[str, object]:
        """The keys of `polyopt check --json`."""
        answer: dict[str, object] = {
            "verdict": self.verdict,
            "level": self.level,
            "axioms": list(self.axioms),
            "reason": self.reason,
        }
        if self.witness is not None:
            answer["witness"] = self.witness.to_json()
        return answer
