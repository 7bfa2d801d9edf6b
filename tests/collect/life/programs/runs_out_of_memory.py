import torch
import training

caught = []


def too_much(loss):
    try:
        torch.empty(1 << 50, device="cuda", dtype=None)
    except torch.OutOfMemoryError as error:
        caught.append(type(error).__name__)
    torch.empty(16, device="cuda")


training.train(16, too_much)
print(len(caught), set(caught))
