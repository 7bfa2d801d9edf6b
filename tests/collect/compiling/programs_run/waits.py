import ctypes
import os

import torch

PACKAGES = os.path.dirname(os.path.dirname(torch.__file__))
MODE = torch.sync_debug_mode
WARNING = ctypes.py_object(UserWarning), b"called a synchronizing CUDA operation", 1
WAITS = "\n    if MODE[0]:\n        warn(*WARNING)\n"


def library(file, source, **names):
    """A function in a file of PyTorch's."""
    names.update(MODE=MODE, WARNING=WARNING, warn=ctypes.pythonapi.PyErr_WarnEx)
    exec(compile(source, os.path.join(PACKAGES, *file.split("/")), "exec"), names)
    return names[source.split("(")[0].removeprefix("def ")]


read = library("torch/_tensor.py", "def read(self):" + WAITS)
fold = library("torch/_inductor/fx_passes/joint_graph.py", "def fold():" + WAITS)
compiles = library(
    "torch/_dynamo/backends/folding.py",
    "def compiles(graph, inputs):\n    for _ in range(7):\n        fold()\n    return graph.forward",
    fold=fold,
)


class Net(torch.nn.Module):  # type: ignore[misc]
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(8, 8)

    def forward(self, x, scale):
        return torch.sin(self.layer(x) * scale).sum()  # compiled again in step 30


def main():
    step = torch.compile(net := Net(), backend=compiles)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    for number in range(60):
        loss = step(torch.randn(4, 8), 2 if number < 30 else 3)  # waits while it compiles
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        read(loss)  # waits in each step


main()
