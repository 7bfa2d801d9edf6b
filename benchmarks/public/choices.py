"""What the public programs want that learn to choose: games of made rules, and the settings of short trainings."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path

import numpy as np

LABELS = 10


def make_othello(folder: Path) -> None:
    """A start with fewer games, for the settings are in a file of the repository's; it lends a name of old NumPy's."""
    folder.mkdir()
    (folder / "play.py").write_text(
        "import main\n\n"
        "main.Game.stringRepresentation = lambda self, board: board.tobytes()\n"
        "main.args.update(numIters=2, numEps=6, numMCTSSims=20, arenaCompare=4)\n"
        "main.main()\n"
    )


def make_offline_runs(folder: Path) -> None:
    """As much of d4rl as a program uses, whose records of a pendulum are random numbers."""
    folder.mkdir()
    (folder / "d4rl.py").write_text(
        "import gym\nimport numpy as np\n\n\n"
        "def qlearning_dataset(env, size=20000):\n"
        "    rng = np.random.default_rng(90)\n"
        "    states = rng.normal(size=(size + 1, *env.observation_space.shape)).astype(np.float32)\n"
        "    return {\n"
        "        'observations': states[:-1], 'next_observations': states[1:],\n"
        "        'actions': rng.uniform(-1, 1, (size, *env.action_space.shape)).astype(np.float32),\n"
        "        'rewards': rng.normal(size=size).astype(np.float32), 'terminals': rng.random(size) < 0.01,\n"
        "    }\n\n\n"
        "gym.Environment.get_normalized_score = lambda self, score: score / 1000\n"
    )


def make_landscapes(folder: Path) -> None:
    """As much of crafter as a program uses: pictures of noise, in which an action of 17 is better than another."""
    folder.mkdir()
    (folder / "crafter.py").write_text(
        "import gym\nimport numpy as np\n\nNewBox = gym.spaces.Box\n\n\n"
        "class Box(NewBox):\n"
        "    def __init__(self, low, high, shape, dtype):\n"
        "        bounds = (0, 255) if np.issubdtype(dtype, np.unsignedinteger) else (low, high)\n"
        "        super().__init__(*bounds, shape, dtype)\n\n\n"
        "gym.spaces.Box = Box\n\n\n"
        "class constants:\n    achievements = ['collect_wood', 'place_table']\n\n\n"
        "class Env:\n"
        "    def __init__(self, size, reward, seed):\n"
        "        self.rng = np.random.default_rng(seed)\n"
        "        self.observation_space = gym.spaces.Box(0, 255, (*size, 3), np.uint8)\n"
        "        self.action_space = gym.spaces.Discrete(17)\n\n"
        "    def reset(self):\n"
        "        return self.rng.integers(0, 256, self.observation_space.shape).astype(np.uint8)\n\n"
        "    def step(self, action):\n"
        "        reward = action / 17\n"
        "        known = {'achievements': dict.fromkeys(constants.achievements, 0), 'discount': 1.0}\n"
        "        return self.reset(), reward, False, {**known, 'reward': reward}\n"
    )


def write_labelled(
    file: Path, size: int, rng: np.random.Generator, labels: str = "labels", classes: int = LABELS
) -> None:
    """Small pictures in a file of CIFAR's."""
    numbers = rng.integers(0, classes, size)
    pictures = (rng.integers(0, 60, (size, 3072)) + (numbers[:, None] % LABELS) * 15).astype(np.uint8)
    file.write_bytes(pickle.dumps({"data": pictures, labels: numbers.tolist()}))


def write_cifar(folder: Path, size: int, test: int, rng: np.random.Generator) -> None:
    """The files of CIFAR-10: five of ``size`` pictures, and one to test with."""
    folder.mkdir(parents=True)
    for number in range(1, 6):
        write_labelled(folder / f"data_batch_{number}", size, rng)
    write_labelled(folder / "test_batch", test, rng)
    names = {"label_names": [f"c{number}" for number in range(LABELS)]}
    (folder / "batches.meta").write_bytes(pickle.dumps(names))


def make_cifar_batches(folder: Path) -> None:
    """The files of CIFAR-10, shorter, and a start that asks for no sums of them and lends two old names."""
    write_cifar(folder / "cifar-10-batches-py", size=1000, test=1000, rng=np.random.default_rng(91))
    (folder / "start.py").write_text(
        "import numpy\nfrom torch.utils.data.dataloader import _BaseDataLoaderIter\n"
        "from torchvision.datasets import CIFAR10\n\n"
        "numpy.int = int\n_BaseDataLoaderIter.next = lambda self: next(self)\n"
        "for files in (CIFAR10.train_list, CIFAR10.test_list):\n"
        "    files[:] = [[name, None] for name, _ in files]\n"
        "CIFAR10.meta['md5'] = None\n\n"
        "import train\n\ntrain.main()\n"
    )


def make_cifar_files(folder: Path) -> None:
    """The files of CIFAR-10, four times as long, and those of CIFAR-100, shorter."""
    rng = np.random.default_rng(92)
    write_cifar(folder / "cifar-10-batches-py", size=4000, test=2000, rng=rng)
    (folder / "cifar-100-python").mkdir()
    for split, size in (("train", 5000), ("test", 1000)):
        write_labelled(folder / "cifar-100-python" / split, size, rng, labels="fine_labels", classes=100)
    names = {"fine_label_names": [f"c{number}" for number in range(100)]}
    (folder / "cifar-100-python/meta").write_bytes(pickle.dumps(names))


CHOICES: dict[str, Callable[[Path], None]] = {
    "othello": make_othello,
    "offline_runs": make_offline_runs,
    "landscapes": make_landscapes,
    "cifar_batches": make_cifar_batches,
    "cifar_files": make_cifar_files,
}
