"""torch_geometric's pooling asks the device how many graphs there are; the fix tells it."""

import torch
from parts import Step, Training, collate, profiled
from torch_geometric.nn import global_mean_pool

SIZES = {"medium": (2560, 2048, 2500)}
FIX = {"question": "library call changed", "kind": "wait", "findings": [("SYN102", "global_mean_pool(")]}


def before(batch: int, width: int, rows: int) -> Step:
    training, graph = Training(batch, width), torch.arange(batch, device="cuda") // 2

    def step():
        collate(rows)
        pooled = global_mean_pool(training.inputs, graph)
        loss = training.forward(pooled[graph])
        training.backward(loss)
        return loss

    return step


def after(batch: int, width: int, rows: int) -> Step:
    training, graph = Training(batch, width), torch.arange(batch, device="cuda") // 2

    def step():
        collate(rows)
        pooled = global_mean_pool(training.inputs, graph, size=batch // 2)
        loss = training.forward(pooled[graph])
        training.backward(loss)
        return loss

    return step


if __name__ == "__main__":
    profiled(before, SIZES)
