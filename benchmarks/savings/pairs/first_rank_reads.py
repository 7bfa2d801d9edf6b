"""Only the first rank reads its loss and works on it, and the other waits for it; the fix reads none."""

from layers import Ranked
from parts import Step, collate, profiled

SIZES = {"medium": (1024, 2048, 8, 4000), "large": (512, 4096, 8, 8000)}
FIX = {"question": "wait removed", "kind": "wait", "ranks": 2, "findings": [("SYN102", "loss.item()")]}


def before(batch: int, width: int, depth: int, rows: int) -> Step:
    training, log = Ranked(batch, width, depth, 25), []

    def step():
        loss = training.loss()
        loss.backward()
        training.optimizer.step()
        if training.rank == 0:
            log.append(loss.item())
            collate(rows)
        return loss.detach()

    return step


def after(batch: int, width: int, depth: int, rows: int) -> Step:
    training, log = Ranked(batch, width, depth, 25), []

    def step():
        loss = training.loss()
        loss.backward()
        training.optimizer.step()
        if training.rank == 0:
            log.append(loss.detach())
            collate(rows)
        return loss.detach()

    return step


if __name__ == "__main__":
    profiled(before, SIZES)
