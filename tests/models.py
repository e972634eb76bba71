"""Transformers models built from a config with random weights (no download), used by tests and examples.

`MODELS` names the builders. Each returns the module in evaluation mode and its example inputs, which are deterministic:
the same arguments give the same weights and inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import torch
from transformers import (
    BertConfig,
    BertModel,
    GPT2Config,
    GPT2Model,
    LlamaConfig,
    LlamaModel,
    PretrainedConfig,
    PreTrainedModel,
    ResNetConfig,
    ResNetModel,
    ViTConfig,
    ViTModel,
)

HIDDEN = 256
LAYERS = 2
VOCABULARY = 1024


@dataclass(frozen=True, slots=True)
class Example:
    """A module in evaluation mode, the positional arguments it takes and the keyword arguments it takes."""

    module: torch.nn.Module
    args: tuple[torch.Tensor, ...]
    kwargs: Mapping[str, object] = field(default_factory=lambda: MappingProxyType({}))


def _finish(model: PreTrainedModel, dtype: torch.dtype) -> torch.nn.Module:
    """`model` in evaluation mode with every statistic and affine norm parameter away from its trivial value.

    Freshly made models have norm weights 1, biases 0, running means 0 and variances 1: a reader that forgot one of them
    would still agree with torch.
    """
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for name, tensor in [*model.named_parameters(), *model.named_buffers()]:
            if name.endswith("running_var"):
                tensor.copy_(0.5 + torch.rand(tensor.shape, generator=generator))
            elif name.endswith("running_mean") or name.endswith("bias"):
                tensor.copy_(0.1 * torch.randn(tensor.shape, generator=generator))
            elif tensor.ndim == 1 and name.endswith("weight"):
                tensor.copy_(1.0 + 0.1 * torch.randn(tensor.shape, generator=generator))
    finished: torch.nn.Module = model.to(dtype).eval()
    return finished


def _tokens(batch: int, sequence: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(2)
    return torch.randint(0, VOCABULARY, (batch, sequence), generator=generator)


def _pixels(batch: int, size: int, dtype: torch.dtype) -> torch.Tensor:
    generator = torch.Generator().manual_seed(3)
    return torch.randn(batch, 3, size, size, generator=generator).to(dtype)


def _seeded(build: Callable[[PretrainedConfig], PreTrainedModel], config: PretrainedConfig) -> PreTrainedModel:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return build(config)


def llama(
    *,
    batch: int = 1,
    sequence: int = 7,
    dtype: torch.dtype = torch.float32,
    attention: str = "eager",
    hidden: int = HIDDEN,
    layers: int = LAYERS,
) -> Example:
    """LlamaModel: rotary positions, grouped queries (8 heads, 2 of keys and values), gated MLP, RMS norm."""
    config = LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=hidden,
        intermediate_size=2 * hidden + hidden // 2,
        num_hidden_layers=layers,
        num_attention_heads=8,
        num_key_value_heads=2,
        max_position_embeddings=512,
        use_cache=False,
        attn_implementation=attention,
    )
    return Example(_finish(_seeded(LlamaModel, config), dtype), (_tokens(batch, sequence),))


def bert(
    *,
    batch: int = 1,
    sequence: int = 7,
    dtype: torch.dtype = torch.float32,
    attention: str = "eager",
    hidden: int = HIDDEN,
    layers: int = LAYERS,
) -> Example:
    """BertModel with pooler, GELU in its erf form."""
    config = BertConfig(
        vocab_size=VOCABULARY,
        hidden_size=hidden,
        intermediate_size=4 * hidden,
        num_hidden_layers=layers,
        num_attention_heads=8,
        max_position_embeddings=512,
        use_cache=False,
        attn_implementation=attention,
    )
    return Example(_finish(_seeded(BertModel, config), dtype), (_tokens(batch, sequence),))


def gpt2(
    *,
    batch: int = 1,
    sequence: int = 7,
    dtype: torch.dtype = torch.float32,
    attention: str = "eager",
    hidden: int = HIDDEN,
    layers: int = LAYERS,
) -> Example:
    """GPT2Model: learned positions, causal attention, GELU in its tanh form."""
    config = GPT2Config(
        vocab_size=VOCABULARY,
        n_embd=hidden,
        n_layer=layers,
        n_head=8,
        n_positions=512,
        bos_token_id=0,
        eos_token_id=0,
        use_cache=False,
        attn_implementation=attention,
    )
    return Example(_finish(_seeded(GPT2Model, config), dtype), (_tokens(batch, sequence),))


def vit(
    *,
    batch: int = 1,
    size: int = 224,
    dtype: torch.dtype = torch.float32,
    attention: str = "eager",
    hidden: int = HIDDEN,
    layers: int = LAYERS,
) -> Example:
    """ViTModel on square images of `size` pixels in patches of 16, with pooler."""
    config = ViTConfig(
        hidden_size=hidden,
        intermediate_size=4 * hidden,
        num_hidden_layers=layers,
        num_attention_heads=8,
        image_size=size,
        patch_size=16,
        attn_implementation=attention,
    )
    return Example(_finish(_seeded(ViTModel, config), dtype), (_pixels(batch, size, dtype),))


def resnet(
    *,
    batch: int = 1,
    size: int = 224,
    dtype: torch.dtype = torch.float32,
    hidden_sizes: tuple[int, ...] = (64, 128, 256, 512),
    depths: tuple[int, ...] = (2, 2, 2, 2),
) -> Example:
    """ResNetModel with basic blocks; the defaults are ResNet-18."""
    config = ResNetConfig(
        embedding_size=hidden_sizes[0],
        hidden_sizes=list(hidden_sizes),
        depths=list(depths),
        layer_type="basic",
    )
    return Example(_finish(_seeded(ResNetModel, config), dtype), (_pixels(batch, size, dtype),))


MODELS: Mapping[str, Callable[..., Example]] = MappingProxyType(
    {"llama": llama, "bert": bert, "gpt2": gpt2, "vit": vit, "resnet": resnet}
)
