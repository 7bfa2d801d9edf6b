"""Pinned copies wait on the default stream between large steps; the fix copies the next batch on another stream."""

import torch
from heavy import LOW, LowPrecision, mlp
from parts import Step, profiled

SIZES = {"small": (16384, 4096, 4), "large": (32768, 4096, 4)}
FIX = {
    "question": "prefetch",
    "kind": "transform",
    "fresh": True,
    "settle_ms": 250,
    "limited": True,
    "findings": [("OVL301", "")],
}


def ready(rows: int, width: int, depth: int) -> tuple[LowPrecision, torch.Tensor]:
    batch = torch.linspace(-1, 1, rows * width).reshape(rows, width).to(LOW)
    return LowPrecision(mlp(width, depth)), batch.pin_memory()


def before(rows: int, width: int, depth: int) -> Step:
    fit, batch = ready(rows, width, depth)

    def step():
        inputs = batch.to("cuda", non_blocking=True)
        loss = fit.model(inputs).float().square().mean()
        fit.update(loss)
        return loss.detach()

    return step


def after(rows: int, width: int, depth: int) -> Step:
    fit, batch = ready(rows, width, depth)
    copying = torch.cuda.Stream()
    inputs = [batch.to("cuda") for _ in range(2)]
    number = [0]

    def step():
        now, coming = inputs[number[0] % 2], inputs[(number[0] + 1) % 2]
        number[0] += 1
        torch.cuda.current_stream().wait_stream(copying)
        with torch.cuda.stream(copying):
            coming.copy_(batch, non_blocking=True)
        loss = fit.model(now).float().square().mean()
        fit.update(loss)
        copying.wait_stream(torch.cuda.current_stream())
        return loss.detach()

    return step


if __name__ == "__main__":
    profiled(before, SIZES)
