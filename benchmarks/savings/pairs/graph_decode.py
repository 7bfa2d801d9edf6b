"""A language model decodes a word at a time, with the keys and values of the words before in a cache of fixed length.
The fix replays a step as a CUDA graph."""

from __future__ import annotations

import torch
from parts import Step, profiled
from torch import nn

SIZES = {"small": (8, 256, 128, 4), "deep": (16, 512, 256, 12)}
FIX = {
    "question": "CUDA graph",
    "kind": "transform",
    "fresh": True,
    "newest": True,
    "contact": 6,
    "findings": [("LCH501", "")],
}
HEADS, WORDS = 4, 1000


class Cached(nn.Module):
    """Attention of one word to those before it, and a feed-forward part."""

    def __init__(self, batch: int, width: int, length: int) -> None:
        super().__init__()
        self.norm, self.norm_after = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.feed = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
        self.register_buffer("cache", torch.zeros(2, batch, HEADS, length, width // HEADS))

    def forward(self, word: torch.Tensor, place: torch.Tensor, seen: torch.Tensor) -> torch.Tensor:
        batch, width = word.shape
        query, key, value = self.qkv(self.norm(word)).view(batch, 3, HEADS, 1, width // HEADS).unbind(1)
        keys, values = self.cache[0].index_copy_(2, place, key), self.cache[1].index_copy_(2, place, value)
        mixed = nn.functional.scaled_dot_product_attention(query, keys, values, attn_mask=seen)
        word = word + self.out(mixed.reshape(batch, width))
        return word + self.feed(self.norm_after(word))


class Decoder(nn.Module):
    def __init__(self, batch: int, width: int, length: int, depth: int) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.embed, self.head = nn.Embedding(WORDS, width), nn.Linear(width, WORDS)
        self.blocks = nn.ModuleList(Cached(batch, width, length) for _ in range(depth))

    def forward(self, last: torch.Tensor, place: torch.Tensor, seen: torch.Tensor) -> torch.Tensor:
        word = self.embed(last)
        for block in self.blocks:
            word = block(word, place, seen)
        return self.head(word).argmax(1)


def decoded(eager: bool, batch: int, width: int, length: int, depth: int) -> Step:
    model = Decoder(batch, width, length, depth).to("cuda").requires_grad_(False)
    last, place = torch.arange(batch, device="cuda"), torch.full((1,), length // 2, device="cuda")
    seen = torch.arange(length, device="cuda")[None] <= length // 2

    def once():
        return model(last, place, seen)

    if eager:
        return once

    side_stream, recorded = torch.cuda.Stream(), torch.cuda.CUDAGraph()
    side_stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side_stream):
        for _ in range(3):
            once()
    torch.cuda.current_stream().wait_stream(side_stream)
    with torch.cuda.graph(recorded):
        result = once()

    def step():
        recorded.replay()
        return result

    return step


def before(batch: int, width: int, length: int, depth: int) -> Step:
    return decoded(True, batch, width, length, depth)


def after(batch: int, width: int, length: int, depth: int) -> Step:
    return decoded(False, batch, width, length, depth)


if __name__ == "__main__":
    profiled(before, SIZES)
