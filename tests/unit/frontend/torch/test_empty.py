"""Modules on tensors without elements: outputs of the right shapes, sums over nothing are zero."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

pytest.importorskip("torch")

import torch

import polyopt as po


class Calls(torch.nn.Module):
    def __init__(self, function: Callable[..., torch.Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: torch.Tensor) -> torch.Tensor:
        return self.function(*args)


CASES: dict[str, tuple[Callable[..., torch.Tensor], tuple[tuple[int, ...], ...]]] = {
    "elementwise": (lambda x: torch.relu(x) + 1, ((0, 4),)),
    "product over nothing": (lambda x, y: x @ y, ((3, 0), (0, 4))),
    "product of no rows": (lambda x, y: x @ y, ((0, 3), (3, 4))),
    "cat": (lambda x, y: torch.cat([x, y]), ((0, 4), (2, 4))),
    "sum": (lambda x: x.sum(0), ((0, 4),)),
    "softmax": (lambda x: torch.softmax(x, -1), ((0, 4),)),
    "view": (lambda x: (x + 1).view(-1, 2), ((0, 4),)),
}


@pytest.mark.parametrize("name", CASES)
def test_empty(name: str) -> None:
    function, shapes = CASES[name]
    args = tuple(torch.ones(s) for s in shapes)
    (found,) = po.compile(po.from_torch(Calls(function), args)).run(*args).values()
    np.testing.assert_array_equal(found, function(*args).numpy())
