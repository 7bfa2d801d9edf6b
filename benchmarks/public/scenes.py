"""Pictures as the public programs read them that learn what they show: views of a ball, pictures with captions."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.public.pictures import write_picture

BALL = 100
"""Width and height of a view."""
WORDS = 300


def view_of_ball(pose: np.ndarray, focal: float) -> np.ndarray:
    """A ball of radius 1 about the origin, coloured by its directions, as Blender's cameras see it: RGBA, 8 bits."""
    rows, columns = np.mgrid[:BALL, :BALL] + 0.5 - BALL / 2
    rays = np.stack([columns / focal, -rows / focal, -np.ones_like(rows)], axis=-1) @ pose[:3, :3].T
    rays /= np.linalg.norm(rays, axis=-1, keepdims=True)
    eye = pose[:3, 3]
    along = rays @ eye
    inside = along**2 - eye @ eye + 1
    hit = eye + rays * (-along - np.sqrt(np.maximum(inside, 0)))[..., None]
    colours = np.concatenate([hit * 0.4 + 0.5, np.ones_like(inside)[..., None]], axis=-1)
    view: np.ndarray = np.where((inside > 0)[..., None], colours * 255, 0).astype(np.uint8)
    return view


def make_ball(folder: Path) -> None:
    """Views of a ball in Blender's format: something that can be learned."""
    from PIL import Image

    rng = np.random.default_rng(33)
    angle = 0.69
    for split, size in (("train", 24), ("val", 4), ("test", 8)):
        (folder / split).mkdir(parents=True)
        frames = []
        for number in range(size):
            back = rng.normal(size=3)
            back /= np.linalg.norm(back)
            right = np.cross([0.0, 0.0, 1.0], back)
            right /= np.linalg.norm(right)
            pose = np.eye(4)
            pose[:3, :3] = np.stack([right, np.cross(back, right), back], axis=1)
            pose[:3, 3] = back * 4
            picture = view_of_ball(pose, 0.5 * BALL / np.tan(0.5 * angle))
            Image.fromarray(picture).save(folder / split / f"r_{number}.png")
            frames.append({"file_path": f"./{split}/r_{number}", "transform_matrix": pose.tolist()})
        (folder / f"transforms_{split}.json").write_text(json.dumps({"camera_angle_x": angle, "frames": frames}))


def make_captions(folder: Path) -> None:
    """A hundred pictures with five captions each, Flickr8k's own number, and a tokenizer for them."""
    rng = np.random.default_rng(34)
    lines = ["image,caption,id\n"]
    for number in range(100):
        write_picture(folder / f"Images/{number}.jpg", 256, 192, rng)
        for _ in range(5):
            said = " ".join(f"w{word}" for word in rng.integers(0, WORDS, int(rng.integers(6, 20))))
            lines.append(f"{number}.jpg,{said},{number}\n")
    (folder / "captions.csv").write_text("".join(lines))
    (folder / "tokenizer").mkdir()
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *(f"w{word}" for word in range(WORDS))]
    (folder / "tokenizer/vocab.txt").write_text("".join(f"{word}\n" for word in words))


SCENES: dict[str, Callable[[Path], None]] = {
    "ball": make_ball,
    "captions": make_captions,
}
