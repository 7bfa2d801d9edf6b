"""Evaluation gives its memory back after every batch; the fix keeps it."""

import torch
from models import transformer, words
from parts import Step, collate, profiled

SIZES = {"medium": (64, 128, 512, 4, 1500)}
FIX = {
    "question": "allocator sync gone",
    "kind": "wait",
    "held_out": True,
    "findings": [("SYN106", "torch.cuda.empty_cache()")],
}


def evaluated(empty: bool, batch: int, length: int, width: int, depth: int, rows: int) -> Step:
    model, prompt = transformer(width, depth).to("cuda").requires_grad_(False), words(batch, length)
    best = torch.zeros((), device="cuda")

    def step():
        best.copy_(model(prompt).max())
        if empty:
            torch.cuda.empty_cache()
        collate(rows)
        return best

    return step


def before(batch: int, length: int, width: int, depth: int, rows: int) -> Step:
    return evaluated(True, batch, length, width, depth, rows)


def after(batch: int, length: int, width: int, depth: int, rows: int) -> Step:
    return evaluated(False, batch, length, width, depth, rows)


if __name__ == "__main__":
    profiled(before, SIZES)
