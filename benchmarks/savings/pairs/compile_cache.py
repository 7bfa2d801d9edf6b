"""Decoding with a cache that grows in every step: with CUDA graphs each length needs one of its own. The fix fills a
cache of the greatest length, and masks what is not there yet."""

import itertools

import torch
from parts import Step, profiled
from torch import nn

SIZES = {"small": (16, 64)}
FIX = {
    "question": "CUDA graph made",
    "kind": "transform",
    "fresh": True,
    "compiled": True,
    "findings": [("CMP703", "attend("), ("SYN105", "attend(")],
}
PROMPT, LONGEST = 64, 4096


def model(width: int) -> tuple[nn.Module, nn.Module]:
    torch.manual_seed(0)
    return tuple(nn.Linear(width, width, device="cuda").requires_grad_(False) for _ in range(2))


def before(heads: int, width: int) -> Step:
    query, key = model(width)
    prompt = torch.randn(heads, PROMPT, width, device="cuda")
    cache, token = prompt, prompt[:, -1:].clone()

    @torch.compile(mode="reduce-overhead")
    def attend(token: torch.Tensor, cache: torch.Tensor) -> torch.Tensor:
        weights = query(token) @ key(cache).transpose(1, 2)
        return torch.tanh(torch.softmax(weights, dim=-1) @ cache)

    def step():
        nonlocal cache, token
        token = attend(token, cache).clone()
        cache = prompt if cache.shape[1] == LONGEST else torch.cat([cache, token], dim=1)
        return token.argmax(-1)

    return step


def after(heads: int, width: int) -> Step:
    query, key = model(width)
    prompt = torch.randn(heads, PROMPT, width, device="cuda")
    cache, token = torch.zeros(heads, LONGEST, width, device="cuda"), prompt[:, -1:].clone()
    cache[:, :PROMPT] = prompt
    places, lengths = torch.arange(LONGEST, device="cuda"), itertools.cycle(range(PROMPT, LONGEST + 1))
    torch._dynamo.mark_static_address(cache)

    @torch.compile(mode="reduce-overhead")
    def attend(token: torch.Tensor, cache: torch.Tensor, filled: torch.Tensor) -> torch.Tensor:
        weights = query(token) @ key(cache).transpose(1, 2)
        weights = weights.masked_fill(places >= filled, -torch.inf)
        return torch.tanh(torch.softmax(weights, dim=-1) @ cache)

    filled = torch.empty((), device="cuda", dtype=torch.int64)

    def step():
        nonlocal token
        length = next(lengths)
        token = attend(token, cache, filled.fill_(length)).clone()
        if length < LONGEST:
            cache[:, length] = token[:, 0]
        return token.argmax(-1)

    return step


if __name__ == "__main__":
    profiled(before, SIZES)
