"""A decoder looks after every token whether all sequences have ended; the fix looks once, at the end."""

import torch
from models import transformer, words
from parts import Step, profiled

SIZES = {"small": (8, 8, 256, 4, 8), "medium": (64, 64, 512, 6, 8)}
FIX = {
    "question": "all waits removed",
    "kind": "wait",
    "fresh": True,
    "findings": [("SYN", "(token == END).all()")],
}
END = 1001


def decoder(every: bool, batch: int, length: int, width: int, depth: int, steps: int) -> Step:
    model, prompt = transformer(width, depth).to("cuda").requires_grad_(False), words(batch, length)

    def step():
        tokens = prompt
        for _ in range(steps):
            token = model(tokens)[:, -1].argmax(-1, keepdim=True)
            tokens = torch.cat([tokens[:, 1:], token], dim=1)
            if every and (token == END).all():
                break
        return tokens[0]

    return step


def before(batch: int, length: int, width: int, depth: int, steps: int) -> Step:
    return decoder(True, batch, length, width, depth, steps)


def after(batch: int, length: int, width: int, depth: int, steps: int) -> Step:
    return decoder(False, batch, length, width, depth, steps)


if __name__ == "__main__":
    profiled(before, SIZES)
