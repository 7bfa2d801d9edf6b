"""What programs want that a stranger would try: a game, ratings, streets, speakers, pictures of several kinds."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.public.classics import END
from benchmarks.public.notebooks import write_script
from benchmarks.public.pictures import write_picture

OLD_SPARSE = """import runpy
import sys
from types import SimpleNamespace

for name in ("eigen", "eigen.arpack"):
    sys.modules[f"scipy.sparse.linalg.{name}"] = SimpleNamespace(eigsh=None)
"""
OWN_RATINGS = """import runpy
import sys

sys.path.insert(0, ".")
import config

config.train_rating = config.train_rating.replace(config.main_path, "ratings/")
config.test_negative = config.test_negative.replace(config.main_path, "ratings/")
"""
OLD_PLATEAUS = """import runpy
import sys

from torch.optim.lr_scheduler import ReduceLROnPlateau

newer = ReduceLROnPlateau.__init__


def older(self, *args, verbose=False, **options):
    newer(self, *args, **options)


ReduceLROnPlateau.__init__ = older
"""
OLD_ITERATORS = """import runpy
import sys

from torch.utils.data.dataloader import _BaseDataLoaderIter

_BaseDataLoaderIter.next = lambda self: next(self)
sys.path.insert(0, ".")
"""
FEW_SPEAKERS = """import runpy
import sys

import numpy

numpy.int = int
sys.path.insert(0, ".")
from encoder.data_objects import SpeakerVerificationDataset

SpeakerVerificationDataset.__len__ = lambda self: 64 * 160
"""
OWN_STL = """import runpy
import sys

from torchvision import datasets

sys.path.insert(0, ".")


def pictures(root, split, download, transform):
    return datasets.ImageFolder("pictures", transform)


datasets.STL10 = pictures
"""
GAME = """import numpy

ACTIONS, LIVES, PICTURES_A_LIFE = ["NOOP", "FIRE", "UP", "DOWN"], 3, 120


class spaces:
    class Box:
        def __init__(self, low, high, shape, dtype):
            self.low, self.high, self.shape, self.dtype = low, high, shape, dtype

    class Discrete:
        def __init__(self, n):
            self.n, self.numbers = n, numpy.random.default_rng(0)

        def sample(self):
            return int(self.numbers.integers(self.n))


class Env:
    @property
    def unwrapped(self):
        return self


class Game(Env):
    def __init__(self, name):
        self.spec, self.ale = type("Spec", (), {"id": name}), self
        self.observation_space = spaces.Box(0, 255, (210, 160, 3), numpy.dtype("uint8"))
        self.action_space, self.pictures = spaces.Discrete(len(ACTIONS)), 0
        self.seed(0)

    def seed(self, seed):
        self.np_random = numpy.random.RandomState(seed)

    def get_action_meanings(self):
        return ACTIONS

    def lives(self):
        return LIVES - self.pictures // PICTURES_A_LIFE

    def picture(self):
        return self.np_random.randint(0, 256, (210, 160, 3), numpy.uint8)

    def reset(self):
        self.pictures = 0
        return self.picture()

    def step(self, action):
        self.pictures += 1
        return self.picture(), float(self.np_random.rand() < 0.05), self.lives() <= 0, {}

    def close(self):
        pass


class Wrapper(Env):
    def __init__(self, env):
        self.env = env
        self.action_space, self.observation_space = env.action_space, env.observation_space

    def __getattr__(self, name):
        return getattr(self.env, name)

    @property
    def unwrapped(self):
        return self.env.unwrapped

    def reset(self):
        return self.env.reset()

    def step(self, action):
        return self.env.step(action)


class ObservationWrapper(Wrapper):
    def reset(self):
        return self.observation(self.env.reset())

    def step(self, action):
        picture, reward, done, more = self.env.step(action)
        return self.observation(picture), reward, done, more


RewardWrapper = Wrapper
wrappers = None
make = Game
"""
"""As much of an old gym as a program plays a game of pictures with that are noise."""
PLAY = {
    "num_steps": 6000, "batch_size": 64, "lr": 0.0003, "memory_size": 10_000, "gamma": 0.99, "multi_step": 1,
    "target_entropy_ratio": 0.98, "start_steps": 1000, "update_interval": 4, "target_update_interval": 2000,
    "use_per": False, "dueling_net": False, "num_eval_steps": 400, "max_episode_steps": 27_000, "log_interval": 10,
    "eval_interval": 2000,
}  # fmt: skip
VIEWS = """network:
  name: resnet18
  fine_tune_from: resnet-18_40-epochs
  projection_head: {mlp_hidden_size: 512, projection_size: 128}
data_transforms: {s: 1, input_shape: "(96,96,3)"}
trainer: {batch_size: 64, m: 0.996, checkpoint_interval: 5000, max_epochs: 8, num_workers: 4}
optimizer:
  params: {lr: 0.03, momentum: 0.9, weight_decay: 0.0004}
"""
"""The settings of a training from two views of each picture, but for its epochs as they came."""
SPEAKERS, SPEECHES = 80, 12
USERS, ITEMS = 400, 1000
STREET = 12
"""Kinds of things in a street."""


def make_trial_starts(folder: Path) -> None:
    """``start.py PROGRAM ...`` for programs that want old names, data of their own, or an end."""
    folder.mkdir()
    for name, begin in {
        "old_sparse": OLD_SPARSE, "own_ratings": OWN_RATINGS, "old_iterators": OLD_ITERATORS,
        "few_speakers": FEW_SPEAKERS, "own_stl": OWN_STL, "old_plateaus": OLD_PLATEAUS,
    }.items():  # fmt: skip
        (folder / f"{name}.py").write_text(begin + END)
    (folder / "few_epochs.yaml").write_text(VIEWS)
    (folder / "umap.py").write_text("")
    (folder / "visdom.py").write_text("")
    (folder / "torchsearchsorted.py").write_text("")


def make_play(folder: Path) -> None:
    """A game under gym's name, and how long it is played."""
    import json

    folder.mkdir()
    (folder / "gym.py").write_text(GAME)
    (folder / "short.yaml").write_text(json.dumps(PLAY))


def make_ratings(folder: Path) -> None:
    """What users liked, and for each of them one thing more among 99 that they did not."""
    rng = np.random.default_rng(141)
    folder.mkdir()
    liked = [rng.choice(ITEMS, 41, replace=False) for _ in range(USERS)]
    lines = [f"{user}\t{item}\t5\t0\n" for user, items in enumerate(liked) for item in items[1:]]
    (folder / "ml-1m.train.rating").write_text("".join([*lines, f"{USERS - 1}\t{ITEMS - 1}\t5\t0\n"]))
    with open(folder / "ml-1m.test.negative", "w") as file:
        for user, items in enumerate(liked):
            others = rng.choice(np.setdiff1d(np.arange(ITEMS), items), 99, replace=False)
            file.write("\t".join([f"({user},{items[0]})", *map(str, others)]) + "\n")


def make_speakers(folder: Path) -> None:
    """Spectra of what people said, in files as a program has made them of recordings."""
    rng = np.random.default_rng(142)
    for speaker in range(SPEAKERS):
        (folder / f"s{speaker}").mkdir(parents=True)
        names = [f"{number}.npy" for number in range(SPEECHES)]
        for name in names:
            spectrum = rng.random((int(rng.integers(170, 260)), 40), dtype=np.float32) + speaker / SPEAKERS
            np.save(folder / f"s{speaker}" / name, spectrum.astype(np.float32))
        (folder / f"s{speaker}/_sources.txt").write_text("".join(f"{name},{name}.wav\n" for name in names))


def make_streets(folder: Path) -> None:
    """Pictures of streets, and what each place of them is."""
    from PIL import Image

    rng = np.random.default_rng(143)
    for split, size in (("train", 160), ("val", 60), ("test", 60)):
        (folder / f"{split}annot").mkdir(parents=True)
        for number in range(size):
            write_picture(folder / split / f"{number}.png", 240, 180, rng)
            kinds = rng.integers(0, STREET, (6, 8)).astype(np.uint8).repeat(30, axis=0).repeat(30, axis=1)
            Image.fromarray(kinds).save(folder / f"{split}annot/{number}.png")


def make_views(folder: Path) -> None:
    """Small pictures of a scene from a sphere of places around it."""
    rng = np.random.default_rng(144)
    poses = np.zeros((106, 4, 4), np.float32)
    for pose in poses:
        axes, _ = np.linalg.qr(rng.normal(size=(3, 3)))
        pose[:3, :3], pose[:3, 3], pose[3, 3] = axes, axes[:, 2] * 4, 1
    folder.mkdir()
    pictures = rng.random((106, 32, 32, 3), dtype=np.float32)
    np.savez(folder / "tiny_nerf_data.npz", images=pictures, poses=poses, focal=np.array(44.0, np.float32))


def make_exported(folder: Path, programs: Path) -> None:
    write_script(programs / "pytorch-lora/lora.ipynb", folder / "lora.py")


TRIALS: dict[str, Callable[[Path], None]] = {
    "trial_starts": make_trial_starts,
    "play": make_play,
    "ratings": make_ratings,
    "speakers": make_speakers,
    "streets": make_streets,
    "views": make_views,
}
