"""What programs that many people start from want: readings, clips, and what newer libraries have left out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.public.classics import END
from benchmarks.public.notebooks import write_script
from benchmarks.public.pictures import write_picture

OLD_SPECTRA = """import runpy
import sys

import torch

newer = torch.stft
torch.stft = lambda *args, **options: torch.view_as_real(newer(*args, **options, return_complex=True))
sys.path.insert(0, ".")
"""
"""PyTorch gave real and imaginary parts as two numbers before 2.0."""
OLD_MEASURES = """import runpy
import sys

import numpy
import skimage.measure


def compare_psnr(true, other, data_range):
    return 10 * numpy.log10(data_range**2 / numpy.mean((true - other) ** 2))


def compare_ssim(true, other, data_range, **options):
    return 0.0


skimage.measure.compare_psnr = compare_psnr
skimage.measure.compare_ssim = compare_ssim
sys.path.insert(0, ".")
"""
OLD_SAMPLERS = """import runpy
import sys

from torch.utils.data import Sampler

Sampler.__init__ = lambda self, data=None: None
sys.path.insert(0, ".")
"""
"""PyTorch's samplers were told what they draw from."""
OLD_TABLES = """import runpy
import sys

import torch

sys.path.insert(0, ".")
from ops import dataset_config

newer = torch.Tensor.t
torch.Tensor.t = lambda self: newer(self).contiguous()
dataset_config.ROOT_DATASET = "videos/"
"""
"""What is compared with a turned table was contiguous before PyTorch 1.5; the data are elsewhere."""
SOUNDS = """import numpy


def normalize(data):
    return data / numpy.abs(data).max()
"""
BANDS = """import numpy


def mel(rate, size, bands, low, high):
    limits = 2595 * numpy.log10(1 + numpy.array([low, high or rate / 2]) / 700)
    ends = 700 * (10 ** (numpy.linspace(*limits, bands + 2) / 2595) - 1)
    up = (numpy.linspace(0, rate / 2, size // 2 + 1) - ends[:-1, None]) / numpy.diff(ends)[:, None]
    return numpy.maximum(0, numpy.minimum(up[:-1], 1 - up[1:])).astype("float32")
"""
COLOURS = """import numpy


def cmap(name):
    return numpy.repeat(numpy.arange(256, dtype="uint8")[:, None, None], 3, axis=2)
"""
NEIGHBOURS = """import numpy
import torch


def get_num_gpus():
    return 0


class IndexFlatL2:
    def __init__(self, size):
        self.rows = numpy.empty((0, size), "float32")

    def add(self, rows):
        self.rows = numpy.concatenate([self.rows, rows.numpy()])

    def search(self, rows, k):
        lengths = (self.rows**2).sum(axis=1)
        places, distances = [], []
        for part in numpy.array_split(rows.numpy(), len(rows) // 500 + 1):
            table = lengths - 2 * part @ self.rows.T
            nearest = numpy.argpartition(table, k, axis=1)[:, :k]
            places.append(nearest)
            distances.append(numpy.take_along_axis(table, nearest, axis=1))
        return torch.from_numpy(numpy.concatenate(distances)), torch.from_numpy(numpy.concatenate(places))
"""
TEXT = "the quick brown fox"


def make_journey_starts(folder: Path) -> None:
    """``start.py PROGRAM ...`` for programs that want old names."""
    folder.mkdir()
    for name, begin in {
        "old_spectra": OLD_SPECTRA, "old_measures": OLD_MEASURES, "old_samplers": OLD_SAMPLERS,
        "old_tables": OLD_TABLES,
    }.items():  # fmt: skip
        (folder / f"{name}.py").write_text(begin + END)


def make_journey_libraries(folder: Path) -> None:
    """As much of librosa, cmapy, skvideo and faiss as programs use."""
    for name, content in {
        "librosa/__init__.py": "", "librosa/util.py": SOUNDS, "librosa/filters.py": BANDS, "cmapy.py": COLOURS,
        "skvideo/__init__.py": "", "skvideo/io.py": "", "faiss/__init__.py": NEIGHBOURS,
        "faiss/contrib/__init__.py": "", "faiss/contrib/torch_utils.py": "",
    }.items():  # fmt: skip
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)


def make_recitals(folder: Path) -> None:
    """What somebody read aloud, in wave files of one length, and which are for training."""
    import wave

    rng = np.random.default_rng(161)
    folder.mkdir()
    for split, size in (("training", 160), ("validation", 8)):
        names = [f"{split}{number:03d}" for number in range(size)]
        for name in names:
            with wave.open(str(folder / f"{name}.wav"), "wb") as file:
                file.setparams((1, 2, 22_050, 0, "NONE", ""))
                file.writeframes(rng.normal(0, 3000, 24_000).astype("<i2").tobytes())
        (folder / f"{split}.txt").write_text("".join(f"{name}|{TEXT}|{TEXT}\n" for name in names))


def make_clips(folder: Path) -> None:
    """Films as folders of pictures, and what is done in each."""
    rng = np.random.default_rng(162)
    top = folder / "UCF101"
    (top / "labels").mkdir(parents=True)
    (top / "file_list").mkdir()
    (top / "labels/classInd.txt").write_text("".join(f"{number + 1} Act{number}\n" for number in range(10)))
    for split, size in (("train", 80), ("val", 24)):
        lines = [f"{split}{number} 12 {number % 10}\n" for number in range(size)]
        (top / f"file_list/ucf101_rgb_{split}_split_1.txt").write_text("".join(lines))
        for number in range(size):
            for frame in range(1, 13):
                write_picture(top / f"jpg/{split}{number}/img_{frame:05d}.jpg", 160, 120, rng)


def make_triplets(folder: Path, programs: Path) -> None:
    notebooks = programs / "pytorch-metric-learning/examples/notebooks"
    write_script(notebooks / "TripletMarginLossMNIST.ipynb", folder / "triplets.py")


JOURNEYS: dict[str, Callable[[Path], None]] = {
    "journey_starts": make_journey_starts,
    "journey_libraries": make_journey_libraries,
    "recitals": make_recitals,
    "clips": make_clips,
}
