"""Random numbers as the public programs read them that learn from what was measured: sensors of a road, voices."""

from __future__ import annotations

import json
import pickle
import wave
from collections.abc import Callable
from pathlib import Path

import numpy as np

SENSORS = 207
"""METR-LA's."""


def make_road(folder: Path) -> None:
    """Speeds at sensors of a road, a line every five minutes, and which sensors are near each other."""
    from scipy import sparse

    rng = np.random.default_rng(70)
    folder.mkdir()
    speeds = rng.random((2000, SENSORS)) * 60 + 1
    head = ",".join(map(str, range(SENSORS)))
    np.savetxt(folder / "vel.csv", speeds, fmt="%.3f", delimiter=",", header=head, comments="")
    near = rng.random((SENSORS, SENSORS)) * (rng.random((SENSORS, SENSORS)) < 0.1)
    sparse.save_npz(folder / "adj.npz", sparse.csc_matrix(near))


def make_spectra(folder: Path) -> None:
    """Spectrograms of twenty speakers, and a list with what a speaker's voice is like."""
    rng = np.random.default_rng(71)
    speakers = []
    for speaker in range(20):
        (folder / f"p{speaker}").mkdir(parents=True)
        names = [f"p{speaker}/{number}.npy" for number in range(4)]
        for name in names:
            np.save(folder / name, rng.random((200, 80)).astype(np.float32))
        speakers.append([f"p{speaker}", rng.random(256).astype(np.float32), *names])
    (folder / "train.pkl").write_bytes(pickle.dumps(speakers))


def write_sound(file: Path, samples: np.ndarray, rate: int = 22_050) -> None:
    with wave.open(str(file), "wb") as out:
        out.setnchannels(1)
        out.setsampwidth(2)
        out.setframerate(rate)
        out.writeframes(samples.astype("<i2").tobytes())


def make_utterances(folder: Path) -> None:
    """Short sounds, and beside each its spectrogram."""
    rng = np.random.default_rng(72)
    folder.mkdir()
    for number in range(640):
        file = folder / f"{number}.wav"
        write_sound(file, rng.normal(size=20_480) * 3000)
        np.save(folder / f"{file.name}.spec.npy", rng.random((80, 80)).astype(np.float32))


def make_readings(folder: Path) -> None:
    """Sounds of a second and more, and a line of words for each: LJ Speech's own lists."""
    rng = np.random.default_rng(73)
    words = [("the", "of", "and", "in", "was"), ("prison", "room", "yard", "wall", "street")]
    for split, size in (("train", 96), ("val", 24)):
        (folder / split).mkdir(parents=True)
        lines = []
        for number in range(size):
            file = folder / split / f"{number}.wav"
            length = int(rng.integers(22_050, 33_000))
            write_sound(file, rng.normal(size=length) * 3000)
            said = " ".join(str(rng.choice(words[place % 2])) for place in range(length // 3500))
            lines.append(f"{file.resolve()}|{said}, {int(rng.integers(2, 90))}.\n")
        (folder / f"{split}.txt").write_text("".join(lines))


def make_mixtures(folder: Path) -> None:
    """Two voices and both at once, 8000 samples a second, and the lists of Conv-TasNet's with the length of each."""
    rng = np.random.default_rng(74)
    for split, size in (("tr", 320), ("cv", 32)):
        lists: dict[str, list[tuple[str, int]]] = {"mix": [], "s1": [], "s2": []}
        for kind in lists:
            (folder / split / kind).mkdir(parents=True)
        for number in range(size):
            length = int(rng.integers(16_000, 48_000))
            one, two = rng.normal(size=(2, length)) * 3000
            for kind, samples in (("mix", one + two), ("s1", one), ("s2", two)):
                file = folder / split / kind / f"{number}.wav"
                write_sound(file, samples, rate=8000)
                lists[kind].append((str(file.resolve()), length))
        for kind, files in lists.items():
            (folder / split / f"{kind}.json").write_text(json.dumps(files))


SIGNALS: dict[str, Callable[[Path], None]] = {
    "road": make_road,
    "spectra": make_spectra,
    "utterances": make_utterances,
    "readings": make_readings,
    "mixtures": make_mixtures,
}
