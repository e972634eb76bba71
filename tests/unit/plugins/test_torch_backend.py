"""`torch.compile` through the backend: the same numbers, and clear refusals."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

import torch
from torch import nn
from torch._dynamo.exc import BackendCompilerFailed

from polyopt.errors import InputError, UnsupportedError
from polyopt.plugins.torch_backend import polyopt_backend

pytestmark = pytest.mark.torch


def layer() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 6), nn.GELU(), nn.LayerNorm(6)).eval()


def test_compiled_module_gives_the_same_numbers() -> None:
    module, x = layer(), torch.randn(3, 5, 8)
    compiled = torch.compile(module, backend=polyopt_backend, dynamic=False, options={"target": "trn2"})
    with torch.no_grad():
        torch.testing.assert_close(compiled(x), module(x), rtol=1e-4, atol=1e-5)


def test_bfloat16_and_several_results() -> None:
    def function(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return x * 2, x.sum(0)

    x = torch.randn(4, 3).to(torch.bfloat16)
    doubled, total = torch.compile(function, backend=polyopt_backend, dynamic=False)(x)
    assert doubled.dtype == torch.bfloat16
    torch.testing.assert_close(doubled, x * 2)
    torch.testing.assert_close(total, x.sum(0), rtol=2e-2, atol=2e-2)


def test_gradients_are_refused() -> None:
    compiled = torch.compile(layer(), backend=polyopt_backend, dynamic=False)
    with pytest.raises(BackendCompilerFailed, match="gradients are not computed"):
        compiled(torch.randn(2, 8))


def test_bad_arguments_are_refused() -> None:
    graph = torch.fx.symbolic_trace(layer())
    with pytest.raises(InputError, match=r"unknown option 'taget' of the backend polyopt; did you mean 'target'"):
        polyopt_backend(graph, [torch.randn(2, 8)], options={"taget": "trn2"})
    with torch.no_grad(), pytest.raises(UnsupportedError, match="is not a tensor"):
        polyopt_backend(graph, [3])  # type: ignore[list-item]


def test_found_by_name() -> None:
    """PyTorch lists the backend once polyopt is installed."""
    from importlib import metadata

    import torch._dynamo as dynamo

    entries = metadata.entry_points(group="torch_dynamo_backends")
    if "polyopt" not in {e.name for e in entries}:
        pytest.skip("polyopt is not installed in this environment")
    assert "polyopt" in dynamo.list_backends()
