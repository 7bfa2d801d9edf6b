"""What eight programs of other kinds want: settings of short runs, voices, words and weights of a model, old names."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.public.classics import END
from benchmarks.public.journeys import BANDS

COMMAND = """import sys

sys.path.insert(0, ".")
from lightweight_gan.cli import main

if __name__ == "__main__":
    main()
"""
"""What an installed package's own command calls."""
OLD_SCHEDULES = """import runpy
import sys

from torch.optim.lr_scheduler import LRScheduler

newer = LRScheduler.__init__
LRScheduler.__init__ = lambda self, optimizer, last_epoch=-1, verbose=None: newer(self, optimizer, last_epoch)
sys.path.insert(0, ".")
"""
"""PyTorch's schedules told of each change before 2.7, if they were asked to."""
OLD_PORTS = """import os
import sys

import torch

newer = torch.stft
torch.stft = lambda *args, **options: torch.view_as_real(newer(*args, **options, return_complex=True))
os.environ["MASTER_PORT"] = str(20_000 + os.getpid() % 10_000)
sys.path.insert(0, ".")

if __name__ == "__main__":
    import train

    train.main()
"""
"""PyTorch gave real and imaginary parts as two numbers before 2.0, and took the port 80000: in what is spawned too."""
DRAWN = """import numpy


class Drawn:
    def __getattr__(self, name):
        return self

    def __call__(self, *args, **options):
        return self


class Turned(tuple):
    def rotate_rad(self, angle):
        return self


class math:
    Vector2 = Turned


class surfarray:
    @staticmethod
    def pixels3d(screen):
        return numpy.zeros((600, 400, 3), numpy.uint8)


display = event = time = transform = gfxdraw = Drawn()
Surface = quit = Drawn()
"""
FILMS = """class ImageSequenceClip:
    def __init__(self, frames, fps):
        pass

    def write_videofile(self, path, **options):
        open(path, "wb").close()
"""
PATHS = """import logging

import numba

logging.getLogger("numba").setLevel(logging.WARNING)


@numba.njit
def one(path, value, rows, columns):
    index = columns - 1
    for y in range(rows):
        for x in range(max(0, columns + y - rows), min(columns, y + 1)):
            here = -1e9 if x == y else value[y - 1, x]
            if x == 0:
                before = 0.0 if y == 0 else -1e9
            else:
                before = value[y - 1, x - 1]
            value[y, x] += max(before, here)
    for y in range(rows - 1, -1, -1):
        path[y, index] = 1
        if index != 0 and (index == y or value[y - 1, index] < value[y - 1, index - 1]):
            index -= 1


def maximum_path_c(paths, values, rows, columns):
    for number in range(len(paths)):
        one(paths[number], values[number], rows[number], columns[number])
"""
"""The way through a table that a program has as Cython."""
WORDS, LAYERS, SIZE = 262_144, 26, 1152
"""Of Gemma 3 in its smallest size."""
READ, HEARD, SAMPLES = 64, 4, 60_000


def make_excursion_starts(folder: Path) -> None:
    """``start.py ...`` for a program that is a package's command, and for those that want old names."""
    folder.mkdir()
    (folder / "command.py").write_text(COMMAND)
    (folder / "old_schedules.py").write_text(OLD_SCHEDULES + END)
    (folder / "old_ports.py").write_text(OLD_PORTS)


def make_excursion_libraries(folder: Path) -> None:
    """As much of pygame, moviepy, minigrid, memory-gym, reprint, clip, clean-fid, kornia, phonemizer and librosa as
    programs use, and what one of them would compile."""
    for name, content in {
        "pygame.py": DRAWN, "moviepy/__init__.py": "", "moviepy/video/__init__.py": "",
        "moviepy/video/io/__init__.py": "", "moviepy/video/io/ImageSequenceClip.py": FILMS,
        "minigrid/__init__.py": "", "minigrid/wrappers.py": "", "memory_gym.py": "", "reprint.py": "output = None\n",
        "clip.py": "available_models = lambda: ['ViT-B/16']\n",
        "cleanfid/__init__.py": "", "cleanfid/inception_torchscript.py": "InceptionV3W = None\n",
        "kornia/__init__.py": "", "kornia/filters.py": "filter2d = None\n", "phonemizer.py": "phonemize = None\n",
        "librosa/__init__.py": "", "librosa/util.py": "normalize = pad_center = tiny = None\n",
        "librosa/filters.py": BANDS, "core.py": PATHS,
    }.items():  # fmt: skip
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)


def make_recurrence(folder: Path) -> None:
    """The settings of a short training with a memory."""
    folder.mkdir()
    linear = {"power": 1.0, "max_decay_steps": 20}
    settings = {
        "environment": {"type": "CartPoleMasked"}, "gamma": 0.99, "lamda": 0.95, "updates": 20, "epochs": 4,
        "n_workers": 16, "worker_steps": 128, "n_mini_batch": 4, "value_loss_coefficient": 0.2,
        "hidden_layer_size": 128, "max_grad_norm": 0.5,
        "recurrence": {"sequence_length": 8, "hidden_state_size": 64, "layer_type": "lstm", "reset_hidden_state": True},
        "learning_rate_schedule": {"initial": 0.0003, "final": 0.000003, **linear},
        "beta_schedule": {"initial": 0.001, "final": 0.0001, **linear},
        "clip_range_schedule": {"initial": 0.2, "final": 0.2, **linear},
    }  # fmt: skip
    (folder / "cartpole.yaml").write_text(json.dumps(settings))


def make_spoken(folder: Path) -> None:
    """What somebody said, in wave files of one length with its sounds, and the settings of twelve steps."""
    import wave

    rng = np.random.default_rng(181)
    folder.mkdir()
    letters = np.array(list("abcdefghijklmnopqrstuvwxyz "))
    for split, size in (("training", READ), ("validation", HEARD)):
        lines = []
        for number in range(size):
            path = folder.resolve() / f"{split}{number:03d}.wav"
            with wave.open(str(path), "wb") as file:
                file.setparams((1, 2, 22_050, 0, "NONE", ""))
                file.writeframes(rng.normal(0, 3000, SAMPLES).astype("<i2").tobytes())
            lines.append(f"{path}|{''.join(rng.choice(letters, 60))}\n")
        (folder / f"{split}.txt").write_text("".join(lines))
    settings = {
        "train": {
            "log_interval": 4, "eval_interval": 6, "seed": 1234, "epochs": 3, "learning_rate": 2e-4,
            "betas": [0.8, 0.99], "eps": 1e-9, "batch_size": 16, "fp16_run": True, "lr_decay": 0.999875,
            "segment_size": 8192, "init_lr_ratio": 1, "warmup_epochs": 0, "c_mel": 45, "c_kl": 1.0,
        },
        "data": {
            **{f"{split}_files": f"{folder.resolve()}/{split}.txt" for split in ("training", "validation")},
            "text_cleaners": ["english_cleaners2"], "max_wav_value": 32768.0, "sampling_rate": 22_050,
            "filter_length": 1024, "hop_length": 256, "win_length": 1024, "n_mel_channels": 80, "mel_fmin": 0.0,
            "mel_fmax": None, "add_blank": True, "n_speakers": 0, "cleaned_text": True,
        },
        "model": {
            "inter_channels": 192, "hidden_channels": 192, "filter_channels": 768, "n_heads": 2, "n_layers": 6,
            "kernel_size": 3, "p_dropout": 0.1, "resblock": "1", "resblock_kernel_sizes": [3, 7, 11],
            "resblock_dilation_sizes": [[1, 3, 5]] * 3, "upsample_rates": [8, 8, 2, 2],
            "upsample_initial_channel": 512, "upsample_kernel_sizes": [16, 16, 4, 4], "n_layers_q": 3,
            "use_spectral_norm": False,
        },
    }  # fmt: skip
    (folder / "short.json").write_text(json.dumps(settings))


def make_small_gemma(folder: Path) -> None:
    """Words and weights of Gemma 3 with a billion numbers, which are few ones read again from row to row."""
    import torch
    from sentencepiece import sentencepiece_model_pb2  # type: ignore[import-not-found, import-untyped, unused-ignore]

    folder.mkdir()
    model = sentencepiece_model_pb2.ModelProto()
    kinds = sentencepiece_model_pb2.ModelProto.SentencePiece
    for word in ("<pad>", "<eos>", "<bos>"):
        model.pieces.add(piece=word, score=0, type=kinds.CONTROL)
    model.pieces.add(piece="<unk>", score=0, type=kinds.UNKNOWN)
    for number in range(4, WORDS):
        model.pieces.add(piece=f"\u2581w{number}", score=-number / WORDS, type=kinds.NORMAL)
    for name, number in (("pad", 0), ("eos", 1), ("bos", 2), ("unk", 3)):
        setattr(model.trainer_spec, f"{name}_id", number)
        setattr(model.trainer_spec, f"{name}_piece", f"<{name}>")
    model.trainer_spec.vocab_size = WORDS
    model.normalizer_spec.add_dummy_prefix = True
    (folder / "words.model").write_bytes(model.SerializeToString())
    torch.manual_seed(182)
    shapes = {"embedder.weight": (WORDS, SIZE)}
    for layer in range(LAYERS):
        for part, shape in {
            "self_attn.qkv_proj": (1536, SIZE), "self_attn.o_proj": (SIZE, 1024), "mlp.gate_proj": (6912, SIZE),
            "mlp.up_proj": (6912, SIZE), "mlp.down_proj": (SIZE, 6912),
        }.items():  # fmt: skip
            shapes[f"model.layers.{layer}.{part}.weight"] = shape
    weights = {name: torch.randn(sum(shape)).mul(0.02).as_strided(shape, (1, 1)) for name, shape in shapes.items()}
    torch.save({"model_state_dict": weights}, folder / "weights.ckpt")


def make_drawn_digits(folder: Path) -> None:
    """The settings of a small transformer that draws digits."""
    folder.mkdir()
    settings = {
        "model": {
            "type": "image_transformer_v2", "input_channels": 1, "input_size": [28, 28], "patch_size": [4, 4],
            "depths": [4], "widths": [128], "loss_config": "karras", "loss_weighting": "soft-min-snr",
            "dropout_rate": 0.05, "augment_prob": 0.12, "sigma_data": 0.6162, "sigma_min": 1e-2, "sigma_max": 80,
            "sigma_sample_density": {"type": "cosine-interpolated"},
        },
        "dataset": {"type": "mnist", "location": "data", "num_classes": 10, "cond_dropout_rate": 0.1},
        "optimizer": {"type": "adamw", "lr": 5e-4, "betas": [0.9, 0.95], "eps": 1e-8, "weight_decay": 1e-4},
        "lr_sched": {"type": "constant", "warmup": 0.0},
        "ema_sched": {"type": "inverse", "power": 0.6667, "max_value": 0.9999},
    }  # fmt: skip
    (folder / "config.json").write_text(json.dumps(settings))


EXCURSIONS: dict[str, Callable[[Path], None]] = {
    "excursion_starts": make_excursion_starts,
    "excursion_libraries": make_excursion_libraries,
    "recurrence": make_recurrence,
    "spoken": make_spoken,
    "small_gemma": make_small_gemma,
    "drawn_digits": make_drawn_digits,
}
