"""A few numbers are printed every step; the fix keeps them for later."""

from parts import Step, Training, collate, profiled

SIZES = {"medium": (2560, 2048, 2500)}
FIX = {"question": "wait removed", "kind": "wait", "findings": [("SYN104", "print(")]}


def before(batch: int, width: int, rows: int) -> Step:
    training, log = Training(batch, width), []

    def step():
        collate(rows)
        loss = training.forward()
        training.backward(loss)
        log.append(training.head.weight.detach()[:4, :2].clone())
        print("head", log[-1])
        return log[-1]

    return step


def after(batch: int, width: int, rows: int) -> Step:
    training, log = Training(batch, width), []

    def step():
        collate(rows)
        loss = training.forward()
        training.backward(loss)
        log.append(training.head.weight.detach()[:4, :2].clone())
        return log[-1]

    return step


if __name__ == "__main__":
    profiled(before, SIZES)
