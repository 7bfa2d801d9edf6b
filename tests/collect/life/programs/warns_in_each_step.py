import warnings

import training


def warn(loss):
    loss.item()
    warnings.warn("once a line", stacklevel=1)


training.train(24, warn)
