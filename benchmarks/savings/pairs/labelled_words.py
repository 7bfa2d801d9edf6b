"""Scores and labels of the words that are real are picked out before the loss. The fix weighs the others with 0."""

from __future__ import annotations

from models import Fit, transformer, words
from parts import Step, collate, profiled
from torch import nn

SIZES = {"hosted": (8, 32, 128, 2, 0), "medium": (64, 128, 256, 4, 2000)}
FIX = {
    "question": "all waits removed",
    "kind": "wait",
    "fresh": True,
    "newest": True,
    "contact": 7,
    "written": "2026-11-26, before any run",
    "findings": [("SYN", "scores[real]"), ("SYN", "labels[real]")],
}


def judged(pick: bool, batch: int, length: int, width: int, depth: int, work: int) -> Step:
    fit, text = Fit(transformer(width, depth)), words(batch, length)
    real, labels, share = text % 4 > 0, text.roll(-1, 1), (text % 4 > 0).float().mean()

    def step():
        scores = fit.model(text)
        if pick:
            loss = nn.functional.cross_entropy(scores[real], labels[real])
        else:
            losses = nn.functional.cross_entropy(scores.flatten(0, 1), labels.flatten(), reduction="none")
            loss = (losses * real.flatten()).mean() / share
        fit.update(loss)
        collate(work)
        return batch

    return step


def before(batch: int, length: int, width: int, depth: int, work: int) -> Step:
    return judged(True, batch, length, width, depth, work)


def after(batch: int, length: int, width: int, depth: int, work: int) -> Step:
    return judged(False, batch, length, width, depth, work)


if __name__ == "__main__":
    profiled(before, SIZES)
