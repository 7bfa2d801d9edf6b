"""Features are copied one by one; the fix stacks them on the host and copies once."""

import torch
from parts import Step, Training, collate, profiled

SIZES = {"small": (40, 512, 2000), "medium": (40, 2048, 2000)}
FIX = {
    "question": "many copies made one",
    "kind": "transform",
    "findings": [("CPY203", 'feature.to("cuda")')],
}
REPEATS = 64


def before(count: int, width: int, rows: int) -> Step:
    training = Training(count * REPEATS, width)
    features = [torch.ones(width) for _ in range(count)]

    def step():
        moved = torch.stack([feature.to("cuda") for feature in features])
        loss = training.forward(moved.repeat(REPEATS, 1))
        training.backward(loss)
        collate(rows)
        return loss

    return step


def after(count: int, width: int, rows: int) -> Step:
    training = Training(count * REPEATS, width)
    features = [torch.ones(width) for _ in range(count)]

    def step():
        moved = torch.stack(features).to("cuda")
        loss = training.forward(moved.repeat(REPEATS, 1))
        training.backward(loss)
        collate(rows)
        return loss

    return step


if __name__ == "__main__":
    profiled(before, SIZES)
