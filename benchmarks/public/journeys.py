"""What programs that many people start from want: readings, clips, passers-by, answers, and what newer libraries have
left out."""

from __future__ import annotations

import json
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
OLD_SEEDS = """import random
import runpy
import sys

newer = random.seed
random.seed = lambda value: newer(int(value))
sys.path.insert(0, ".")
"""
OLD_LOADERS = """import runpy
import sys
from functools import partial

import imageio
import skimage.draw
import yaml

newer = skimage.draw.disk
skimage.draw.disk = lambda row, column, radius, shape: newer((row, column), radius, shape=shape)
imageio.imsave = imageio.imwrite
yaml.load = partial(yaml.load, Loader=yaml.SafeLoader)
sys.path.insert(0, ".")
"""
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
PEOPLE, CAMERAS = 64, 4
ADAM = {"type": "Adam", "lr": 0.0001, "weight_decay": 0, "betas": [0.9, 0.99]}
ENLARGED = {
    "name": "one", "model_type": "SRGANModel", "scale": 4, "num_gpu": 1, "manual_seed": 0,
    "datasets": {
        "train": {
            "name": "parts", "type": "PairedImageDataset", "dataroot_gt": "datasets/train/large",
            "dataroot_lq": "datasets/train/small", "filename_tmpl": "{}", "io_backend": {"type": "disk"},
            "gt_size": 128, "use_flip": True, "use_rot": True, "use_shuffle": True, "num_worker_per_gpu": 4,
            "batch_size_per_gpu": 16, "dataset_enlarge_ratio": 10, "prefetch_mode": "cuda", "pin_memory": True,
        },
        "val": {
            "name": "five", "type": "PairedImageDataset", "dataroot_gt": "datasets/val/large",
            "dataroot_lq": "datasets/val/small", "io_backend": {"type": "disk"},
        },
    },
    "network_g": {
        "type": "MSRResNet", "num_in_ch": 3, "num_out_ch": 3, "num_feat": 64, "num_block": 16, "upscale": 4,
    },
    "network_d": {"type": "VGGStyleDiscriminator128", "num_in_ch": 3, "num_feat": 64},
    "path": {"pretrain_network_g": None, "strict_load_g": True, "resume_state": None},
    "train": {
        "optim_g": ADAM, "optim_d": ADAM,
        "scheduler": {"type": "MultiStepLR", "milestones": [60, 100], "gamma": 0.5},
        "total_iter": 120, "warmup_iter": -1,
        "pixel_opt": {"type": "L1Loss", "loss_weight": 0.01, "reduction": "mean"},
        "gan_opt": {
            "type": "GANLoss", "gan_type": "vanilla", "real_label_val": 1.0, "fake_label_val": 0.0,
            "loss_weight": 0.005,
        },
        "net_d_iters": 1, "net_d_init_iters": 0,
    },
    "val": {
        "val_freq": 40, "save_img": True,
        "metrics": {"psnr": {"type": "calculate_psnr", "crop_border": 4, "test_y_channel": False}},
    },
    "logger": {"print_freq": 20, "save_checkpoint_freq": 60, "use_tb_logger": True, "wandb": {"project": None}},
}  # fmt: skip
"""The options of BasicSR for MSRGAN, but for the perceptual loss, whose weights would be downloaded, and its length."""
MOVED = {
    "dataset_params": {
        "root_dir": "data/moving", "frame_shape": [64, 64, 3], "id_sampling": False,
        "augmentation_params": {"flip_param": {"horizontal_flip": True, "time_flip": True}},
    },
    "model_params": {
        "common_params": {"num_kp": 10, "num_channels": 3, "estimate_jacobian": True},
        "kp_detector_params": {
            "temperature": 0.1, "block_expansion": 32, "max_features": 256, "scale_factor": 0.5, "num_blocks": 4,
        },
        "generator_params": {
            "block_expansion": 32, "max_features": 256, "num_down_blocks": 2, "num_bottleneck_blocks": 4,
            "estimate_occlusion_map": True,
            "dense_motion_params": {
                "block_expansion": 32, "max_features": 256, "num_blocks": 4, "scale_factor": 0.5,
            },
        },
        "discriminator_params": {
            "scales": [1], "block_expansion": 32, "max_features": 256, "num_blocks": 3, "sn": True,
        },
    },
    "train_params": {
        "num_epochs": 4, "num_repeats": 4, "epoch_milestones": [2, 3], "lr_generator": 0.0002,
        "lr_discriminator": 0.0002, "lr_kp_detector": 0.0002, "batch_size": 8, "scales": [1, 0.5, 0.25],
        "checkpoint_freq": 2, "transform_params": {"sigma_affine": 0.05, "sigma_tps": 0.005, "points_tps": 5},
        "loss_weights": {
            "generator_gan": 1, "discriminator_gan": 1, "feature_matching": [10, 10, 10, 10],
            "perceptual": [0, 0, 0, 0, 0], "equivariance_value": 10, "equivariance_jacobian": 10,
        },
    },
    "visualizer_params": {"kp_size": 2, "draw_border": True, "colormap": "gist_rainbow"},
}  # fmt: skip
"""A smaller one of the first-order motion model's own, without the perceptual loss likewise."""
KINDS = ("Private", "Public", "Own", "None")


def make_journey_starts(folder: Path) -> None:
    """``start.py PROGRAM ...`` for programs that want old names."""
    folder.mkdir()
    for name, begin in {
        "old_spectra": OLD_SPECTRA, "old_measures": OLD_MEASURES, "old_samplers": OLD_SAMPLERS,
        "old_tables": OLD_TABLES, "old_loaders": OLD_LOADERS, "old_seeds": OLD_SEEDS,
    }.items():  # fmt: skip
        (folder / f"{name}.py").write_text(begin + END)


def make_journey_libraries(folder: Path) -> None:
    """As much of librosa, cmapy, skvideo, faiss, gdown, wget, bs4, tensor_parallel and of compiled kernels as programs
    use."""
    for name, content in {
        "librosa/__init__.py": "", "librosa/util.py": SOUNDS, "librosa/filters.py": BANDS, "cmapy.py": COLOURS,
        "skvideo/__init__.py": "", "skvideo/io.py": "", "faiss/__init__.py": NEIGHBOURS,
        "faiss/contrib/__init__.py": "", "faiss/contrib/torch_utils.py": "", "gdown.py": "", "wget.py": "",
        "bs4.py": "BeautifulSoup = NavigableString = None\n", "tensor_parallel.py": "", "kernels.py": "",
        "version.py": '__version__ = "1.1.1"\n',
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


def make_passers(folder: Path) -> None:
    """Pictures of people by several cameras."""
    rng = np.random.default_rng(163)
    top = folder / "market1501/Market-1501-v15.09.15"
    for person in range(1, PEOPLE + 1):
        for camera in range(1, CAMERAS + 1):
            name = f"{person:04d}_c{camera}s1_{camera:06d}_00.jpg"
            write_picture(top / "bounding_box_train" / name, 64, 128, rng)
            if person <= PEOPLE // 2:
                part = "query" if camera == 1 else "bounding_box_test"
                write_picture(top / part / name, 64, 128, rng)


def make_enlarged(folder: Path) -> None:
    """Pictures in two sizes, and the options of a short run."""
    from PIL import Image

    rng = np.random.default_rng(164)
    for split, size in (("train", 64), ("val", 5)):
        (folder / split / "small").mkdir(parents=True)
        for number in range(size):
            large = folder / split / "large" / f"{number:03d}.png"
            write_picture(large, 192, 192, rng)
            Image.open(large).resize((48, 48)).save(folder / split / "small" / f"{number:03d}.png")
    (folder / "options.yml").write_text(json.dumps(ENLARGED))


def make_answers(folder: Path) -> None:
    """Two answers to each question, the first of which is liked better."""
    rng = np.random.default_rng(165)
    folder.mkdir()
    for split, size in (("train", 1600), ("test", 64)):
        lines = []
        for _ in range(size):
            asked, *answered = (" ".join(f"w{word}" for word in rng.integers(0, 500, 12)) for _ in range(3))
            texts = [f"\n\nHuman: {asked}\n\nAssistant: {text}" for text in answered]
            lines.append(json.dumps(dict(zip(("chosen", "rejected"), texts, strict=True))) + "\n")
        (folder / f"{split}.jsonl").write_text("".join(lines))


def make_motions(folder: Path) -> None:
    """Films as folders of pictures, and the configuration of a short run."""
    rng = np.random.default_rng(166)
    for split, size in (("train", 32), ("test", 4)):
        for number in range(size):
            for frame in range(8):
                write_picture(folder / f"films/{split}/{number:03d}/{frame:03d}.png", 64, 64, rng)
    (folder / "short.yaml").write_text(json.dumps(MOVED))


def make_census(folder: Path) -> None:
    """What people earn, in the columns of a census."""
    rng = np.random.default_rng(167)
    folder.mkdir()
    lines = []
    for _ in range(40_000):
        age, weight, years = rng.integers(17, 90), rng.integers(12_000, 900_000), rng.integers(1, 17)
        words = [f"{KINDS[number % 4]}{number}" for number in rng.integers(0, 8, 6)]
        gain, loss, hours = rng.integers(0, 90) * 100, rng.integers(0, 60) * 10, rng.integers(1, 99)
        values = [age, words[0], weight, words[1], years, *words[2:], rng.choice(["Male", "Female"]), gain, loss, hours,
                  f"Land{rng.integers(0, 40)}", rng.choice(["<=50K", ">50K"])]  # fmt: skip
        lines.append(", ".join(map(str, values)) + "\n")
    titles = "39, State-gov, 77516, Bachelors, 13, Never-married, Adm-clerical, Not-in-family, White, Male, 2174, 0, 40"
    (folder / "census-income.csv").write_text(f"{titles}, United-States, <=50K\n" + "".join(lines))


def make_triplets(folder: Path, programs: Path) -> None:
    notebooks = programs / "pytorch-metric-learning/examples/notebooks"
    write_script(notebooks / "TripletMarginLossMNIST.ipynb", folder / "triplets.py")


def make_tasks(folder: Path, programs: Path) -> None:
    write_script(programs / "tabnet/multi_task_example.ipynb", folder / "tasks.py")


def make_rounds(folder: Path, programs: Path) -> None:
    notebooks = programs / "botorch/tutorials/closed_loop_botorch_only"
    write_script(notebooks / "closed_loop_botorch_only.ipynb", folder / "rounds.py")


JOURNEYS: dict[str, Callable[[Path], None]] = {
    "journey_starts": make_journey_starts,
    "journey_libraries": make_journey_libraries,
    "recitals": make_recitals,
    "clips": make_clips,
    "passers": make_passers,
    "enlarged": make_enlarged,
    "answers": make_answers,
    "motions": make_motions,
    "census": make_census,
}
