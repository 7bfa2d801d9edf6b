"""A transformer's gradients are clipped with a look whether their norm is finite; the fix does not look."""

from models import Fit, transformer, words
from parts import Step, profiled
from torch import nn

SIZES = {"medium": (64, 128, 256, 4), "hosted": (4, 64, 128, 12)}
FIX = {"question": "wait removed", "kind": "wait", "held_out": True, "findings": [("SYN102", "clip_grad_norm_(")]}


def clipped(look: bool, batch: int, length: int, width: int, depth: int) -> Step:
    fit, prompt = Fit(transformer(width, depth)), words(batch, length)

    def step():
        scores = fit.model(prompt)
        loss = nn.functional.cross_entropy(scores.flatten(0, 1), prompt.flatten())
        fit.optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(fit.parameters, 1.0, error_if_nonfinite=look)
        fit.optimizer.step()
        return loss.detach()

    return step


def before(batch: int, length: int, width: int, depth: int) -> Step:
    return clipped(True, batch, length, width, depth)


def after(batch: int, length: int, width: int, depth: int) -> Step:
    return clipped(False, batch, length, width, depth)


if __name__ == "__main__":
    profiled(before, SIZES)
