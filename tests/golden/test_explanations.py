"""What a person reads of two small programs: the explanation."""

from __future__ import annotations

from collections.abc import Callable

from polyopt.bench import SUITES
from polyopt.explain import explain, explanation_text
from polyopt.frontend import load
from polyopt.pipeline import compile
from tools.link_tree import ROOT


def test_heat(check_golden: Callable[[str, str], None]) -> None:
    check_golden("explanations/heat.txt", explanation_text(explain(compile(load(f"{ROOT}/examples/heat.scop.yaml")))))


def test_softmax(check_golden: Callable[[str, str], None]) -> None:
    (workload,) = (w for w in SUITES["main"] if w.name == "softmax")
    text = explanation_text(explain(compile(workload.scop(), at={"M": 150, "N": 40})))
    assert max(map(len, text.splitlines())) <= 80
    check_golden("explanations/softmax.txt", text)
