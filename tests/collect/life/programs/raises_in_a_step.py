import training

steps = []


def fail(loss):
    steps.append(loss.item())
    if len(steps) == 12:
        raise ValueError("in step 12")


training.train(16, fail)
