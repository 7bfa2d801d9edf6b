"""Two optimizers take turns, and each loss is read when it is made; the fix keeps both on the device."""

import torch
from models import Fit
from parts import Step, profiled
from torch import nn

SIZES = {"medium": (2048, 1024, 4), "large": (8192, 1536, 4)}
FIX = {
    "question": "all waits removed",
    "kind": "wait",
    "held_out": True,
    "findings": [("SYN102", "judged.item()"), ("SYN102", "fooled.item()")],
}


def layers(width: int, depth: int, outputs: int) -> nn.Module:
    torch.manual_seed(0)
    hidden = [layer for _ in range(depth) for layer in (nn.Linear(width, width), nn.LeakyReLU(0.2))]
    return nn.Sequential(*hidden, nn.Linear(width, outputs))


class Game:
    def __init__(self, batch: int, width: int, depth: int) -> None:
        self.maker, self.judge = Fit(layers(width, depth, width)), Fit(layers(width, depth, 1))
        self.noise, self.real = (torch.linspace(0, end, width, device="cuda").expand(batch, -1) for end in (1, 2))

    def judged(self) -> torch.Tensor:
        made = self.maker.model(self.noise).detach()
        loss = (self.judge.model(made) - self.judge.model(self.real)).mean()
        self.judge.update(loss)
        return loss.detach()

    def fooled(self) -> torch.Tensor:
        loss = -self.judge.model(self.maker.model(self.noise)).mean()
        self.maker.update(loss)
        return loss.detach()


def before(batch: int, width: int, depth: int) -> Step:
    game, log = Game(batch, width, depth), []

    def step():
        judged = game.judged()
        log.append(judged.item())
        fooled = game.fooled()
        log.append(fooled.item())
        return judged

    return step


def after(batch: int, width: int, depth: int) -> Step:
    game, log = Game(batch, width, depth), []

    def step():
        judged = game.judged()
        log.append(judged)
        fooled = game.fooled()
        log.append(fooled)
        return judged

    return step


if __name__ == "__main__":
    profiled(before, SIZES)
