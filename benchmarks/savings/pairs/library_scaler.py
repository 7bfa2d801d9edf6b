"""PyTorch's gradient scaler reads whether a gradient overflowed before it steps; the fix patches it at run time.

No gradient overflows here, so the step is always taken.
"""

import torch
from parts import Step, Training, collate, profiled

SIZES = {"medium": (2560, 2048, 2500)}
FIX = {"question": "library patched", "kind": "wait", "findings": [("SYN102", "scaler.step(training.optimizer)")]}


def before(batch: int, width: int, rows: int) -> Step:
    training, scaler = Training(batch, width), torch.amp.GradScaler("cuda", init_scale=8.0)

    def step():
        collate(rows)
        loss = training.forward()
        scaler.scale(loss).backward()
        scaler.step(training.optimizer)
        scaler.update()
        return loss

    return step


def after(batch: int, width: int, rows: int) -> Step:
    training, scaler = Training(batch, width), torch.amp.GradScaler("cuda", init_scale=8.0)
    scaler._maybe_opt_step = lambda optimizer, state: optimizer.step()

    def step():
        collate(rows)
        loss = training.forward()
        scaler.scale(loss).backward()
        scaler.step(training.optimizer)
        scaler.update()
        return loss

    return step


if __name__ == "__main__":
    profiled(before, SIZES)
