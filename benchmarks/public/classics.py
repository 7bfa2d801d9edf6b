"""What well-known public programs want: starts that make their runs short or lend old names, sensors, boxes, words."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path

import numpy as np

BEGIN = """import runpy
import sys

from torchvision.datasets import CIFAR10, CIFAR100

for dataset in (CIFAR10, CIFAR100):
    dataset.meta["md5"] = None
    for files in (dataset.train_list, dataset.test_list):
        files[:] = [[name, None] for name, _ in files]
"""
"""Of a start whose program asks for no sums of CIFAR's files."""
TERMINAL = """
import io
import os

os.popen = lambda *words: io.StringIO("24 80")
"""
"""A program asks for the size of its terminal, which it has none of."""
THREE_EPOCHS = """
from torch.optim.lr_scheduler import CosineAnnealingLR

step_once = CosineAnnealingLR.step


def step(self):
    step_once(self)
    if self.last_epoch == 3:
        sys.exit()


CosineAnnealingLR.step = step
"""
EIGHT_EPOCHS = """
from conf import settings

settings.EPOCH, settings.MILESTONES, settings.SAVE_EPOCH = 8, [2, 4, 6], 2
"""
OLD_CONVOLUTIONS = """import runpy
import sys

from torch import nn

nn.Conv1d._conv_forward = lambda self, *tensors: nn.functional.conv2d(
    *tensors, self.stride, self.padding, self.dilation, self.groups
)
"""
"""Before PyTorch 1.11, convolutions of one dimension took kernels of two."""
OLD_TIMM = """import runpy
import sys
from types import SimpleNamespace

import numpy
import timm
import torch
from timm.models import vision_transformer
from timm.optim import optim_factory, param_groups_weight_decay


class Block(vision_transformer.Block):
    def __init__(self, *sizes, qk_scale=None, **options):
        super().__init__(*sizes, **options)


numpy.float = float
timm.__version__ = "0.3.2"
sys.modules["torch._six"] = SimpleNamespace(inf=torch.inf)
optim_factory.add_weight_decay = param_groups_weight_decay
vision_transformer.Block = Block
"""
SMALL_VAE = """import torch
from torch import nn


class Noisy:
    def __init__(self, numbers):
        self.mean, self.log_variance = numbers.chunk(2, dim=1)

    def sample(self):
        return self.mean + torch.exp(self.log_variance / 2) * torch.randn_like(self.mean)


class Encoded:
    def __init__(self, numbers):
        self.latent_dist = Noisy(numbers)


class AutoencoderKL(nn.Sequential):
    @classmethod
    def from_pretrained(cls, name):
        sizes = (3, 64, 128, 256)
        halved = [nn.Conv2d(one, two, 3, 2, 1) for one, two in zip(sizes, sizes[1:])]
        return cls(*(part for layer in halved for part in (layer, nn.SiLU())), nn.Conv2d(256, 8, 3, 1, 1))

    def encode(self, pictures):
        return Encoded(self(pictures))
"""
END = """
if __name__ == "__main__":
    del sys.argv[0]
    runpy.run_path(sys.argv[0], run_name="__main__")
"""
SENSORS = 207


def make_classic_starts(folder: Path) -> None:
    """``start.py PROGRAM ...`` for programs that train on CIFAR, of which two are ended early, or want old names."""
    folder.mkdir()
    (folder / "terminal.py").write_text(BEGIN + TERMINAL + END)
    (folder / "three_epochs.py").write_text(BEGIN + TERMINAL + THREE_EPOCHS + END)
    (folder / "eight_epochs.py").write_text(BEGIN + EIGHT_EPOCHS + END)
    (folder / "old_convolutions.py").write_text(OLD_CONVOLUTIONS + END)
    (folder / "old_timm.py").write_text(OLD_TIMM + END)


def make_small_vae(folder: Path) -> None:
    """As much of diffusers as a program encodes its pictures with: an autoencoder of random weights."""
    (folder / "diffusers").mkdir(parents=True)
    (folder / "diffusers/__init__.py").write_text("")
    (folder / "diffusers/models.py").write_text(SMALL_VAE)


def make_sensors(folder: Path) -> None:
    """Windows of speeds at 207 places, some of them missing, and which places are near to each other."""
    rng = np.random.default_rng(110)
    folder.mkdir()
    for split, size in (("train", 3200), ("val", 640), ("test", 640)):
        windows = rng.random((2, size, 12, SENSORS, 2), dtype=np.float32)
        windows[..., 0] *= 70 * (windows[..., 0] > 0.05)
        np.savez(folder / f"{split}.npz", x=windows[0], y=windows[1])
    near = (rng.random((SENSORS, SENSORS)) * (rng.random((SENSORS, SENSORS)) < 0.05)).astype(np.float32)
    np.fill_diagonal(near, 1)
    names = [str(number) for number in range(SENSORS)]
    (folder / "adjacency.pkl").write_bytes(pickle.dumps((names, {name: int(name) for name in names}, near)))


CLASSICS: dict[str, Callable[[Path], None]] = {
    "classic_starts": make_classic_starts,
    "sensors": make_sensors,
    "small_vae": make_small_vae,
}
