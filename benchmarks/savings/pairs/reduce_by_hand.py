"""Gradients are reduced when backward is over; the fix starts each reduction when its gradient is there."""

import torch.distributed as dist
from layers import Ranked
from parts import Step, profiled

SIZES = {"medium": (1024, 2048, 8), "large": (1024, 4096, 8)}
FIX = {
    "question": "collective overlapped",
    "kind": "transform",
    "ranks": 2,
    "findings": [("OVL302", "dist.all_reduce(parameter.grad)")],
}


def before(batch: int, width: int, depth: int) -> Step:
    training = Ranked(batch, width, depth)

    def step():
        loss = training.loss()
        loss.backward()
        for parameter in training.parameters:
            dist.all_reduce(parameter.grad)
        training.optimizer.step()
        return loss.detach()

    return step


def after(batch: int, width: int, depth: int) -> Step:
    training, running = Ranked(batch, width, depth), []
    for parameter in training.parameters:
        parameter.register_post_accumulate_grad_hook(
            lambda parameter: running.append(dist.all_reduce(parameter.grad, async_op=True))
        )

    def step():
        loss = training.loss()
        loss.backward()
        for work in running:
            work.wait()
        running.clear()
        training.optimizer.step()
        return loss.detach()

    return step


if __name__ == "__main__":
    profiled(before, SIZES)
