"""Models of transformers through `torch.compile`: one program each, the same numbers."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import torch

from polyopt.plugins.torch_backend import EagerRegionWarning, polyopt_backend
from tests.models import MODELS

pytestmark = pytest.mark.torch

SMALL: dict[str, dict[str, Any]] = {
    "llama": {"hidden": 64, "layers": 1, "sequence": 7},
    "bert": {"hidden": 64, "layers": 1, "sequence": 7},
    "gpt2": {"hidden": 64, "layers": 1, "sequence": 7},
    "vit": {"hidden": 64, "layers": 1, "size": 32},
    "resnet": {"size": 32, "hidden_sizes": (8, 16), "depths": (1, 1)},
}


@pytest.mark.parametrize("name", sorted(MODELS))
def test_model(name: str) -> None:
    torch._dynamo.reset()
    example = MODELS[name](**SMALL[name])
    compiled = torch.compile(example.module, backend=polyopt_backend)
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("error", EagerRegionWarning)
        found, wanted = (f(*example.args, **example.kwargs) for f in (compiled, example.module))
    assert found.keys() == wanted.keys()
    for key in wanted:
        torch.testing.assert_close(found[key], wanted[key], rtol=1e-4, atol=1e-5)
