"""Further data of random numbers in the public programs' own formats: from sessions of a shop to pictures of words."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.public.pictures import write_picture

SENSORS = 40


def make_sessions(folder: Path) -> None:
    """What visitors of a shop looked at in turn, and at what afterwards."""
    rng = np.random.default_rng(50)
    folder.mkdir()
    for split, size in (("train", 4000), ("test", 1000)):
        seen = [rng.integers(1, 310, rng.integers(2, 12)).tolist() for _ in range(size)]
        (folder / f"{split}.txt").write_bytes(pickle.dumps((seen, rng.integers(1, 310, size).tolist())))


def make_traffic(folder: Path) -> None:
    """The speeds at some sensors, a line an hour."""
    folder.mkdir()
    speeds = np.random.default_rng(52).random((600, SENSORS)) * 60 + 1
    np.savetxt(folder / "speeds.txt", speeds, fmt="%.3f", delimiter=",")


def make_boxes(folder: Path) -> None:
    """COCO's folders with four boxes a picture in a file of its own, and lists of the pictures."""
    rng = np.random.default_rng(53)
    for split, size in (("train2017", 128), ("val2017", 32)):
        (folder / "labels" / split).mkdir(parents=True)
        for number in range(size):
            write_picture(folder / "images" / split / f"{number:06d}.jpg", 320, 320, rng)
            boxes = rng.random((4, 4)) * 0.3 + 0.3
            if split == "val2017":  # too small to be met by chance, which asks for a function that NumPy has no more
                boxes[:, 2:] = 0.003
            lines = [f"{int(rng.integers(0, 80))} " + " ".join(f"{value:.4f}" for value in box) for box in boxes]
            (folder / "labels" / split / f"{number:06d}.txt").write_text("\n".join(lines) + "\n")
        (folder / f"{split}.txt").write_text("".join(f"images/{split}/{number:06d}.jpg\n" for number in range(size)))


def make_subwords(folder: Path) -> None:
    """A vocabulary, and lines of its words."""
    rng = np.random.default_rng(55)
    folder.mkdir()
    (folder / "vocabulary.txt").write_text("".join(f"{word}\n" for word in ["<unk>", *(f"w{n}" for n in range(2000))]))
    for split, size in (("train", 4000), ("eval", 400)):
        lines = [" ".join(f"w{number}" for number in rng.integers(0, 2000, 40)) + "\n" for _ in range(size)]
        (folder / f"{split}.txt").write_text("".join(lines))


def make_prompts(folder: Path) -> None:
    """Beginnings of texts, and a reward for what follows them."""
    rng = np.random.default_rng(56)
    folder.mkdir()
    for split, size in (("train", 256), ("test", 16)):
        rows = [{"prompt": " ".join(f"w{number}" for number in rng.integers(0, 500, 8))} for _ in range(size)]
        (folder / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "rewards.py").write_text(
        "def words(completions, **options):\n    return [float(len(text.split())) for text in completions]\n"
    )


def make_episodes(folder: Path) -> None:
    """Pictures of 24 kinds, from which few are learned at a time, and the configuration of a short run."""
    rng = np.random.default_rng(57)
    folder.mkdir()
    for split, kinds in (("train_phase_train", 16), ("val", 8)):
        pictures = rng.integers(0, 256, (kinds * 30, 84, 84, 3)).astype(np.uint8)
        content = {"data": pictures, "labels": [number % kinds for number in range(len(pictures))]}
        (folder / f"{split}.pickle").write_bytes(pickle.dumps(content))
    sizes = {"image_size": 84, "normalization": False, "transform": None, "n_episode": 4, "n_way": 5, "n_shot": 1}
    config = {
        "dataset": "meta-mini-imagenet",
        "train": {"split": "meta-train", "n_batch": 40, "n_query": 15, **sizes},
        "val": {"split": "meta-val", "n_batch": 15, "n_query": 15, **sizes},
        "encoder": "convnet4", "encoder_args": {"bn_args": {"track_running_stats": False}}, "classifier": "logistic",
        "inner_args": {
            "n_step": 5, "encoder_lr": 0.01, "classifier_lr": 0.01, "first_order": False, "frozen": ["bn"],
        },
        "optimizer": "adam", "optimizer_args": {"lr": 0.001}, "epoch": 4,
    }  # fmt: skip
    (folder / "config.yaml").write_text(json.dumps(config))


def make_snippets(folder: Path) -> None:
    """Pictures of words, in the files of MJSynth: each of them is listed sixteen times."""
    rng = np.random.default_rng(58)
    folder.mkdir()
    words = ["".join(chr(97 + letter) for letter in rng.integers(0, 26, 6)) for _ in range(256)]
    (folder / "lexicon.txt").write_text("".join(f"{word}\n" for word in words))
    for number in range(256):
        write_picture(folder / f"{number}.jpg", 100, 32, rng)
    (folder / "annotation_test.txt").write_text("".join(f"./{n % 256}.jpg {n % 256}\n" for n in range(4096)))


def make_denoiser(folder: Path) -> None:
    """The configuration of a short training of a diffusion of digits."""
    folder.mkdir()
    config = {
        "dataset": "mnist",
        "diffusion": {
            "timesteps": 200, "beta_start": 0.0001, "beta_end": 0.02, "beta_schedule": "linear",
            "model_mean_type": "eps", "model_var_type": "fixed-large", "loss_type": "mse",
        },
        "model": {
            "hid_channels": 32, "ch_multipliers": [1, 2, 2], "num_res_blocks": 1, "apply_attn": [False, True, False],
            "drop_rate": 0.1,
        },
        "train": {"lr": 0.0002, "batch_size": 128, "grad_norm": 1.0, "epochs": 4, "warmup": 20, "use_ema": True},
    }  # fmt: skip
    (folder / "digits.json").write_text(json.dumps(config))


def make_banners(folder: Path) -> None:
    """Whether an advertisement was clicked, 13 numbers and 26 names, some of them missing, with a line of titles."""
    rng = np.random.default_rng(59)
    folder.mkdir()
    rows = [["label", *(f"I{number}" for number in range(1, 14)), *(f"C{number}" for number in range(1, 27))]]
    for number in range(6400):
        values = [*map(str, rng.integers(0, 100, 13)), *(f"{name:08x}" for name in rng.integers(0, 40, 26))]
        known = rng.random(39) < 0.9
        rows.append([str(number % 2), *(value if seen else "" for value, seen in zip(values, known, strict=True))])
    (folder / "criteo_sample.txt").write_text("".join(",".join(row) + "\n" for row in rows))


def make_segments(folder: Path) -> None:
    """The configuration of a short training on the pictures with masks, which are in a folder beside it."""
    folder.mkdir()
    pictures = {"data_dir": str(folder.resolve().parent / "voc"), "batch_size": 8, "crop_size": 96, "num_workers": 4}
    augmented = {"augment": True, "base_size": 128, "scale": True, "flip": True, "rotate": True, "blur": False}
    config = {
        "name": "UNet", "n_gpu": 1, "use_synch_bn": False,
        "arch": {"type": "UNet", "args": {"freeze_bn": False}},
        "train_loader": {"type": "VOC", "args": {**pictures, **augmented, "split": "train", "shuffle": True}},
        "val_loader": {"type": "VOC", "args": {**pictures, "split": "val", "val": True}},
        "optimizer": {
            "type": "SGD", "differential_lr": False, "args": {"lr": 0.01, "weight_decay": 0.0001, "momentum": 0.9},
        },
        "loss": "CrossEntropyLoss2d", "ignore_index": 255, "lr_scheduler": {"type": "Poly", "args": {}},
        "trainer": {
            "epochs": 36, "save_dir": "saved/", "save_period": 12, "monitor": "max Mean_IoU", "early_stop": 36,
            "tensorboard": True, "log_dir": "saved/runs", "log_per_iter": 20, "val": True, "val_per_epochs": 3,
        },
    }  # fmt: skip
    (folder / "config.json").write_text(json.dumps(config))


RECORDS: dict[str, Callable[[Path], None]] = {
    "sessions": make_sessions,
    "traffic": make_traffic,
    "boxes": make_boxes,
    "subwords": make_subwords,
    "prompts": make_prompts,
    "episodes": make_episodes,
    "snippets": make_snippets,
    "denoiser": make_denoiser,
    "banners": make_banners,
    "segments": make_segments,
}
