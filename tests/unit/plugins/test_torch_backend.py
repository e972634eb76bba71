"""`torch.compile` through the backend: the same numbers, remarks on what runs eagerly, and clear refusals."""

from __future__ import annotations

import copy
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

pytest.importorskip("torch")

import torch
from torch import nn
from torch._dynamo.exc import BackendCompilerFailed
from torch.nn import functional

from polyopt.backend._kernel import _general_view
from polyopt.errors import InputError, UnsupportedError
from polyopt.plugins.torch_backend import EagerRegionWarning, polyopt_backend

pytestmark = pytest.mark.torch


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    """Nothing that was compiled before counts."""
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def layer() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 6), nn.GELU(), nn.LayerNorm(6)).eval()


class Sorting(nn.Module):
    """An operator without a rule between two layers."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first, self.last = nn.Linear(8, 6), nn.Linear(6, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        ordered = torch.sort(self.first(x))[0]
        found: torch.Tensor = self.last(torch.relu(ordered))
        return found


def remarks_of(function: Callable[..., Any], *inputs: Any, **options: Any) -> list[str]:
    """Check outputs, changes of the inputs and shared memory against eager PyTorch; the remarks that were made."""
    wanted_inputs, found_inputs = copy.deepcopy(inputs), copy.deepcopy(inputs)
    with torch.no_grad(), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        torch.manual_seed(1)
        wanted = function(*wanted_inputs)
        torch.manual_seed(1)
        found = torch.compile(function, backend=polyopt_backend, **options)(*found_inputs)
    torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(found_inputs, wanted_inputs)
    assert shared(found, found_inputs) == shared(wanted, wanted_inputs)
    return [str(w.message) for w in caught if w.category is EagerRegionWarning]


def shared(outputs: Any, inputs: Sequence[Any]) -> list[list[int]]:
    """For every output the inputs that lie in the same memory."""
    tensors = [outputs] if isinstance(outputs, torch.Tensor) else list(outputs)
    places = [x.untyped_storage().data_ptr() if isinstance(x, torch.Tensor) else None for x in inputs]
    return [[k for k, p in enumerate(places) if p == t.untyped_storage().data_ptr()] for t in tensors]


def counts(remark: str) -> tuple[int, int, int]:
    """Operators on the target, all operators, regions."""
    found = re.search(r"(\d+) of (\d+) operators \(\d+ %\) run on trn2(?: in (\d+) region)?", remark)
    assert found is not None, remark
    return int(found[1]), int(found[2]), int(found[3] or 0)


def test_compiled_module_gives_the_same_numbers() -> None:
    assert not remarks_of(layer(), torch.randn(3, 5, 8), options={"target": "trn2"})


def test_bfloat16_and_several_results() -> None:
    def function(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return x * 2, x.sum(0)

    x = torch.randn(4, 3).to(torch.bfloat16)
    doubled, total = torch.compile(function, backend=polyopt_backend)(x)
    assert doubled.dtype == torch.bfloat16
    torch.testing.assert_close(doubled, x * 2)
    torch.testing.assert_close(total, x.sum(0), rtol=2e-2, atol=2e-2)


def test_unknown_operator_stays_eager_with_a_remark() -> None:
    (remark,) = remarks_of(Sorting().eval(), torch.randn(4, 8))
    assert counts(remark) == (5, 6, 2)
    assert re.fullmatch(
        r"warning\[torch-eager\]: 5 of 6 operators \(83 %\) run on trn2 in 2 regions, the others eagerly\n"
        r"  the PyTorch front end has no rule for this operator:\n"
        r"    aten\.sort\.default at \S*test_torch_backend\.py:\d+\n"
        r"help: polyopt\.frontend\.torch\.known_operators\(\) lists the operators that run on a target",
        remark,
    ), remark


def test_remark_names_the_module() -> None:
    class Norm(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm = nn.BatchNorm1d(3)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            found: torch.Tensor = self.norm(x * 2) + 1
            return found

    training, eager = Norm().train(), Norm().train()
    (remark,) = remarks_of(training, torch.randn(4, 3))
    assert "in module 'norm' at " in remark
    with torch.no_grad():
        eager(torch.zeros(4, 3))
    assert int(training.state_dict()["norm.num_batches_tracked"]) == 1 + 1  # the eager call of the check, and this one


def test_topk_and_assignment_through_a_mask() -> None:
    first, last = nn.Linear(8, 8), nn.Linear(8, 8)

    def function(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        y = first(x)
        values, places = torch.topk(y, 3)
        z = y.clone()
        z[y > 0] = 3.0
        return torch.relu(values) + 1, places, last(z).gather(1, places)

    (remark,) = remarks_of(function, torch.randn(4, 8))
    assert "aten.topk.default" in remark and "aten.index_put.default" in remark
    assert counts(remark)[2] == 2


def test_selection_by_a_mask_breaks_the_graph() -> None:
    def function(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = torch.tanh(x)
        return y[y > 0] * 2, y.sum()

    assert not remarks_of(function, torch.randn(4, 8))


def test_memory_shared_with_inputs_and_between_results() -> None:
    def function(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        y = torch.relu(x)
        return x[2:], y, y[1:], x.t(), x

    assert not remarks_of(function, torch.randn(4, 8))


def test_changes_in_place() -> None:
    def function(x: torch.Tensor, n: torch.Tensor) -> torch.Tensor:
        x[0].mul_(2)
        ordered = torch.sort(x)[0]
        row = ordered[1]
        row.add_(1)
        x.add_(ordered)
        n += 1
        return ordered * 2

    assert len(remarks_of(function, torch.randn(4, 8), torch.tensor(5))) == 1


def test_integers_truth_values_numbers_and_none() -> None:
    def function(i: torch.Tensor, mask: torch.Tensor, k: int, bias: torch.Tensor | None) -> tuple[torch.Tensor, ...]:
        ordered = (i * k + 1).sort()[0]
        return ordered + 1, ~mask, torch.where(mask, ordered, 0), i if bias is None else bias

    assert len(remarks_of(function, torch.randint(0, 9, (3, 5)), torch.rand(3, 5) > 0.5, 3, None)) == 1


def test_everything_eager() -> None:
    (remark,) = remarks_of(lambda x: torch.sort(x), torch.randn(3, 4))
    assert counts(remark) == (0, 1, 0)


def test_what_no_program_can_be_made_of_stays_eager() -> None:
    def function(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        y = torch.relu(x)
        return (y.double() * 2).float(), torch.fft.fft(y).abs() + 1, torch.rand(2), y[:0] * 2

    (remark,) = remarks_of(function, torch.randn(3, 4))
    reasons = (
        "target trn2 has no element type float64",
        "element type torch.complex64 has no counterpart",
        "draws random numbers",
        "a tensor has no elements",
    )
    assert all(r in remark for r in reasons), remark


def test_several_index_tensors_are_compiled() -> None:
    def function(x: torch.Tensor, i: torch.Tensor) -> torch.Tensor:
        return torch.relu(x)[i, i + 1] * 2

    assert remarks_of(function, torch.randn(4, 5), torch.tensor([2, 0, 1])) == []


def test_operator_that_is_read_but_not_compiled_stays_eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Found only by compiling the operators one by one."""
    known = _general_view

    def without_gathers(frame: Any, access: Any, moved: Any) -> Any:
        if not access.is_exact:
            raise UnsupportedError(f"{access} is a gather")
        return known(frame, access, moved)

    monkeypatch.setattr("polyopt.backend._kernel._general_view", without_gathers)

    def function(x: torch.Tensor, i: torch.Tensor) -> torch.Tensor:
        return torch.relu(x)[i, i + 1] * 2

    (remark,) = remarks_of(function, torch.randn(4, 5), torch.tensor([2, 0, 1]))
    assert "is a gather" in remark
    assert counts(remark) == (3, 4, 2)


def test_attention_inside() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        return functional.scaled_dot_product_attention(x, x, x, is_causal=True).sort()[0]

    assert counts(remarks_of(function, torch.randn(1, 5, 8))[0])[2] == 1


def test_control_flow_on_data_stays_eager() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = torch.cond(x.sum() > 0, lambda y: y.sin(), lambda y: y.cos(), (x,))
        return found * 2

    (remark,) = remarks_of(function, torch.randn(3, 4))
    assert "not an ATen operator" in remark and counts(remark)[2] == 2


def test_other_sizes_are_compiled_again() -> None:
    module = layer()
    torch._dynamo.utils.counters.clear()
    compiled = torch.compile(module, backend=polyopt_backend)
    with torch.no_grad():
        for n in (3, 4):
            x = torch.randn(n, 8)
            torch.testing.assert_close(compiled(x), module(x), rtol=1e-4, atol=1e-5)
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == 2


def test_gradients_are_refused() -> None:
    compiled = torch.compile(layer(), backend=polyopt_backend)
    with pytest.raises(BackendCompilerFailed, match="gradients are not computed"):
        compiled(torch.randn(2, 8))


def test_bad_arguments_are_refused() -> None:
    graph = torch.fx.symbolic_trace(layer())
    with pytest.raises(InputError, match=r"unknown option 'taget' of the backend polyopt; did you mean 'target'"):
        polyopt_backend(graph, [torch.randn(2, 8)], options={"taget": "trn2"})
    with pytest.raises(InputError, match="unknown target 'trn9'"):
        polyopt_backend(graph, [torch.randn(2, 8)], options={"target": "trn9"})


def test_found_by_name() -> None:
    """PyTorch lists the backend once polyopt is installed."""
    from importlib import metadata

    import torch._dynamo as dynamo

    entries = metadata.entry_points(group="torch_dynamo_backends")
    if "polyopt" not in {e.name for e in entries}:
        pytest.skip("polyopt is not installed in this environment")
    assert "polyopt" in dynamo.list_backends()
