"""A plain ``.to`` from pageable memory; the fix pins the source and does not wait."""

import torch
from parts import Step, Training, collate, profiled

SIZES = {"medium": (2560, 2048, 2500)}
FIX = {
    "question": "pageable made pinned",
    "kind": "transform",
    "findings": [("SYN101", 'source.to("cuda")'), ("CPY201", 'source.to("cuda")')],
}


def before(batch: int, width: int, rows: int) -> Step:
    training, source = Training(batch, width), torch.ones(batch, width)

    def step():
        loss = training.forward(source.to("cuda"))
        training.backward(loss)
        collate(rows)
        return loss

    return step


def after(batch: int, width: int, rows: int) -> Step:
    training, source = Training(batch, width), torch.ones(batch, width).pin_memory()

    def step():
        loss = training.forward(source.to("cuda", non_blocking=True))
        training.backward(loss)
        collate(rows)
        return loss

    return step


if __name__ == "__main__":
    profiled(before, SIZES)
