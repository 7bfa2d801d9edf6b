"""What programs of further kinds want: facts, walks, poses, windows of time, drives, letters, voices, many words."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.public.classics import END
from benchmarks.public.notebooks import write_script
from benchmarks.public.pictures import write_picture

OLD_DRIVES = """import runpy
import sys
from types import SimpleNamespace

from PIL import Image
from torch.utils.data.dataloader import _BaseDataLoaderIter
from torchvision import transforms

Image.ANTIALIAS = Image.LANCZOS
_BaseDataLoaderIter.next = lambda self: next(self)
transforms.ColorJitter = SimpleNamespace(get_params=transforms.ColorJitter)
sys.path.insert(0, ".")
"""
"""Names that newer versions of Pillow and PyTorch have removed, and what torchvision's ``get_params`` gave."""
OLD_ARRAYS = """import runpy
import sys

import numpy

newer = numpy.array


def older(value, *args, copy=True, **options):
    return newer(value, *args, copy=copy or None, **options)


numpy.array = older
sys.path.insert(0, "src")
"""
"""NumPy 2 copies nothing where ``copy=False`` is asked for, and fails where it has to."""
OLD_SETS = """import runpy
import sys

import numpy

numpy.in1d = numpy.isin
sys.path.insert(0, "codes")
"""
OLD_LAYOUTS = """import runpy
import sys

sys.path.insert(0, ".")
from sgan.data import trajectories

newer = trajectories.seq_collate
trajectories.seq_collate = lambda data: tuple(one.contiguous() for one in newer(data))
"""
"""A copy to the device was contiguous before PyTorch 1.5, whatever was copied."""
OLD_OBJECTS = """import runpy
import sys

import numpy
import torch

newer = torch.Tensor.__array__


def older(self, *args, **options):
    if not self.is_cuda:
        return newer(self, *args, **options)
    array = numpy.empty((), object)
    array[()] = self
    return array


torch.Tensor.__array__ = older
sys.path.insert(0, ".")
"""
"""NumPy took a tensor of a device for an object that it knows nothing of before 1.19."""
OLD_PICKLES = """import runpy
import sys
from functools import partial

import numpy

numpy.load = partial(numpy.load, allow_pickle=True)
sys.path.insert(0, ".")
"""
OLD_MASKS = """import runpy
import sys

import torch

newer = torch.Tensor.masked_fill


def older(self, mask, value):
    return newer(self, mask.bool(), value)


torch.Tensor.masked_fill = older
sys.path.insert(0, ".")
"""
"""PyTorch took bytes for masks."""
MEASURE = """import numpy


def compare_psnr(true, other):
    return -10 * numpy.log10(numpy.mean((true.astype("float64") - other) ** 2))
"""
READ = """import wave

import numpy


def read(name):
    with wave.open(name) as file:
        samples = numpy.frombuffer(file.readframes(file.getnframes()), "<i2")
        return samples / 32768, file.getframerate()
"""
VOICES = """[data]
tr_lst={folder}/train.scp
te_lst={folder}/test.scp
lab_dict={folder}/labels.npy
data_folder={folder}
output_folder=out
pt_file=none

[windowing]
fs=16000
cw_len=200
cw_shift=10

[cnn]
cnn_N_filt=80,60,60
cnn_len_filt=251,5,5
cnn_max_pool_len=3,3,3
cnn_use_laynorm_inp=True
cnn_use_batchnorm_inp=False
cnn_use_laynorm=True,True,True
cnn_use_batchnorm=False,False,False
cnn_act=leaky_relu,leaky_relu,leaky_relu
cnn_drop=0.0,0.0,0.0

[dnn]
fc_lay=2048,2048,2048
fc_drop=0.0,0.0,0.0
fc_use_laynorm_inp=True
fc_use_batchnorm_inp=False
fc_use_batchnorm=True,True,True
fc_use_laynorm=False,False,False
fc_act=leaky_relu,leaky_relu,leaky_relu

[class]
class_lay=40
class_drop=0.0
class_use_laynorm_inp=False
class_use_batchnorm_inp=False
class_use_batchnorm=False
class_use_laynorm=False
class_act=softmax

[optimization]
lr=0.001
batch_size=128
N_epochs=5
N_batches=60
N_eval_epoch=2
seed=1234
"""
"""The configuration of SincNet for TIMIT, but for where the data are, how many speak, and how long it trains."""
WINDOWS = {
    "learning_rate": 1e-3, "batch_size": 64, "lstm_layers": 3, "num_epochs": 3, "train_window": 64, "test_window": 64,
    "predict_start": 48, "test_predict_start": 48, "predict_steps": 16, "num_class": 20, "cov_dim": 4,
    "lstm_hidden_dim": 40, "embedding_dim": 20, "sample_times": 10, "lstm_dropout": 0.1, "predict_batch": 128,
}  # fmt: skip
ENTITIES, RELATIONS = 1000, 20
WORDS = 210_000
"""More than the ends of the clusters of words that a program for WikiText-103 has in it."""
JOINTS, CAMERAS = 32, 4
SPEAKERS = 40


def make_venture_starts(folder: Path) -> None:
    """``start.py PROGRAM ...`` for programs that want old names."""
    folder.mkdir()
    for name, begin in {
        "old_drives": OLD_DRIVES, "old_arrays": OLD_ARRAYS, "old_sets": OLD_SETS, "old_pickles": OLD_PICKLES,
        "old_masks": OLD_MASKS, "old_layouts": OLD_LAYOUTS, "old_objects": OLD_OBJECTS,
    }.items():  # fmt: skip
        (folder / f"{name}.py").write_text(begin + END)


def make_venture_libraries(folder: Path) -> None:
    """As much of IPython, soundfile and an old scikit-image as programs use. Not where the starts are: Python looks for
    modules there first."""
    (folder / "skimage").mkdir(parents=True)
    (folder / "IPython.py").write_text("embed = None\n")
    (folder / "soundfile.py").write_text(READ)
    (folder / "skimage/__init__.py").write_text("")
    (folder / "skimage/measure.py").write_text(MEASURE)


def make_many_words(folder: Path) -> None:
    """Each word of a large vocabulary at least once."""
    rng = np.random.default_rng(151)
    folder.mkdir()
    for split, words in (
        ("train", np.concatenate([rng.permutation(WORDS), rng.integers(0, 20_000, 90_000)])),
        ("valid", rng.integers(0, WORDS, 10_000)),
        ("test", rng.integers(0, WORDS, 10_000)),
    ):
        lines = (" ".join(f"w{number}" for number in words[begin : begin + 40]) for begin in range(0, len(words), 40))
        (folder / f"{split}.txt").write_text("\n".join(lines) + "\n")


def make_facts(folder: Path) -> None:
    """Who has which relation to whom, each fact once."""
    rng = np.random.default_rng(152)
    folder.mkdir()
    for name, size in (("entities", ENTITIES), ("relations", RELATIONS)):
        (folder / f"{name}.dict").write_text("".join(f"{number}\t{name[0]}{number}\n" for number in range(size)))
    chosen = rng.choice(ENTITIES * RELATIONS * ENTITIES, 10_400, replace=False)
    heads, relations, tails = np.unravel_index(chosen, (ENTITIES, RELATIONS, ENTITIES))
    facts = [f"e{head}\tr{kind}\te{tail}\n" for head, kind, tail in zip(heads, relations, tails, strict=True)]
    for split, begin, end in (("train", 0, 10_000), ("valid", 10_000, 10_200), ("test", 10_200, 10_400)):
        (folder / f"{split}.txt").write_text("".join(facts[begin:end]))


def make_poses(folder: Path) -> None:
    """Joints of people who move, and where four cameras see them."""
    rng = np.random.default_rng(153)
    folder.mkdir()
    bodies: dict[str, dict[str, np.ndarray]] = {}
    seen: dict[str, dict[str, list[np.ndarray]]] = {}
    for subject, actions in (("S1", 3), ("S5", 3), ("S9", 3)):
        bodies[subject], seen[subject] = {}, {}
        for action in ("Eating", "Sitting", "Walking")[:actions]:
            frames = 400
            moves = rng.normal(0, 0.002, (frames, JOINTS, 3)).cumsum(axis=0) + rng.normal(0, 0.4, (1, JOINTS, 3))
            moves[..., 2] += 1
            bodies[subject][action] = moves.astype(np.float32)
            seen[subject][action] = [rng.uniform(0, 1000, (frames, 17, 2)).astype(np.float32) for _ in range(CAMERAS)]
    sides = [[4, 5, 6, 11, 12, 13], [1, 2, 3, 14, 15, 16]]
    metadata = {"layout_name": "h36m", "num_joints": 17, "keypoints_symmetry": sides}
    np.savez_compressed(folder / "data_3d_h36m.npz", positions_3d=np.array(bodies, object))
    np.savez_compressed(
        folder / "data_2d_h36m_gt.npz", positions_2d=np.array(seen, object), metadata=np.array(metadata, object)
    )


def make_walks(folder: Path) -> None:
    """Where the people of a place are in each frame."""
    rng = np.random.default_rng(154)
    for split, frames in (("train", 700), ("val", 200)):
        (folder / split).mkdir(parents=True)
        lines = []
        for group in range(0, frames, 40):
            people = int(rng.integers(2, 7))
            places = rng.uniform(0, 12, (people, 2)) + rng.normal(0, 0.3, (40, people, 2)).cumsum(axis=0)
            for frame in range(40):
                for person in range(people):
                    x, y = places[frame, person]
                    lines.append(f"{(group + frame) * 10}\t{group * 10 + person}\t{x:.3f}\t{y:.3f}\n")
        (folder / split / "place.txt").write_text("".join(lines))


def make_windows(folder: Path) -> None:
    """Windows of time series with some missing numbers, in the files that a program has made of them."""
    rng = np.random.default_rng(155)
    folder.mkdir()
    length = WINDOWS["train_window"]
    for split, size in (("train", 1600), ("test", 300)):
        series = np.abs(rng.normal(1, 0.3, (size, int(length) + 1))).astype(np.float32)
        series[rng.random(series.shape) < 0.02] = 0
        numbers = rng.integers(0, int(WINDOWS["num_class"]), size).astype(np.float32)
        covariates = rng.normal(size=(size, int(length), 4)).astype(np.float32)
        repeated = np.broadcast_to(numbers[:, None, None], (size, int(length), 1))
        inputs = np.concatenate([series[:, :-1, None], covariates, repeated], axis=2)
        np.save(folder / f"{split}_data_elect.npy", inputs)
        np.save(folder / f"{split}_label_elect.npy", series[:, 1:])
        scales = np.stack([rng.uniform(1, 4, size), np.zeros(size)], axis=1)
        np.save(folder / f"{split}_v_elect.npy", scales.astype(np.float32))
    (folder / "params.json").write_text(json.dumps(WINDOWS))


def make_drives(folder: Path) -> None:
    """Pictures from a car, and which of them are for training."""
    rng = np.random.default_rng(156)
    pictures = folder / "day/drive/image_02/data"
    for number in range(242):
        write_picture(pictures / f"{number:010d}.png", 416, 128, rng)
    for split, begin, end in (("train", 1, 201), ("val", 201, 241)):
        (folder / f"{split}_files.txt").write_text("".join(f"day/drive {number} l\n" for number in range(begin, end)))


def make_drawings(folder: Path) -> None:
    """Twenty drawings of each letter of some alphabets, and which letters are for training."""
    from PIL import Image

    rng = np.random.default_rng(157)
    (folder / "splits/vinyals").mkdir(parents=True)
    for split, alphabets in (("train", ("A", "B", "C")), ("val", ("D",)), ("test", ("E", "F"))):
        names = [f"{alphabet}/character{number:02d}" for alphabet in alphabets for number in range(1, 11)]
        for name in names:
            (folder / "data" / name).mkdir(parents=True)
            for number in range(20):
                picture = Image.fromarray((rng.random((105, 105)) < 0.9).astype(np.uint8) * 255)
                picture.convert("1").save(folder / "data" / name / f"{number}.png")
        lines = [f"{name}/rot{turn}\n" for name in names for turn in ("000", "090", "180", "270")]
        (folder / f"splits/vinyals/{split}.txt").write_text("".join(lines))


def make_speeches(folder: Path) -> None:
    """What people said, in wave files, who said which, and the configuration of a short run."""
    import wave

    rng = np.random.default_rng(158)
    folder.mkdir()
    speakers: dict[str, int] = {}
    for split, speeches in (("train", 6), ("test", 1)):
        names = []
        for speaker in range(SPEAKERS):
            for number in range(speeches):
                names.append(f"/{split}{speaker}_{number}.wav")
                samples = rng.normal(0, 3000, int(rng.integers(16_000, 24_000))).astype("<i2")
                with wave.open(f"{folder}{names[-1]}", "wb") as file:
                    file.setparams((1, 2, 16_000, 0, "NONE", ""))
                    file.writeframes(samples.tobytes())
                speakers[names[-1]] = speaker
        (folder / f"{split}.scp").write_text("".join(f"{name}\n" for name in names))
    np.save(folder / "labels.npy", np.array(speakers, object))
    (folder / "short.cfg").write_text(VOICES.format(folder=folder.resolve()))


def make_plane(folder: Path) -> None:
    write_picture(folder / "F16_GT.png", 128, 128, np.random.default_rng(159))


def make_denoising(folder: Path, programs: Path) -> None:
    write_script(programs / "deep-image-prior/denoising.ipynb", folder / "denoising.py")


VENTURES: dict[str, Callable[[Path], None]] = {
    "venture_starts": make_venture_starts,
    "venture_libraries": make_venture_libraries,
    "many_words": make_many_words,
    "facts": make_facts,
    "poses": make_poses,
    "walks": make_walks,
    "windows": make_windows,
    "drives": make_drives,
    "drawings": make_drawings,
    "speeches": make_speeches,
    "plane": make_plane,
}
