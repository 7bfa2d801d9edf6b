"""Every step logs its loss as a tensor; the fix logs it every so many steps."""

import logging
import os

from models import Fit, transformer, words
from parts import Step, collate, profiled
from torch import nn

SIZES = {"medium": (64, 128, 256, 4, 2500)}
FIX = {"question": "wait removed", "kind": "wait", "held_out": True, "findings": [("SYN104", "logger.info(")]}
RARELY = 1_000_000

logger = logging.getLogger(__name__)


def logged(every: int, batch: int, length: int, width: int, depth: int, rows: int) -> Step:
    logger.setLevel(logging.INFO)
    logger.propagate = False
    if not logger.handlers:
        logger.addHandler(logging.FileHandler(os.devnull))
    fit, prompt, count = Fit(transformer(width, depth)), words(batch, length), [0]

    def step():
        scores = fit.model(prompt)
        loss = nn.functional.cross_entropy(scores.flatten(0, 1), prompt.flatten())
        fit.update(loss)
        count[0] += 1
        if count[0] % every == 0:
            logger.info("step %d: loss %s", count[0], loss.detach())
        collate(rows)
        return loss.detach()

    return step


def before(batch: int, length: int, width: int, depth: int, rows: int) -> Step:
    return logged(1, batch, length, width, depth, rows)


def after(batch: int, length: int, width: int, depth: int, rows: int) -> Step:
    return logged(RARELY, batch, length, width, depth, rows)


if __name__ == "__main__":
    profiled(before, SIZES)
