"""Equal layers in training on several ranks: what the pairs are made of in which ranks meet."""

from __future__ import annotations

import torch
from parts import joined
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Ranked:
    """``depth`` equal layers on this rank's device. ``bucket`` MB of gradients go at once where DDP reduces them."""

    def __init__(self, batch: int, width: int, depth: int, bucket: float | None = None) -> None:
        self.rank = joined()
        torch.manual_seed(0)
        layers = [layer for _ in range(depth) for layer in (nn.Linear(width, width), nn.ReLU())]
        self.model: nn.Module = nn.Sequential(*layers).to("cuda")
        self.parameters = list(self.model.parameters())
        if bucket is not None:
            self.model = DistributedDataParallel(self.model, bucket_cap_mb=bucket)
        self.optimizer = torch.optim.SGD(self.parameters, lr=1e-3)
        self.inputs = torch.linspace(-1, 1, batch * width, device="cuda").reshape(batch, width)

    def loss(self) -> torch.Tensor:
        """With the gradients of the step before cleared."""
        self.optimizer.zero_grad()
        return self.model(self.inputs).square().mean()
