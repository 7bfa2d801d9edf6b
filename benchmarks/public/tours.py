"""What programs that people know well want: weights, turned things, events, texts, and what ends two of them early."""

from __future__ import annotations

import base64
import itertools
import json
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.public.classics import END
from benchmarks.public.pictures import write_picture

FOURTEEN_STEPS = """import itertools
import runpy
import sys

import torch

newer = torch.optim.AdamW.zero_grad
count = itertools.count()


def older(self, *args, **options):
    if next(count) == 14:
        sys.exit()
    return newer(self, *args, **options)


torch.optim.AdamW.zero_grad = older
sys.path.insert(0, ".")
"""
FEW_STEPS = """import os
import runpy
import sys

sys.path.insert(0, ".")
os.makedirs("result", exist_ok=True)

from gaussian_splatting import trainer

newer = trainer.Trainer.__init__


def older(self, *args, **options):
    newer(self, *args, **{**options, "train_num_steps": 120})


trainer.Trainer.__init__ = older
"""
NO_SCORES = """import runpy
import sys

import torch
import torchmetrics.image.fid
from torchvision.datasets import CIFAR10

CIFAR10.meta["md5"] = None
for files in (CIFAR10.train_list, CIFAR10.test_list):
    files[:] = [[name, None] for name, _ in files]


class Nothing(torch.nn.Module):
    def __init__(self, **options):
        super().__init__()

    def update(self, pictures, real):
        pass


torchmetrics.image.fid.FrechetInceptionDistance = Nothing
sys.path.insert(0, ".")
"""
"""Pictures are compared by a network whose weights would be downloaded."""
OLD_TRAPEZES = """import runpy
import sys

import numpy

numpy.trapz = numpy.trapezoid
numpy.int = int
sys.modules["wandb"] = None
sys.path.insert(0, ".")
"""
TURNED = """import sys

import torch

newer = torch.Tensor.t
torch.Tensor.t = lambda self: newer(self).contiguous()

if __name__ == "__main__":
    sys.path.insert(0, ".")
    import main_moco

    main_moco.main()
"""
"""What is compared with a turned table was contiguous before PyTorch 1.5, in the processes that are spawned too."""
NEAREST = """import torch


def distCUDA2(points):
    return torch.cdist(points, points).topk(4, largest=False).values[:, 1:].square().mean(dim=1)
"""
BYTES, PAIRS = 256, 7744
"""The words of the completer: each byte, and some pairs of them. 256 special ones follow."""
COMPLETER = {"dim": 512, "n_layers": 16, "n_heads": 8, "n_kv_heads": 4, "vocab_size": BYTES + PAIRS + 256,
             "multiple_of": 256, "norm_eps": 1e-05, "rope_theta": 500000.0}  # fmt: skip
TUNED = {
    "name": "tiny", "hf_config": {}, "block_size": 512, "vocab_size": 1000, "padded_vocab_size": 1000, "n_layer": 8,
    "n_embd": 512, "n_head": 8, "head_size": 64, "n_query_groups": 8, "rotary_percentage": 1.0,
    "parallel_residual": False, "bias": False, "norm_class_name": "RMSNorm", "mlp_class_name": "LLaMAMLP",
    "intermediate_size": 1024,
}  # fmt: skip
VIEWS, SIZE, DISTANCE, RADIUS = 24, 512, 2.0, 0.6
USERS, PAGES, EVENTS, FEATURES = 300, 100, 4000, 16


def make_tour_starts(folder: Path) -> None:
    """``start.py PROGRAM ...`` for programs that are ended early, would download weights, or want old names."""
    folder.mkdir()
    for name, begin in {
        "fourteen_steps": FOURTEEN_STEPS, "few_steps": FEW_STEPS, "no_scores": NO_SCORES, "old_trapezes": OLD_TRAPEZES,
    }.items():  # fmt: skip
        (folder / f"{name}.py").write_text(begin + END)
    (folder / "turned.py").write_text(TURNED)
    (folder / "simple_knn").mkdir()
    (folder / "simple_knn/__init__.py").write_text("")
    (folder / "simple_knn/_C.py").write_text(NEAREST)


def make_completer(folder: Path) -> None:
    """A Llama 3 of random weights in Meta's own format, and its vocabulary."""
    import torch

    folder.mkdir()
    pairs = (bytes(pair) for pair in itertools.product(range(88), repeat=2))
    words = [*(bytes([number]) for number in range(BYTES)), *itertools.islice(pairs, PAIRS)]
    lines = (f"{base64.b64encode(word).decode()} {number}\n" for number, word in enumerate(words))
    (folder / "tokenizer.model").write_text("".join(lines))
    (folder / "params.json").write_text(json.dumps(COMPLETER))
    torch.manual_seed(171)
    size, hidden, keys = 512, 1536, 256
    shapes = {"tok_embeddings.weight": (len(words) + 256, size), "output.weight": (len(words) + 256, size)}
    ones = ["norm.weight"]
    for layer in range(16):
        begin = f"layers.{layer}"
        for name, rows in (("wq", size), ("wk", keys), ("wv", keys), ("wo", size)):
            shapes[f"{begin}.attention.{name}.weight"] = (rows, size)
        for name, rows, columns in (("w1", hidden, size), ("w2", size, hidden), ("w3", hidden, size)):
            shapes[f"{begin}.feed_forward.{name}.weight"] = (rows, columns)
        ones += [f"{begin}.attention_norm.weight", f"{begin}.ffn_norm.weight"]
    weights = {name: torch.randn(shape).mul(0.02).bfloat16() for name, shape in shapes.items()}
    torch.save({**weights, **{name: torch.ones(size).bfloat16() for name in ones}}, folder / "consolidated.00.pth")


def make_lessons(folder: Path) -> None:
    """Tokens of a large text in NumPy's files, and questions with four ends each, one of which is right."""
    rng = np.random.default_rng(172)
    (folder / "edu_fineweb10B").mkdir(parents=True)
    for split, size in (("val", 2_000_000), ("train", 6_000_000)):
        tokens = rng.integers(0, 50_257, size).astype(np.uint16)
        np.save(folder / f"edu_fineweb10B/edufineweb_{split}_000000.npy", tokens)
    (folder / "hellaswag").mkdir()
    lines = []
    for number in range(100):
        asked, *ends = (" ".join(f"w{word}" for word in rng.integers(0, 500, 12)) for _ in range(5))
        lines.append(json.dumps({"ind": number, "ctx": asked, "endings": ends, "label": int(rng.integers(4))}) + "\n")
    (folder / "hellaswag/hellaswag_val.jsonl").write_text("".join(lines))


def make_rotations(folder: Path) -> None:
    """A ball seen from all around: its colours, how far it is, and where it is."""
    from PIL import Image

    folder.mkdir()
    focal = SIZE * 1.2
    matrix = np.array([[focal, 0, SIZE / 2], [0, focal, SIZE / 2], [0, 0, 1]])
    columns, rows = np.meshgrid(np.arange(SIZE), np.arange(SIZE))
    rays = np.stack([(columns - SIZE / 2) / focal, (rows - SIZE / 2) / focal, np.ones((SIZE, SIZE))], axis=-1)
    images = []
    for number in range(VIEWS):
        around, up = 2 * np.pi * number / VIEWS, 0.5 * np.sin(number)
        place = DISTANCE * np.array([np.cos(up) * np.cos(around), np.cos(up) * np.sin(around), np.sin(up)])
        forward = -place / DISTANCE
        right = np.cross(forward, [0.0, 0.0, 1.0])
        right /= np.linalg.norm(right)
        pose = np.eye(4)
        pose[:3, :3] = np.stack([right, np.cross(forward, right), forward], axis=1)
        pose[:3, 3] = place
        turned = rays @ pose[:3, :3].T
        half, square = turned @ place, (turned**2).sum(axis=-1)
        root = half**2 - square * (DISTANCE**2 - RADIUS**2)
        seen = root > 0
        far = np.where(seen, (-half - np.sqrt(np.maximum(root, 0))) / square, 0)
        colours = np.where(seen[..., None], np.sin(9 * (place + turned * far[..., None])) * 0.5 + 0.5, 0)
        for kind, values in (("rgb", colours), ("depth", far / DISTANCE), ("alpha", seen)):
            Image.fromarray((values * 255).astype(np.uint8)).save(folder / f"{number:03d}_{kind}.png")
        blender = np.linalg.inv(np.diag([1.0, -1, -1, 1]) @ np.linalg.inv(pose))
        images.append({"rgb": f"{number:03d}_rgb.png", "pose": blender.tolist(), "intrinsic": matrix.tolist(),
                       "max_depth": DISTANCE})  # fmt: skip
    (folder / "info.json").write_text(json.dumps({"images": images}))


def make_edits(folder: Path) -> None:
    """Who edited which page when, in the columns of a table of events."""
    rng = np.random.default_rng(174)
    folder.mkdir()
    times = np.sort(rng.integers(0, 100_000, EVENTS))
    users = np.concatenate([np.arange(USERS), rng.integers(0, USERS, EVENTS - USERS)])
    pages = np.concatenate([np.arange(PAGES), rng.integers(0, PAGES, EVENTS - PAGES)])
    lines = ["user_id,item_id,timestamp,state_label,comma_separated_list_of_features\n"]
    for user, page, time in zip(rng.permutation(users), rng.permutation(pages), times, strict=True):
        features = ",".join(f"{value:.3f}" for value in rng.normal(size=FEATURES))
        lines.append(f"{user},{page},{time}.0,0,{features}\n")
    (folder / "wikipedia.csv").write_text("".join(lines))


def make_framed(folder: Path) -> None:
    """Pictures with boxes as YOLO has them, and where they are."""
    rng = np.random.default_rng(175)
    (folder / "labels/train").mkdir(parents=True)
    for number in range(128):
        write_picture(folder / f"images/train/{number:06d}.jpg", 320, 320, rng)
        boxes = rng.random((4, 4)) * 0.3 + 0.3
        lines = [f"{int(rng.integers(0, 20))} " + " ".join(f"{value:.4f}" for value in box) for box in boxes]
        (folder / f"labels/train/{number:06d}.txt").write_text("\n".join(lines) + "\n")
    names = [f"c{number}" for number in range(20)]
    content = {"train": "framed/images/train", "val": "framed/images/train", "nc": len(names), "names": names}
    (folder / "few.yaml").write_text(json.dumps(content))


def make_tuned(folder: Path, programs: Path) -> None:
    """A small model in LitGPT's own format with random weights."""
    import torch

    sys.path.insert(0, str(programs / "litgpt"))
    from litgpt.config import Config  # type: ignore[import-not-found]
    from litgpt.model import GPT  # type: ignore[import-not-found]

    folder.mkdir()
    torch.manual_seed(176)
    torch.save(GPT(Config(**TUNED)).state_dict(), folder / "lit_model.pth")
    (folder / "model_config.yaml").write_text(json.dumps(TUNED))


TOURS: dict[str, Callable[[Path], None]] = {
    "tour_starts": make_tour_starts,
    "completer": make_completer,
    "lessons": make_lessons,
    "rotations": make_rotations,
    "edits": make_edits,
    "framed": make_framed,
}
