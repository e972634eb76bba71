"""Transformer and convolutional models from configs: the Scop gives what PyTorch gives, in float64."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import torch

from polyopt.ir import Indirect, Scop
from polyopt.reference import evaluate
from polyopt.sets import Affine, Floor
from tests.models import MODELS
from tests.unit.frontend.torch.agreement import Reading, read, worst_error

pytestmark = pytest.mark.torch

SMALL: dict[str, dict[str, Any]] = {
    "llama": {"hidden": 32, "layers": 1},
    "bert": {"hidden": 32, "layers": 1},
    "gpt2": {"hidden": 32, "layers": 1},
    "vit": {"hidden": 32, "layers": 1, "size": 48},
    "resnet": {"size": 33, "hidden_sizes": (4, 6, 8, 10), "depths": (1, 1, 1, 1)},
}
TEXT = ("llama", "bert", "gpt2")
QUICK = [
    *((m, {"attention": "sdpa", "batch": 3, "sequence": 7}) for m in TEXT),
    ("llama", {"attention": "eager", "batch": 3, "sequence": 7}),
    ("gpt2", {"attention": "eager", "batch": 1, "sequence": 1}),
    ("vit", {"attention": "sdpa", "batch": 3}),
    ("resnet", {"batch": 3}),
]
ATTENTION = [(m, {"attention": a}) for m in ("llama", "bert", "gpt2", "vit") for a in ("eager", "sdpa")]
SHAPES = [
    *((m, {**a, "batch": b, "sequence": s}) for m, a in ATTENTION if m in TEXT for b, s in ((1, 1), (3, 7))),
    *(("vit", {**a, "batch": b}) for m, a in ATTENTION if m == "vit" for b in (1, 3)),
    *(("resnet", {"batch": b}) for b in (1, 3)),
]


@functools.cache
def small(name: str) -> Reading:
    """A small model, exported once for all tests that look at it."""
    return read(MODELS[name](**SMALL[name], batch=3))


def floors(scop: Scop) -> int:
    """Subscripts with a floor division."""
    exact = [
        e for s in scop.statements for a in (s.assign.target, *s.assign.reads()) for e in a.subscripts
        if isinstance(e, Affine)
    ]  # fmt: skip
    return sum(any(isinstance(atom, Floor) for atom, _ in e.terms) for e in exact)


def assert_agrees(reading: Reading) -> None:
    assert worst_error(reading) < 1e-9
    assert floors(reading.program.scop) == 0
    assert set(reading.program.bound) == set(reading.program.sources), "no mask or position tensor is left"


@pytest.mark.parametrize(("name", "options"), QUICK)
def test_small_model_agrees(name: str, options: dict[str, Any]) -> None:
    assert_agrees(read(MODELS[name](**SMALL[name], **options)))


@pytest.mark.slow
@pytest.mark.parametrize(("name", "options"), [s for s in SHAPES if s not in QUICK])
def test_small_model_agrees_in_every_shape(name: str, options: dict[str, Any]) -> None:
    assert_agrees(read(MODELS[name](**SMALL[name], **options)))


@pytest.mark.parametrize(
    "name", ["llama", "resnet", *(pytest.param(n, marks=pytest.mark.slow) for n in ("bert", "gpt2", "vit"))]
)
def test_bfloat16_model_agrees(name: str) -> None:
    reading = read(MODELS[name](**SMALL[name], dtype=torch.bfloat16))
    program = reading.program
    assert_agrees(reading)
    assert {t.dtype for t in program.scop.tensors if t.name in program.bound and t.element.is_float} <= {
        "bfloat16",
        "float32",
    }


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(
    ("name", "options"),
    [
        *((m, {**a, "batch": 1, "sequence": 128}) for m, a in ATTENTION if m in TEXT),
        *((m, {**a, "batch": 3, "sequence": 7}) for m, a in ATTENTION if m in TEXT),
        *(("vit", {**a, "batch": 3}) for m, a in ATTENTION if m == "vit"),
        ("resnet", {}),
    ],
)
def test_whole_model_agrees(name: str, options: dict[str, Any], dtype: torch.dtype) -> None:
    assert_agrees(read(MODELS[name](**options, dtype=dtype)))


@pytest.mark.parametrize("name", ["bert", "gpt2", "resnet"])
def test_model_in_double_agrees(name: str) -> None:
    """The whole chain against the module itself in float64 (Llama and ViT cast to float32 by themselves)."""
    example, program = MODELS[name](**SMALL[name], batch=3), small(name).program
    found = evaluate(program.scop, program.arguments(*example.args), {}, round_outputs=False)
    wide = [x.double() if x.is_floating_point() else x for x in example.args]
    with torch.no_grad():
        wanted = example.module.double()(*wide)
    for output in program.outputs:
        assert output is not None
        np.testing.assert_allclose(found[output], wanted[output].numpy(), rtol=1e-9, atol=1e-9)


def test_attention_mask_of_the_user() -> None:
    """Padding on the right: the mask is an input, the causal part stays an expression."""
    example = MODELS["llama"](**SMALL["llama"], batch=2, sequence=6)
    mask = torch.tensor([[1, 1, 1, 1, 1, 1], [1, 1, 1, 0, 0, 0]])
    reading = read(replace(example, kwargs={"attention_mask": mask}))
    assert reading.program.inputs == ("input_ids", "attention_mask")
    assert worst_error(reading) < 1e-9


def test_resnet_18_at_full_size_is_read() -> None:
    program = read(MODELS["resnet"]()).program
    assert len(program.scop.statements) == 130
    assert floors(program.scop) == 0
    tensors = program.scop.tensor_map()
    assert tensors["pixel_values"].sizes({}) == (1, 3, 224, 224)
    assert tensors["last_hidden_state"].sizes({}) == (1, 512, 7, 7)


def test_parameters_lie_as_they_are() -> None:
    """Parameters and buffers are inputs with their own shape, type and elements."""
    example, program = small("gpt2").example, small("gpt2").program
    state = dict(example.module.named_parameters()) | dict(example.module.named_buffers())
    for name, source in program.sources.items():
        tensor = program.scop.tensor(name)
        assert tensor.role == "input"
        assert tensor.sizes({}) == tuple(state[source].shape)
        np.testing.assert_array_equal(program.bound[name], state[source].detach().numpy())


def test_rows_stay_one_loop_through_linear_layers() -> None:
    """Batch and sequence are one loop of 21 rows wherever no operator tells them apart."""
    program = small("llama").program
    products = [s for s in program.scop.statements if s.origin.operator == "aten.mm.default" and s.assign.combine]
    assert len(products) == 7
    for s in products:
        assert len(s.iterators) == 3
        assert s.domain.count() == 21 * np.prod([s.domain.project_onto([i]).count() for i in s.iterators[1:]])


def test_only_embeddings_depend_on_data() -> None:
    program = small("llama").program
    gathers = [
        s.origin.operator for s in program.scop.statements
        if any(isinstance(e, Indirect) for a in s.assign.reads() for e in a.subscripts)
    ]  # fmt: skip
    assert gathers == ["aten.embedding.default"]


def test_statements_know_their_origin() -> None:
    program = small("bert").program
    (query,) = [s for s in program.scop.statements if s.origin.module == "encoder.layer.0.attention.self.query"][1:]
    assert query.origin.operator == "aten.addmm.default"
    assert query.origin.where is not None
    assert query.origin.where.file == "transformers/models/bert/modeling_bert.py"
    assert "self.query(" in query.origin.where.text
    assert all(s.origin.operator and s.origin.where for s in program.scop.statements)


@pytest.mark.parametrize("name", ["llama", "vit"])
def test_reading_twice_gives_the_same_program(name: str) -> None:
    first, second = (r.program.scop for r in (small(name), read(MODELS[name](**SMALL[name], batch=3))))
    assert first.tensors == second.tensors
    assert [(s.name, s.domain.text(), s.order, s.body) for s in first.statements] == [
        (s.name, s.domain.text(), s.order, s.body) for s in second.statements
    ]
