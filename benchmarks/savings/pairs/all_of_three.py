"""Three values are read every step; the fix keeps all of them on the device."""

from parts import Step, Training, collate, profiled

SIZES = {"medium": (2560, 2048, 2500)}
FIX = {
    "question": "all waits removed",
    "kind": "wait",
    "findings": [("SYN102", "loss.item()"), ("SYN102", ".max().item()"), ("SYN102", ".sum().item()")],
}


def before(batch: int, width: int, rows: int) -> Step:
    training, log = Training(batch, width), []

    def step():
        loss = training.forward()
        log.append(loss.item())
        training.backward(loss)
        log.append(training.head.bias.grad.max().item())
        collate(rows)
        log.append(training.head.bias.sum().item())
        return log[-1]

    return step


def after(batch: int, width: int, rows: int) -> Step:
    training, log = Training(batch, width), []

    def step():
        loss = training.forward()
        log.append(loss.detach())
        training.backward(loss)
        log.append(training.head.bias.grad.max())
        collate(rows)
        log.append(training.head.bias.sum())
        return log[-1]

    return step


if __name__ == "__main__":
    profiled(before, SIZES)
