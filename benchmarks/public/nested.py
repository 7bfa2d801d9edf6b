"""What programs want that play, test or adapt inside of their training: a game, letters, things on a ground."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.public.classics import END

ARCADE = """import cv2
import numpy

cv2.destroyAllWindows = lambda: None

PICTURES_A_LIFE, LIVES, ACTIONS = 80, 3, 6


def list_games():
    return ["space_invaders"]


def get_game_path(game):
    return game


class ALEInterface:
    def __init__(self):
        self.numbers, self.pictures = numpy.random.default_rng(0), 0

    def setInt(self, name, value):
        pass

    setFloat = setBool = setInt

    def loadROM(self, path):
        pass

    def getMinimalActionSet(self):
        return list(range(ACTIONS))

    def getScreenGrayscale(self):
        self.pictures += 1
        return self.numbers.integers(0, 256, (210, 160), dtype=numpy.uint8)

    def act(self, action):
        return int(self.numbers.random() < 0.05)

    def reset_game(self):
        self.pictures = 0

    def lives(self):
        return LIVES - self.pictures // PICTURES_A_LIFE

    def game_over(self):
        return self.lives() <= 0
"""
"""As much of atari_py as a program uses: a life ends after so many pictures, whatever is done. There are no windows."""
OLD_INTEGERS = """import runpy
import sys

import numpy

numpy.int = int
"""
OLD_INFINITY = """import runpy
import sys

import numpy

numpy.Inf = numpy.inf
"""
THREE_ROUNDS = """import runpy
import sys

sys.path.insert(0, ".")
from model import U2NET

train_once, rounds = U2NET.train, 0


def train(self, mode=True):
    global rounds
    rounds += 1
    if rounds > 3:
        sys.exit()
    return train_once(self, mode)


U2NET.train = train
"""
LETTERS = 1240
"""Of which a program trains on the first 1200."""


def make_nested_starts(folder: Path) -> None:
    """``start.py PROGRAM ...`` for programs that want an old name, and for one that would train without end."""
    folder.mkdir()
    (folder / "old_infinity.py").write_text(OLD_INFINITY + END)
    (folder / "old_integers.py").write_text(OLD_INTEGERS + END)
    (folder / "three_rounds.py").write_text(THREE_ROUNDS + END)


def make_arcade(folder: Path) -> None:
    """A game whose pictures are noise, under the name of atari_py."""
    folder.mkdir()
    (folder / "atari_py.py").write_text(ARCADE)


def make_alphabets(folder: Path) -> None:
    """Twenty drawings of each letter in the file that a program has made of Omniglot."""
    rng = np.random.default_rng(131)
    folder.mkdir()
    np.save(folder / "omniglot.npy", rng.integers(0, 2, (LETTERS, 20, 1, 28, 28), dtype=np.uint8))


def make_salient(folder: Path) -> None:
    """Pictures of one bright thing on a dark ground, and where it is."""
    from PIL import Image

    rng = np.random.default_rng(132)
    for part in ("im_aug", "gt_aug"):
        (folder / part).mkdir(parents=True)
    for number in range(180):
        mask = np.zeros((240, 320), np.uint8)
        top, left = rng.integers(0, 160), rng.integers(0, 200)
        mask[top : top + 80, left : left + 120] = 255
        picture = rng.integers(0, 128, (240, 320, 3)) + mask[..., None] // 2
        Image.fromarray(picture.astype(np.uint8)).save(folder / f"im_aug/{number}.jpg")
        Image.fromarray(mask).save(folder / f"gt_aug/{number}.png")


NESTED: dict[str, Callable[[Path], None]] = {
    "nested_starts": make_nested_starts,
    "arcade": make_arcade,
    "alphabets": make_alphabets,
    "salient": make_salient,
}
