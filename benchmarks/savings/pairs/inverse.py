"""``torch.linalg.inv`` checks on the host whether it could; ``inv_ex`` leaves the answer on the device."""

import torch
from parts import Step, Training, collate, profiled

SIZES = {"medium": (2560, 2048, 2500)}
FIX = {"question": "wait removed", "kind": "wait", "findings": [("SYN", "torch.linalg.inv(gram)")]}


def before(batch: int, width: int, rows: int) -> Step:
    training, eye = Training(batch, width), torch.eye(32, device="cuda")

    def step():
        loss = training.forward()
        gram = training.body[0].weight[:32].detach()
        gram = gram @ gram.T + eye
        inverse = torch.linalg.inv(gram)
        training.backward(loss)
        collate(rows)
        return inverse

    return step


def after(batch: int, width: int, rows: int) -> Step:
    training, eye = Training(batch, width), torch.eye(32, device="cuda")

    def step():
        loss = training.forward()
        gram = training.body[0].weight[:32].detach()
        gram = gram @ gram.T + eye
        inverse = torch.linalg.inv_ex(gram).inverse
        training.backward(loss)
        collate(rows)
        return inverse

    return step


if __name__ == "__main__":
    profiled(before, SIZES)
