import training

steps = []


def fail(loss):
    steps.append(loss.item())
    if len(steps) == 9:
        raise ValueError("in step 9")


training.train(16, fail)
