import torch
import training


def step(loss):
    step.count += 1
    if step.count == 12:
        torch.empty(1 << 50, device="cuda")


step.count = 0
try:
    training.train(16, step)
except torch.OutOfMemoryError as error:
    raise SystemExit(type(error).__name__)
