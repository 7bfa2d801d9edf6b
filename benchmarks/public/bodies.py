"""Random numbers as the public programs read them that learn from what happens in time and lies in space."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from pathlib import Path

import numpy as np

AMINO_ACIDS = "ACDEFGHIKLMNPQRSTVWY"
CODE_SIZE = 64
"""Numbers that describe one shape."""


def make_events(folder: Path) -> None:
    """Sequences of events of ten kinds, with the time of each since the first and since the one before."""
    rng = np.random.default_rng(80)
    folder.mkdir()
    for split, size in (("train", 1600), ("dev", 200), ("test", 200)):
        sequences = []
        for _ in range(size):
            gaps = [0.0, *rng.exponential(1.0, rng.integers(19, 60)).tolist()]
            times, kinds = np.cumsum(gaps).tolist(), rng.integers(0, 10, len(gaps)).tolist()
            sequences.append([
                {"time_since_start": time, "time_since_last_event": gap, "type_event": kind}
                for time, gap, kind in zip(times, gaps, kinds, strict=True)
            ])  # fmt: skip
        (folder / f"{split}.pkl").write_bytes(pickle.dumps({"dim_process": 10, split: sequences}))


def make_bodies(folder: Path) -> None:
    """Five charged bodies in space: where they are in 49 frames, how fast, and which attract each other."""
    rng = np.random.default_rng(81)
    folder.mkdir()
    for split, size in (("train", 3000), ("valid", 1000), ("test", 1000)):
        speeds = rng.normal(size=(size, 49, 3, 5)).astype(np.float32)
        charges = rng.choice([-1.0, 1.0], (size, 5, 1))
        for name, values in (
            ("loc", np.cumsum(speeds, axis=1) / 10),
            ("vel", speeds),
            ("charges", charges),
            ("edges", charges * charges.transpose(0, 2, 1)),
        ):
            np.save(folder / f"{name}_{split}_charged5_initvel1small.npy", values)


def make_chains(folder: Path) -> None:
    """Proteins: where four atoms of each residue are, and its letter. All have a Y, the last letter there is."""
    rng = np.random.default_rng(82)
    folder.mkdir()
    names: dict[str, list[str]] = {"train": [], "validation": [], "test": []}
    with open(folder / "chain_set.jsonl", "w") as out:
        for split, size in (("train", 800), ("validation", 100), ("test", 100)):
            for number in range(size):
                length = int(rng.integers(60, 120))
                atoms = (rng.normal(size=(length * 4, 3)) * 1.5).cumsum(axis=0).round(3).reshape(length, 4, 3)
                coords = {atom: atoms[:, place].tolist() for place, atom in enumerate(("N", "CA", "C", "O"))}
                letters = "".join(rng.choice(list(AMINO_ACIDS), length - 1))
                name = f"{split}.{number}"
                out.write(json.dumps({"name": name, "seq": f"{letters}Y", "coords": coords}) + "\n")
                names[split].append(name)
    (folder / "chain_set_splits.json").write_text(json.dumps(names))


def make_shapes(folder: Path) -> None:
    """Points around 64 shapes with their distances, outside and inside; DeepSDF's settings of a short training."""
    rng = np.random.default_rng(83)
    samples = folder / "SdfSamples/random/balls"
    samples.mkdir(parents=True)
    names = [f"ball{number}" for number in range(64)]
    for name in names:
        distances = rng.random((3000, 1)).astype(np.float32) / 5
        points = (rng.random((3000, 3)) * 2 - 1).astype(np.float32)
        outside, inside = np.hstack([points, distances]), np.hstack([points / 2, -distances])
        np.savez(samples / f"{name}.npz", pos=outside, neg=inside)
    (folder / "split.json").write_text(json.dumps({"random": {"balls": names}}))
    schedule = {"Type": "Step", "Initial": 0.0005, "Interval": 500, "Factor": 0.5}
    layers = list(range(8))
    specs = {
        "Description": "Balls", "DataSource": "data", "TrainSplit": "examples/balls/split.json",
        "NetworkArch": "deep_sdf_decoder",
        "NetworkSpecs": {
            "dims": [512] * 8, "dropout": layers, "dropout_prob": 0.2, "norm_layers": layers, "latent_in": [4],
            "xyz_in_all": False, "use_tanh": False, "latent_dropout": False, "weight_norm": True,
        },
        "CodeLength": CODE_SIZE, "NumEpochs": 20, "SnapshotFrequency": 10, "AdditionalSnapshots": [],
        "LearningRateSchedule": [schedule, schedule], "SamplesPerScene": 2000, "ScenesPerBatch": 8,
        "DataLoaderThreads": 4, "ClampingDistance": 0.1, "CodeRegularization": True, "CodeRegularizationLambda": 1e-4,
        "CodeBound": 1.0,
    }  # fmt: skip
    (folder / "specs.json").write_text(json.dumps(specs))


def make_binary_digits(folder: Path) -> None:
    """Pictures of 784 black or white points in MADE's file."""
    rng = np.random.default_rng(84)
    folder.mkdir()
    pictures = (rng.random((3000, 784)) < rng.random(784)).astype(np.float32)
    np.savez(folder / "digits.npz", train_data=pictures[:2500], valid_data=pictures[2500:])


def make_small_molecules(folder: Path) -> None:
    """QM9's files: the place and the charge of each atom of a molecule, no atoms behind its last."""
    rng = np.random.default_rng(85)
    folder.mkdir()
    for split, size in (("train", 2560), ("valid", 512), ("test", 512)):
        atoms = rng.integers(12, 26, size)
        there = np.arange(29) < atoms[:, None]
        places = rng.normal(size=(size, 29, 3)) * 1.5
        charges = rng.choice([1, 6, 7, 8, 9], (size, 29), p=[0.5, 0.35, 0.05, 0.09, 0.01])
        np.savez(folder / f"{split}.npz", num_atoms=atoms, charges=charges * there, positions=places * there[..., None],
                 index=np.arange(size), homo=rng.normal(size=size))  # fmt: skip


BODIES: dict[str, Callable[[Path], None]] = {
    "events": make_events,
    "bodies": make_bodies,
    "chains": make_chains,
    "shapes": make_shapes,
    "binary_digits": make_binary_digits,
    "small_molecules": make_small_molecules,
}
