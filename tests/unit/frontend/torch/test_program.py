"""Names, bindings, structure of arguments and results, and what is refused."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

import torch

import polyopt
from polyopt.errors import InputError, UnsupportedError
from polyopt.frontend.torch import TorchProgram, from_torch, known_operators
from polyopt.ir import Apply, Const, Index, Read, verify_scop
from polyopt.reference import evaluate

pytestmark = pytest.mark.torch


class Function(torch.nn.Module):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: torch.Tensor, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)


class Layer(torch.nn.Module):
    """Two inputs by name, a parameter, a buffer and a literal."""

    scale: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.inner = torch.nn.Linear(4, 3)
        self.register_buffer("scale", torch.tensor([1.0, 2.0, 3.0]))

    def forward(self, x: torch.Tensor, *, shift: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"y": self.inner(x) * self.scale + shift + torch.tensor([0.25, 0.5, 0.125])}


def read(function: Callable[..., Any], *args: torch.Tensor, **kwargs: Any) -> TorchProgram:
    program = from_torch(Function(function), args, kwargs=kwargs)
    verify_scop(program.scop)
    return program


def run(program: TorchProgram, *args: Any, **kwargs: Any) -> dict[str, Any]:
    return evaluate(program.scop, program.arguments(*args, **kwargs), {}, round_outputs=False)


def test_names_and_bindings() -> None:
    torch.manual_seed(0)
    module = Layer()
    x, shift = torch.randn(2, 4), torch.randn(3)
    program = from_torch(module, (x,), kwargs={"shift": shift})
    assert program.scop.name == "Layer"
    assert program.scop.reassociate
    assert program.inputs == ("x", "shift")
    assert program.outputs == ("y",)
    assert dict(program.sources) == {
        "inner_weight": "inner.weight",
        "inner_bias": "inner.bias",
        "scale": "scale",
    }
    folded = set(program.bound) - set(program.sources)
    assert len(folded) == 1, "the literal tensor is bound, it is no expression"
    found = run(program, x, shift=shift)
    np.testing.assert_allclose(found["y"], module(x, shift=shift)["y"].detach().numpy(), rtol=1e-6, atol=1e-6)


def test_reassociation_can_be_withheld() -> None:
    assert not from_torch(torch.nn.Linear(2, 2), (torch.randn(1, 2),), reassociate=False).scop.reassociate


PLACES = ["output_0", "output_1_sum_0", "output_1_t", "output_2", "output_3", "output_4"]


def test_results_keep_their_place() -> None:
    def several(x: torch.Tensor) -> Any:
        doubled = x * 2
        return doubled, {"sum": [x.sum(), None], "t": doubled.t()}, doubled, x, torch.arange(3)

    x = torch.randn(2, 3)
    program = read(several, x)
    assert [n for n in program.outputs if n] == PLACES
    found = run(program, x)
    names = [n for n in program.outputs if n is not None]
    wide = x.double().numpy()
    for name, wanted in zip(names, [wide * 2, wide.sum(), (wide * 2).T, wide * 2, wide, np.arange(3)], strict=True):
        np.testing.assert_allclose(found[name], wanted)


def test_an_output_that_is_a_view_is_written_in_place() -> None:
    """No copy: the product's own statement writes the transposed output."""
    program = read(lambda a, b: (a @ b).t().unsqueeze(1), torch.randn(2, 5), torch.randn(5, 6))
    assert len(program.scop.statements) == 2
    assert [t.name for t in program.scop.with_role("temp")] == []


def test_views_make_no_statement() -> None:
    program = read(lambda x: x.permute(1, 0, 2).reshape(3, 8)[:, ::2].unsqueeze(1) + 1, torch.randn(2, 3, 4))
    assert len(program.scop.statements) == 1


def test_masks_of_positions_are_conditions() -> None:
    def causal(x: torch.Tensor) -> torch.Tensor:
        i = torch.arange(4)
        return x + torch.where(i[None, :] <= i[:, None], 0.0, float("-inf"))

    program = read(causal, torch.randn(4, 4))
    (statement,) = program.scop.statements
    _, mask = statement.assign.value.args  # type: ignore[union-attr]
    assert isinstance(mask, Apply) and mask.op == "select" and mask.args[1:] == (Const(0.0), Const(float("-inf")))
    assert all(isinstance(side, Index) for side in mask.args[0].args)  # type: ignore[union-attr]


def test_padding_is_a_guard_of_the_domain() -> None:
    program = read(lambda x, w: torch.conv2d(x, w, padding=1), torch.randn(1, 2, 4, 4), torch.randn(3, 2, 3, 3))
    products = [s for s in program.scop.statements if s.assign.combine == "+"]
    assert [s.domain.count() for s in products] == [2 * 3 * (3 * 4 - 2) ** 2]


def test_bfloat16_statistics_are_kept_in_float32() -> None:
    program = read(lambda x: x.softmax(-1), torch.randn(2, 5, dtype=torch.bfloat16))
    kinds = {t.name: t.dtype for t in program.scop.tensors}
    assert kinds == {
        "args_0": "bfloat16",
        "softmax_max": "bfloat16",
        "softmax_exp": "float32",
        "softmax_sum": "float32",
        "output": "bfloat16",
    }


def test_names_that_mean_something_else_are_changed() -> None:
    class Named(torch.nn.Module):
        def forward(self, i: torch.Tensor, k: torch.Tensor, max: torch.Tensor) -> torch.Tensor:
            return (i @ k).exp().cos() + max

    program = from_torch(Named(), (torch.randn(2, 3), torch.randn(3, 2), torch.randn(2)))
    verify_scop(program.scop)
    assert program.inputs == ("i", "k", "max_value")


def test_arguments_are_checked() -> None:
    program = from_torch(Layer(), (torch.randn(2, 4),), kwargs={"shift": torch.randn(3)})
    with pytest.raises(InputError, match=r"x has shape \(3, 4\), expected \(2, 4\)"):
        program.arguments(torch.randn(3, 4), shift=torch.randn(3))
    with pytest.raises(InputError, match="keyword arguments"):
        program.arguments(torch.randn(2, 4))
    with pytest.raises(InputError, match="3 arguments, expected 2"):
        program.arguments(torch.randn(2, 4), torch.randn(3), shift=torch.randn(3))
    arrays = program.arguments(np.ones((2, 4), np.float32), shift=np.ones(3, np.float32))
    assert arrays["x"].shape == (2, 4)


def test_unknown_operator_is_refused_by_name() -> None:
    class Inner(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            inverse: torch.Tensor = torch.linalg.inv(x)  # the line that is named
            return inverse

    module = torch.nn.Sequential(torch.nn.Linear(3, 3), Inner())
    with pytest.raises(UnsupportedError) as caught:
        from_torch(module, (torch.randn(3, 3),))
    text = str(caught.value)
    assert "aten.linalg_inv_ex.default in module '1'" in text
    assert "torch.linalg.inv(x)  # the line that is named" in text
    assert "test_program.py" in text and "/" + "work" not in text
    assert "aten.linalg_inv_ex.default" not in known_operators()


def test_an_unknown_operator_that_nothing_needs_is_no_obstacle() -> None:
    program = read(lambda x: (torch.linalg.inv(x), x + 1)[1], torch.randn(3, 3))
    assert len(program.scop.statements) == 1


REFUSED: dict[str, tuple[Callable[..., Any], tuple[torch.Tensor, ...], str]] = {
    "random": (lambda x: x + torch.rand(3), (torch.randn(3),), "draws random numbers"),
    "mask index": (lambda x: x[x > 0].sum(), (torch.randn(3),), "truth values|depends on data"),
    "bitwise": (lambda i: i & 3, (torch.tensor([1, 2]),), "bitwise on int64, expected bool"),
    "pool indices": (
        lambda x: torch.nn.functional.max_pool2d(x, 2, return_indices=True)[1],
        (torch.randn(1, 1, 4, 4),),
        "only the values are computed",
    ),
    "complex": (lambda x: torch.complex(x, x).real, (torch.randn(3),), "complex64"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    function, args, message = REFUSED[name]
    with pytest.raises(UnsupportedError, match=message):
        read(function, *args)


def test_control_flow_on_data_is_refused() -> None:
    with pytest.raises(UnsupportedError, match=r"torch\.export cannot take in Function"):
        read(lambda x: x + 1 if x.sum() > 0 else x, torch.randn(3))


def test_a_module_that_changes_itself_is_refused() -> None:
    module = torch.nn.BatchNorm1d(3)
    with pytest.raises(UnsupportedError, match=r"changes 'running_mean' while it runs") as caught:
        from_torch(module.train(), (torch.randn(4, 3),))
    assert "module.eval()" in str(caught.value)


def test_import_is_lazy_and_absence_is_explained() -> None:
    """Without PyTorch the package imports; `from_torch` names the extra."""
    script = (
        "import sys; sys.modules['torch'] = None\n"
        "import polyopt.frontend.torch as front\n"
        "try: front.from_torch(None, ())\n"
        "except front.MissingExtraError as error: print(error)\n"
        "assert front.known_operators()\n"
    )
    script = script.replace("front.MissingExtraError", "MissingExtraError").replace(
        "import sys;", "import sys; from polyopt.errors import MissingExtraError;"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "error[missing-extra]: PyTorch is not installed" in done.stdout
    assert "polyopt[torch]" in done.stdout


def test_importing_does_not_import_torch() -> None:
    script = "import sys, polyopt, polyopt.frontend.torch; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", script], check=True)


def test_public_names() -> None:
    assert polyopt.from_torch is from_torch
    assert polyopt.TorchProgram is TorchProgram


REQUIRED = """mm bmm addmm convolution embedding gather index.Tensor cat slice.Tensor select.int split_with_sizes view
permute expand unsqueeze clone where.self eq.Scalar le.Tensor logical_not bitwise_and.Tensor any.dim add.Tensor
sub.Tensor mul.Tensor neg pow.Tensor_Scalar rsqrt cos sin tanh sigmoid gelu relu mean.dim _softmax native_layer_norm
_native_batch_norm_legit_no_training max_pool2d_with_indices cumsum _to_copy"""


def test_required_operators_are_known() -> None:
    """What the transformers models of the examples are made of."""
    wanted = set(REQUIRED.split())
    full = {f"aten.{n}" if "." in n else f"aten.{n}.default" for n in wanted}
    assert full <= set(known_operators())


def test_reads_of_a_squared_operand_are_products() -> None:
    (statement,) = read(lambda x: x**2, torch.randn(3)).scop.statements
    value = statement.assign.value
    assert isinstance(value, Apply) and value.op == "*"
    assert all(isinstance(a, Read) for a in value.args)
