"""Whole models through the evaluator, against PyTorch."""

from __future__ import annotations

import time

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from polyopt.frontend.torch import from_torch  # noqa: E402
from polyopt.reference import evaluate  # noqa: E402
from tests.models import resnet  # noqa: E402


@pytest.mark.torch
@pytest.mark.slow
def test_resnet_18_at_224_pixels() -> None:
    """1.8 G multiply-adds: some seconds on two cores; the limit leaves room for a busy machine."""
    example = resnet()
    program = from_torch(example.module, example.args, kwargs=example.kwargs)
    given = program.arguments(*example.args, **example.kwargs)
    start = time.perf_counter()
    got = evaluate(program.scop, given, {})
    assert time.perf_counter() - start < 30
    with torch.no_grad():
        expected = example.module.double()(*(a.double() for a in example.args)).last_hidden_state.numpy()
    assert np.allclose(got["last_hidden_state"], expected, rtol=0, atol=1e-5)
