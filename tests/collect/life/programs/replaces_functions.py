"""Replaces functions that a recording uses, before, in and after the steps."""

import sys
import warnings

import torch
import training


def refuse(*args, **kwargs):
    raise RuntimeError("not the program's own call")


def show(message, category, filename, lineno, file=None, line=None):
    print("shown:", message)


plain = warnings.warn


def warn(message, *args, **kwargs):
    print("warned:", message)
    plain(message, *args, **kwargs)


def report(kind, error, trace):
    print("reported:", kind.__name__, error)


torch.cuda.current_device = torch.cuda.get_device_name = refuse
training.train(steps=5)
torch.cuda.synchronize = lambda *args: print("synchronized")
torch.cuda.Event.synchronize = lambda self: print("waited")
torch.Tensor.to = torch.Tensor.cpu = lambda self, *args, **kwargs: self
warnings.showwarning, warnings.warn, sys.excepthook = show, warn, report
mine = torch.cuda.synchronize, torch.Tensor.to, warnings.showwarning, warnings.warn, sys.excepthook
training.train(steps=1000, each=lambda loss: loss.to("cpu"))
torch.cuda.synchronize()
torch.cuda.Event().synchronize()
warnings.warn("loud", UserWarning, stacklevel=1)
now = torch.cuda.synchronize, torch.Tensor.to, warnings.showwarning, warnings.warn, sys.excepthook
print([before is after for before, after in zip(mine, now, strict=True)])
raise ValueError("the program's own")
