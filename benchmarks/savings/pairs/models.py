"""More models in training: what the pairs are made of that were written before the replay had seen any of them."""

from __future__ import annotations

import torch
from torch import nn


class Fit:
    """A model and its optimizer."""

    def __init__(self, model: nn.Module, rate: float = 1e-3) -> None:
        self.model = model.to("cuda")
        self.parameters = list(model.parameters())
        self.optimizer = torch.optim.SGD(self.parameters, lr=rate, momentum=0.9)

    def update(self, loss: torch.Tensor) -> None:
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()


def convnet(channels: int, depth: int, outputs: int = 10) -> nn.Module:
    """Convolutions of one width, each with its norm."""
    torch.manual_seed(0)
    layers: list[nn.Module] = [nn.Conv2d(3, channels, 3, padding=1)]
    for _ in range(depth):
        layers += [nn.Conv2d(channels, channels, 3, padding=1), nn.BatchNorm2d(channels), nn.ReLU()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, outputs))


class Attention(nn.Module):
    """Self-attention and a feed-forward part, normed before."""

    def __init__(self, width: int, heads: int = 4) -> None:
        super().__init__()
        self.heads = heads
        self.norm, self.norm_after = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.feed = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        batch, length, width = tokens.shape
        parts = self.qkv(self.norm(tokens)).view(batch, length, 3, self.heads, width // self.heads)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        mixed = nn.functional.scaled_dot_product_attention(query, key, value).transpose(1, 2)
        tokens = tokens + self.out(mixed.reshape(batch, length, width))
        return tokens + self.feed(self.norm_after(tokens))


def transformer(width: int, depth: int, words: int = 1000) -> nn.Module:
    """From word numbers (batch, length) to a score for each word."""
    torch.manual_seed(0)
    blocks = [Attention(width) for _ in range(depth)]
    return nn.Sequential(nn.Embedding(words, width), *blocks, nn.LayerNorm(width), nn.Linear(width, words))


def words(batch: int, length: int, most: int = 1000) -> torch.Tensor:
    """Word numbers on the device."""
    return (torch.arange(batch * length, device="cuda") * 7919 % most).reshape(batch, length)


def images(batch: int, side: int) -> torch.Tensor:
    """Images on the device."""
    return torch.linspace(-1, 1, batch * 3 * side * side, device="cuda").reshape(batch, 3, side, side)
