"""Further data of random numbers in the public programs' own formats: sessions, traffic, boxes, words, prompts."""

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


RECORDS: dict[str, Callable[[Path], None]] = {
    "sessions": make_sessions,
    "traffic": make_traffic,
    "boxes": make_boxes,
    "subwords": make_subwords,
    "prompts": make_prompts,
}
