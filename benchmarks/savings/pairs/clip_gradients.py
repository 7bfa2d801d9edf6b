"""``clip_grad_norm_`` looks at the norm in the middle of the step; the fix is its argument."""

import torch
from parts import Step, Training, collate, profiled

SIZES = {"small": (256, 512, 3000), "large": (8192, 2048, 1000)}
FIX = {"question": "wait removed", "kind": "wait", "findings": [("SYN102", "clip_grad_norm_")]}


def before(batch: int, width: int, rows: int) -> Step:
    training = Training(batch, width)

    def step():
        collate(rows)
        loss = training.forward()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(training.parameters, 1.0, error_if_nonfinite=True)
        training.optimizer.step()
        return loss

    return step


def after(batch: int, width: int, rows: int) -> Step:
    training = Training(batch, width)

    def step():
        collate(rows)
        loss = training.forward()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(training.parameters, 1.0, error_if_nonfinite=False)
        training.optimizer.step()
        return loss

    return step


if __name__ == "__main__":
    profiled(before, SIZES)
