"""PyTorch modules through the whole pipeline: arguments in the module's own order."""

from __future__ import annotations

import numpy as np
import pytest

import polyopt as po
from polyopt.errors import InputError

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch


def test_module() -> None:
    torch.manual_seed(0)
    layers = [torch.nn.Linear(37, 50), torch.nn.GELU(), torch.nn.LayerNorm(50), torch.nn.Linear(50, 3)]
    module = torch.nn.Sequential(*layers).eval()
    x, y = torch.randn(5, 37), torch.randn(5, 37)
    compiled = po.compile(po.from_torch(module, (x,)))
    found = compiled.run(y)
    assert list(found) == ["output"]
    np.testing.assert_allclose(found["output"], module(y).detach().numpy(), rtol=1e-5, atol=1e-6)
    assert compiled.report["ok"] is True
    with pytest.raises(InputError):
        compiled.run(y, y)
    with pytest.raises(InputError, match="has shape"):
        compiled.run(torch.randn(6, 37))
