"""What a person reads of three small programs: the mapping and the generated program."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from polyopt.bench import SUITES
from polyopt.pipeline import compile

SIZES = {
    "matmul": {"M": 200, "N": 300, "K": 150},
    "softmax": {"M": 150, "N": 40},
    "lu": {"N": 9},
}


@pytest.mark.parametrize("name", SIZES)
def test_texts(name: str, check_golden: Callable[[str, str], None]) -> None:
    (workload,) = (w for w in SUITES["main"] if w.name == name)
    compiled = compile(workload.scop(), at=SIZES[name])
    for what in ("schedule", "mapping", "program"):
        check_golden(f"programs/{name}.{what}.txt", compiled.emit(what))


def test_text_for_all_sizes(check_golden: Callable[[str, str], None]) -> None:
    (workload,) = (w for w in SUITES["main"] if w.name == "matmul")
    check_golden("programs/matmul.open.txt", compile(workload.scop()).emit("program"))
