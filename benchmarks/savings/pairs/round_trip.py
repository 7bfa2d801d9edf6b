"""A statistic goes to the host to be clamped and comes back; the fix clamps it on the device."""

from parts import Step, Training, collate, profiled

SIZES = {"medium": (2560, 2048, 2500)}
FIX = {
    "question": "round trip kept on the device",
    "kind": "transform",
    "findings": [
        ("CPY204", "peaks"),
        ("SYN101", "peaks.cpu()"),
        ("SYN101", 'clamped.to("cuda")'),
        ("CPY201", "peaks.cpu()"),
        ("CPY201", 'clamped.to("cuda")'),
    ],
}


def before(batch: int, width: int, rows: int) -> Step:
    training = Training(batch, width)

    def step():
        peaks = training.inputs.amax(1, keepdim=True)
        clamped = peaks.cpu().clamp(min=1)
        scale = clamped.to("cuda")
        loss = training.forward(training.inputs / scale)
        training.backward(loss)
        collate(rows)
        return loss

    return step


def after(batch: int, width: int, rows: int) -> Step:
    training = Training(batch, width)

    def step():
        peaks = training.inputs.amax(1, keepdim=True)
        scale = peaks.clamp(min=1)
        loss = training.forward(training.inputs / scale)
        training.backward(loss)
        collate(rows)
        return loss

    return step


if __name__ == "__main__":
    profiled(before, SIZES)
