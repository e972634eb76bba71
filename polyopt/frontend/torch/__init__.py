"""PyTorch modules as Scops, through `torch.export` and its decomposition to core ATen operators.

Importing this package does not import torch; `from_torch` does (extra `torch`).
"""

from __future__ import annotations

from polyopt.frontend.torch._program import TorchProgram, from_exported, from_torch, known_operators, plain_array

__all__ = ["TorchProgram", "from_exported", "from_torch", "known_operators", "plain_array"]
