"""Every operator means what PyTorch means: odd shapes, evaluated by the reference in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

import torch
from torch.nn import functional as F  # noqa: N812

from tests.unit.frontend.torch.agreement import Case, assert_agrees, results

pytestmark = pytest.mark.torch

GENERATOR = torch.Generator().manual_seed(7)


def real(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=GENERATOR)


def positive(*shape: int) -> torch.Tensor:
    return real(*shape).abs() + 0.25


def whole(high: int, *shape: int) -> torch.Tensor:
    return torch.randint(0, high, shape, generator=GENERATOR)


CONTRACTIONS: dict[str, Case] = {
    "mm": (lambda a, b: a @ b, (real(3, 5), real(5, 7))),
    "bmm": (lambda a, b: a @ b, (real(2, 3, 5), real(2, 5, 1))),
    "mv": (lambda a, b: a @ b, (real(3, 5), real(5))),
    "dot": (lambda a, b: a @ b, (real(5), real(5))),
    "addmm_scaled": (
        lambda c, a, b: torch.addmm(c, a, b, beta=0.5, alpha=2),
        (real(7), real(3, 5), real(5, 7)),
    ),
    "addmm_column": (lambda c, a, b: torch.addmm(c, a, b), (real(3, 1), real(3, 5), real(5, 7))),
    "baddbmm_without": (
        lambda c, a, b: torch.baddbmm(c, a, b, beta=0, alpha=2),
        (real(2, 3, 7), real(2, 3, 5), real(2, 5, 7)),
    ),
    "linear": (lambda x, w, b: F.linear(x, w, b), (real(2, 3, 5), real(7, 5), real(7))),
    "matmul_broadcast": (lambda a, b: a @ b.transpose(-1, -2), (real(2, 3, 4, 5), real(2, 1, 6, 5))),
    "einsum": (lambda a, b: torch.einsum("bihd,bjhd->bhij", a, b), (real(2, 3, 4, 5), real(2, 6, 4, 5))),
    "mm_of_cat": (lambda x, y, w: torch.cat([x, y], 1) @ w, (real(2, 2), real(2, 3), real(5, 4))),
    "cat_by_cat": (
        lambda a, b: torch.cat([a, b], -1).t() @ torch.cat([b, a], -1),
        (real(3, 2), real(3, 4)),
    ),
    "mm_of_split_rows": (
        lambda x, w: x.permute(0, 2, 1, 3).reshape(10, 6) @ w,
        (real(2, 3, 5, 2), real(6, 3)),
    ),
    "kron": (lambda a, b: torch.kron(a, b), (real(2, 3), real(2, 2))),
    "conv2d": (
        lambda x, w, b: F.conv2d(x, w, b, stride=(2, 1), padding=(1, 2), dilation=(1, 2)),
        (real(2, 3, 7, 6), real(4, 3, 3, 2), real(4)),
    ),
    "conv2d_grouped": (
        lambda x, w: F.conv2d(x, w, None, stride=2, padding=1, groups=2),
        (real(1, 4, 5, 5), real(6, 2, 3, 3)),
    ),
    "conv2d_depthwise": (
        lambda x, w: F.conv2d(x, w, None, padding=1, groups=4),
        (real(2, 4, 5, 5), real(4, 1, 3, 3)),
    ),
    "conv1d": (lambda x, w: F.conv1d(x, w, padding="same"), (real(2, 3, 7), real(4, 3, 3))),
    "conv3d": (lambda x, w: F.conv3d(x, w, stride=2), (real(1, 2, 4, 5, 3), real(3, 2, 2, 2, 1))),
    "conv_transposed": (
        lambda x, w, b: F.conv_transpose2d(x, w, b, stride=2, padding=1, output_padding=1),
        (real(2, 3, 4, 3), real(3, 5, 3, 3), real(5)),
    ),
    "conv_transposed_grouped": (
        lambda x, w: F.conv_transpose2d(x, w, None, stride=(1, 2), dilation=2, groups=2),
        (real(1, 4, 4, 3), real(4, 3, 2, 2)),
    ),
    "conv_of_cat": (
        lambda x, y, w: F.conv2d(torch.cat([x, y], 1), w, padding=1),
        (real(1, 1, 4, 4), real(1, 2, 4, 4), real(2, 3, 3, 3)),
    ),
    "attention_causal": (
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
        (real(2, 2, 5, 4), real(2, 2, 5, 4), real(2, 2, 5, 4)),
    ),
    "attention_grouped": (
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, enable_gqa=True),
        (real(2, 4, 5, 3), real(2, 2, 6, 3), real(2, 2, 6, 3)),
    ),
}

REDUCTIONS: dict[str, Case] = {
    "sum": (lambda x: x.sum(), (real(2, 3),)),
    "sum_kept": (lambda x: x.sum(1, keepdim=True), (real(2, 3, 4),)),
    "sum_two": (lambda x: x.sum((0, 2)), (real(2, 3, 4),)),
    "sum_of_truth": (lambda x: (x > 0).sum(1), (real(2, 5),)),
    "mean": (lambda x: x.mean(), (real(2, 3),)),
    "mean_two": (lambda x: x.mean((-1, -2)), (real(2, 3, 4),)),
    "var": (lambda x: x.var(1), (real(2, 5),)),
    "std": (lambda x: x.std((0, 1), correction=0), (real(2, 5),)),
    "prod": (lambda x: x.prod(1), (real(2, 5),)),
    "amax": (lambda x: x.amax((0, 2)), (real(2, 5, 3),)),
    "amin": (lambda x: x.amin(1, keepdim=True), (real(2, 5),)),
    "max": (lambda x: x.max(), (real(2, 5),)),
    "max_values": (lambda x: x.max(1)[0], (real(2, 5),)),
    "max_indices": (lambda x: x.max(1)[1], (real(2, 5),)),
    "argmax_first_of_equal": (lambda x: x.argmax(1), (torch.tensor([[1.0, 3.0, 3.0], [2.0, 2.0, 1.0]]),)),
    "argmin_flat": (lambda x: x.argmin(), (real(3, 4),)),
    "any": (lambda x: (x > 0.5).any(1), (real(2, 5),)),
    "all": (lambda x: (x > -1).all(0), (real(2, 5),)),
    "any_flat": (lambda x: (x > 9).any(), (real(2, 5),)),
    "norm": (lambda x: x / x.norm(dim=1, keepdim=True), (real(3, 4),)),
    "norm_1": (lambda x: torch.linalg.vector_norm(x, 1, dim=0), (real(3, 4),)),
    "norm_3": (lambda x: torch.linalg.vector_norm(x, 3), (real(3, 4),)),
    "norm_inf": (lambda x: torch.linalg.vector_norm(x, float("inf"), dim=1), (real(3, 4),)),
    "logsumexp": (lambda x: x.logsumexp(1), (real(2, 5),)),
    "softmax": (lambda x: F.softmax(x, 1), (real(2, 5, 3),)),
    "log_softmax": (lambda x: F.log_softmax(x, -1), (real(2, 5),)),
    "cumsum": (lambda x: x.cumsum(1), (real(2, 5, 3),)),
    "cumsum_of_truth": (lambda x: (x > 0).cumsum(0), (real(5),)),
    "cumsum_of_one": (lambda x: x.cumsum(1), (real(3, 1),)),
    "cumprod": (lambda x: x.cumprod(-1), (real(2, 4),)),
    "layer_norm": (
        lambda x, w, b: F.layer_norm(x, (4, 5), w, b),
        (real(2, 3, 4, 5), real(4, 5), real(4, 5)),
    ),
    "layer_norm_plain": (lambda x: F.layer_norm(x, (5,)), (real(3, 5),)),
    "group_norm": (lambda x, w, b: F.group_norm(x, 2, w, b), (real(2, 6, 3, 2), real(6), real(6))),
    "instance_norm": (lambda x: F.instance_norm(x), (real(2, 3, 4, 5),)),
    "batch_norm": (
        lambda x, m, v, w, b: F.batch_norm(x, m, v, w, b),
        (real(2, 3, 4, 5), real(3), positive(3), real(3), real(3)),
    ),
    "batch_norm_plain": (lambda x, m, v: F.batch_norm(x, m, v), (real(2, 3), real(3), positive(3))),
    "rms_norm": (lambda x, w: F.rms_norm(x, (5,), w, 1e-5), (real(2, 3, 5), real(5))),
    "max_pool": (lambda x: F.max_pool2d(x, 3, 2, 1), (real(2, 3, 7, 6),)),
    "max_pool_dilated": (lambda x: F.max_pool2d(x, (2, 3), (1, 2), dilation=2), (real(3, 7, 8),)),
    "max_pool_ceil": (lambda x: F.max_pool2d(x, 2, 2, ceil_mode=True), (real(1, 2, 5, 7),)),
    "avg_pool": (lambda x: F.avg_pool2d(x, 3, 2, 1), (real(2, 3, 7, 6),)),
    "avg_pool_inside": (lambda x: F.avg_pool2d(x, 3, 2, 1, count_include_pad=False), (real(2, 3, 7, 6),)),
    "avg_pool_ceil": (lambda x: F.avg_pool2d(x, 3, 2, 1, ceil_mode=True), (real(1, 2, 6, 7),)),
    "avg_pool_divisor": (lambda x: F.avg_pool2d(x, 2, divisor_override=3), (real(1, 2, 4, 4),)),
    "adaptive_1": (lambda x: F.adaptive_avg_pool2d(x, 1), (real(2, 3, 4, 5),)),
    "adaptive_uneven": (lambda x: F.adaptive_avg_pool2d(x, 3), (real(2, 3, 4, 5),)),
}

VIEWS: dict[str, Case] = {
    "unaligned": (lambda x: x.reshape(8, 3) * 2, (real(6, 4),)),
    "permuted_unaligned": (lambda x: x.permute(2, 0, 1).reshape(6, 4) + 1, (real(3, 2, 4),)),
    "there_and_back": (lambda x: x.reshape(2, 3, 4).transpose(0, 1).reshape(-1), (real(24),)),
    "twice_unaligned": (lambda x: x.transpose(0, 1).reshape(4, 9).t().reshape(6, 6) * 1.5, (real(6, 6),)),
    "unflattened": (lambda x: x.movedim(0, -1).flatten(0, 1).unflatten(0, (4, 3)) * 2, (real(2, 3, 4),)),
    "cat_flattened": (lambda x, y: torch.cat([x, y], 1).reshape(2, 15) * 2, (real(2, 2, 3), real(2, 3, 3))),
    "cat_unaligned": (lambda x, y: torch.cat([x, y], 1).reshape(5, 4) * 2, (real(2, 4), real(2, 6))),
    "cat_padded": (
        lambda x, y: F.pad(torch.cat([x, y, x], 0), (1, 2, 0, 1), value=3.0) + 1,
        (real(2, 4), real(3, 4)),
    ),
    "cat_of_many": (lambda x: torch.cat([x * i for i in range(1, 12)], 1) * 2, (real(2, 1),)),
    "cropped": (lambda x: F.pad(x, (-1, -1, 2, -1)), (real(4, 5),)),
    "stacked": (lambda x, y: torch.stack([x, y], 1).softmax(1), (real(2, 4), real(2, 4))),
    "sliced": (lambda x: x[1:, ::2, -1] + x[:-1, 1::2, 0], (real(3, 6, 2),)),
    "sliced_across_rows": (lambda x: x.reshape(24)[5:17].reshape(3, 4) * 2, (real(4, 6),)),
    "sliced_whole_rows": (lambda x: x.reshape(24)[6:18].reshape(2, 6) * 2, (real(4, 6),)),
    "sliced_with_step": (lambda x: x.reshape(24)[::5] * 2, (real(4, 6),)),
    "flipped": (lambda x: x.flip(0, 2) * 2, (real(3, 2, 4),)),
    "flipped_reshaped": (lambda x: x.reshape(6, 4).flip(0) * 2, (real(3, 2, 4),)),
    "rolled": (lambda x: x.roll(1, 1) - x, (real(2, 5),)),
    "rolled_twice": (lambda x: x.roll((1, -2), (0, 1)), (real(3, 5),)),
    "repeated": (lambda x: x.repeat(2, 1, 3) * 2, (real(2, 3),)),
    "interleaved": (lambda x: x.repeat_interleave(2, 1) * 2, (real(2, 3),)),
    "expanded": (lambda x: x.expand(2, 3, 4) * 2, (real(3, 1),)),
    "diagonal": (lambda x: x.diagonal(1, 0, 2) * 2, (real(3, 2, 4),)),
    "diagonal_reshaped": (lambda x: x.reshape(4, 4).diagonal(-1), (real(2, 8),)),
    "unfolded": (lambda x: x.unfold(1, 3, 2) * 2, (real(2, 8),)),
    "tril": (lambda x: x.tril(), (real(4, 5),)),
    "triu": (lambda x: x.triu(1), (real(2, 4, 3),)),
    "unbound": (lambda x: torch.stack(x.unbind(1), 0) * 2, (real(2, 3, 2),)),
    "split": (lambda x: torch.cat(x.split([1, 3, 2], 1)[::-1], 1) * 2, (real(2, 6),)),
    "chunked": (lambda x: x.chunk(2, -1)[1] * x.chunk(2, -1)[0], (real(2, 6),)),
    "select_scattered": (lambda x, y: torch.select_scatter(x, y, 1, 2) * 2, (real(2, 4), real(2))),
    "slice_scattered": (lambda x, y: torch.slice_scatter(x, y, 1, 1, 3) * 2, (real(2, 4), real(2, 2))),
    "pixel_shuffled": (lambda x: F.pixel_shuffle(x, 2) * 2, (real(1, 8, 3, 2),)),
    "nearest_doubled": (lambda x: F.interpolate(x, scale_factor=2, mode="nearest"), (real(1, 2, 3, 2),)),
    "nearest_uneven": (lambda x: F.interpolate(x, size=(5, 3), mode="nearest"), (real(1, 2, 3, 2),)),
    "windows_rolled": (
        lambda x: x.view(1, 2, 2, 2, 2, 3).permute(0, 1, 3, 2, 4, 5).reshape(-1, 4, 3).roll(1, 1) * 2,
        (real(1, 4, 4, 3),),
    ),
    "scalar": (lambda x: x * 2, (real(),)),
    "from_one": (lambda x: x.view(1, 1).expand(3, 2) + 1, (real(1),)),
    "not_a_copy": (lambda x: x.t(), (real(2, 3),)),
}

GATHERS: dict[str, Case] = {
    "embedding": (lambda w, i: F.embedding(i, w), (real(7, 4), whole(7, 2, 3))),
    "embedding_transposed": (lambda w, i: F.embedding(i, w.t()), (real(4, 7), whole(7, 2, 3))),
    "embedding_of_one": (lambda w, i: F.embedding(i, w), (real(7, 1), whole(7, 1))),
    "embedding_computed": (lambda w, i: F.embedding((i * 2 + 1) % 7, w), (real(7, 4), whole(7, 3))),
    "gather": (lambda x, i: x.gather(1, i) * 2, (real(3, 5), whole(5, 3, 2))),
    "take_along": (
        lambda x, i: torch.take_along_dim(x.reshape(6, 4), i, 0),
        (real(3, 8), whole(6, 2, 4)),
    ),
    "rows": (lambda x, i: x[i] * 2, (real(5, 3), whole(5, 4))),
    "negative": (lambda x, i: x[:, i - 3], (real(2, 6), whole(6, 4))),
    "apart": (lambda x, i, j: x[i, :, j], (real(4, 3, 5), whole(4, 2, 1), whole(5, 1, 3))),
    "adjacent": (lambda x, i, j: x[:, i, j], (real(4, 3, 5), whole(3, 2), whole(5, 2))),
    "of_a_view": (lambda x, i: x.reshape(12, 2)[i], (real(4, 6), whole(12, 3))),
    "literal": (lambda x: x[:, torch.tensor([2, 0, 3, 1])] * 2, (real(2, 4),)),
    "literal_diagonal": (lambda x: x[torch.arange(3), torch.arange(3)] * 2, (real(3, 4),)),
    "index_select": (lambda x, i: x.index_select(1, i), (real(2, 5), whole(5, 3))),
    "one_hot": (lambda i: F.one_hot(i, 5), (whole(5, 3),)),
}

ELEMENTWISE: dict[str, Case] = {
    "arithmetic": (
        lambda a, b: (a + 2 * b - a / b.abs() + torch.rsub(a, 3, alpha=2)).neg(),
        (real(2, 3), real(3)),
    ),
    "alpha": (lambda a, b: torch.add(a, b, alpha=3) - torch.sub(a, b, alpha=0.5), (real(2, 3), real(2, 1))),
    "functions": (
        lambda x: (
            x.exp()
            + x.abs().log()
            + x.sin() * x.cos()
            + x.abs().sqrt()
            + (x.abs() + 1).rsqrt()
            + x.tanh()
            + x.sigmoid()
            + x.erf()
            + x.tan()
            + x.reciprocal()
            + x.abs().log1p()
            + x.expm1()
            + x.square()
            + torch.log2(x.abs())
            + torch.exp2(x)
            + torch.log10(x.abs())
        ),
        (real(3, 4),),
    ),
    "rounding": (lambda x: x.floor() + 3 * x.ceil() + 9 * x.trunc() + 27 * x.sign() + 81 * x.round(), (real(9) * 3,)),
    "round_to_even": (lambda x: x.round(), (torch.tensor([0.5, 1.5, 2.5, -0.5, -1.5, 2.4]),)),
    "activations": (
        lambda x: (
            F.gelu(x)
            + F.gelu(x, approximate="tanh")
            + F.silu(x)
            + F.relu(x)
            + F.leaky_relu(x, 0.5)
            + F.elu(x)
            + F.hardtanh(x)
            + F.hardswish(x)
            + F.softplus(x)
            + F.relu6(x)
            + F.mish(x)
            + F.celu(x)
            + F.hardsigmoid(x)
        ),
        (real(3, 4),),
    ),
    "powers": (
        lambda x: (
            x**2
            + x**3
            + x**4
            + x.abs() ** 0.5
            + x.abs() ** -0.5
            + x**-1
            + x.abs() ** 1.75
            + x.abs() ** x.abs()
            + 2**x
            + x**0
            + x**-2
        ),
        (real(3, 4),),
    ),
    "clamped": (lambda x: x.clamp(-0.5, 0.5) + x.clamp(min=0) + x.clamp(max=0.25), (real(3, 4),)),
    "clamped_by_tensors": (lambda x, a, b: x.clamp(a, b) + x.clamp(max=b), (real(3, 4), real(4), real(3, 1))),
    "extrema": (lambda a, b: torch.maximum(a, b) - torch.minimum(a, b), (real(3, 4), real(4))),
    "comparisons": (
        lambda a, b: torch.where((a < b) & (a > -1) | (b == a) ^ (a != b) & ~(a >= 0), a, b),
        (real(3, 4), real(3, 4)),
    ),
    "logic": (
        lambda a, b: torch.where(a.le(0.25).logical_and(b > 0).logical_or(a > 1).logical_not(), 1.0, 0.0),
        (real(3, 4), real(3, 4)),
    ),
    "masked": (lambda a, m: a.masked_fill(m > 0, -1e4), (real(3, 4), real(3, 1))),
    "not_numbers": (
        lambda a: torch.where(torch.isinf(1 / (a * 0).abs()) | torch.isnan(a), a, a * 2),
        (real(3),),
    ),
    "integers": (lambda i: (i * 2 + 1) // 3 + i % 4, (whole(20, 5),)),
    "integer_by_real": (lambda i, x: i * x + i, (whole(5, 3), real(2, 3))),
    "truth_by_real": (lambda x: (x > 0) * x.sum(1), (real(5, 5),)),
    "remainder": (lambda a, b: torch.remainder(a, b), (real(3, 4), real(4))),
    "division_modes": (
        lambda a, b: torch.div(a, b, rounding_mode="floor") + torch.div(a, b, rounding_mode="trunc"),
        (real(3, 4), real(4)),
    ),
    "glu": (lambda x: F.glu(x, 1), (real(2, 6),)),
    "cosine": (lambda a, b: F.cosine_similarity(a, b, 1), (real(3, 4), real(3, 4))),
    "distances": (lambda a, b: ((a[:, None] - b[None]) ** 2).sum(-1), (real(3, 4), real(2, 4))),
    "interpolated": (lambda a, b: torch.lerp(a, b, 0.25) + torch.addcmul(a, a, b, value=2), (real(3), real(3))),
    "positions": (lambda x: x * torch.arange(4) + torch.arange(3)[:, None] * 2, (real(3, 4),)),
    "halved_positions": (lambda x: x + torch.arange(1, 13, 3) // 2, (real(3, 4),)),
    "causal": (
        lambda x: x.masked_fill(torch.ones(4, 4).tril() == 0, float("-inf")).softmax(-1),
        (real(4, 4),),
    ),
    "constant": (lambda x: torch.full((2, 3), 2.0) * 3, (real(1),)),
}

GROUPS = {
    "contractions": CONTRACTIONS,
    "reductions": REDUCTIONS,
    "views": VIEWS,
    "gathers": GATHERS,
    "elementwise": ELEMENTWISE,
}
EVALUATED: dict[str, dict[str, np.ndarray[Any, Any]]] = {}


@pytest.mark.parametrize(("group", "name"), [(g, n) for g, cases in GROUPS.items() for n in cases])
def test_operator_agrees(group: str, name: str) -> None:
    """One program per group: 'case' outputs are compared one by one."""
    if group not in EVALUATED:
        EVALUATED[group] = results(GROUPS[group])
    assert_agrees(EVALUATED[group][f"case_{name}"], GROUPS[group][name])


@pytest.mark.parametrize("name", ["mm_of_cat", "conv2d", "attention_grouped"])
def test_case_alone(name: str) -> None:
    """A case read alone gives the same as in company."""
    assert_agrees(results({name: CONTRACTIONS[name]})[f"case_{name}"], CONTRACTIONS[name])
