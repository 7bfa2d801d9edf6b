import sys

import training


def hook(kind, error, trace):
    raise RuntimeError("in the hook")


sys.excepthook = hook
training.train()
raise KeyError("x")
