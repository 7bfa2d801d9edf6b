"""Every rank reads its loss before a backward whose buckets they reduce together; the fix reads none."""

from layers import Ranked
from parts import Step, collate, profiled

SIZES = {"medium": (1024, 2048, 8, 1000), "large": (1024, 4096, 8, 1000)}
FIX = {"question": "wait removed", "kind": "wait", "ranks": 2, "findings": [("SYN102", "loss.item()")]}


def before(batch: int, width: int, depth: int, rows: int) -> Step:
    training, log = Ranked(batch, width, depth, 25), []

    def step():
        collate(rows)
        loss = training.loss()
        log.append(loss.item())
        loss.backward()
        training.optimizer.step()
        return loss.detach()

    return step


def after(batch: int, width: int, depth: int, rows: int) -> Step:
    training, log = Ranked(batch, width, depth, 25), []

    def step():
        collate(rows)
        loss = training.loss()
        log.append(loss.detach())
        loss.backward()
        training.optimizer.step()
        return loss.detach()

    return step


if __name__ == "__main__":
    profiled(before, SIZES)
