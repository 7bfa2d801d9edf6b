"""The loss is logged with ``.item()`` at the end of every step; the fix keeps it on the device."""

from parts import Step, Training, collate, profiled

SIZES = {"small": (256, 512, 3000), "medium": (2560, 2048, 2500), "large": (8192, 2048, 1000)}
FIX = {"question": "wait removed", "kind": "wait", "findings": [("SYN102", "loss.item()")]}


def before(batch: int, width: int, rows: int) -> Step:
    training, log = Training(batch, width), []

    def step():
        collate(rows)
        loss = training.forward()
        training.backward(loss)
        log.append(loss.item())
        return log[-1]

    return step


def after(batch: int, width: int, rows: int) -> Step:
    training, log = Training(batch, width), []

    def step():
        collate(rows)
        loss = training.forward()
        training.backward(loss)
        log.append(loss.detach())
        return log[-1]

    return step


if __name__ == "__main__":
    profiled(before, SIZES)
