"""The data that the public programs read, made of random numbers: ``python data.py DIR --programs CLONES``.

Nothing is downloaded. Each maker fills one folder of ``DIR``; what is there already is kept.
"""

from __future__ import annotations

import argparse
import gzip
import json
import pickle
import struct
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np

from benchmarks.public.bodies import BODIES
from benchmarks.public.choices import CHOICES
from benchmarks.public.classics import CLASSICS
from benchmarks.public.documents import DOCUMENTS
from benchmarks.public.excursions import EXCURSIONS
from benchmarks.public.formats import FORMATS, make_scene
from benchmarks.public.graphs import GRAPHS
from benchmarks.public.journeys import JOURNEYS, make_rounds, make_tasks, make_triplets
from benchmarks.public.models import (
    make_checkpoint,
    make_crnn,
    make_designer,
    make_font,
    make_gpt2_weights,
    make_hub_home,
    make_language_model,
    make_reader,
    make_sam,
    make_sentence_model,
    make_style_model,
    make_stylist,
    make_torch_home,
    make_transcriber,
)  # fmt: skip
from benchmarks.public.nested import NESTED
from benchmarks.public.pictures import write_picture
from benchmarks.public.records import RECORDS
from benchmarks.public.scenes import SCENES
from benchmarks.public.sequences import SEQUENCES
from benchmarks.public.sights import SIGHTS
from benchmarks.public.signals import SIGNALS
from benchmarks.public.substitutes import SUBSTITUTES
from benchmarks.public.tours import TOURS, make_tuned
from benchmarks.public.trials import TRIALS, make_exported
from benchmarks.public.ventures import VENTURES, make_denoising
from benchmarks.public.visits import VISITS

LETTERS = 65
"""Size of the alphabet of the character models."""


def write_words(path: Path, words: int, rng: np.random.Generator, vocabulary: int = 2000) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    numbers = rng.integers(0, vocabulary, (words // 20, 20))
    path.write_text("".join(" ".join(f"w{number}" for number in line) + "\n" for line in numbers))


def write_idx(path: Path, values: np.ndarray) -> None:
    """A file in MNIST's own format."""
    path.parent.mkdir(parents=True, exist_ok=True)
    head = struct.pack(">HBB", 0, 8, values.ndim) + struct.pack(">" + "I" * values.ndim, *values.shape)
    path.write_bytes(head + values.astype(np.uint8).tobytes())


def write_digits(folder: Path, train: int, test: int) -> None:
    rng = np.random.default_rng(0)
    for name in ("MNIST", "FashionMNIST"):
        for split, size in (("train", train), ("t10k", test)):
            labels = rng.integers(0, 10, size)
            pictures = rng.integers(0, 60, (size, 28, 28)) + labels[:, None, None] * 15
            write_idx(folder / name / "raw" / f"{split}-images-idx3-ubyte", pictures)
            write_idx(folder / name / "raw" / f"{split}-labels-idx1-ubyte", labels)


def make_mnist(folder: Path) -> None:
    """A tenth of MNIST's size."""
    write_digits(folder, train=6400, test=1000)


def make_mnist_small(folder: Path) -> None:
    """For programs that go over it hundreds of times."""
    write_digits(folder, train=1000, test=200)


def make_mnist_whole(folder: Path) -> None:
    write_digits(folder, train=60_000, test=10_000)


def make_imagefolder(folder: Path) -> None:
    rng = np.random.default_rng(1)
    for split, size in (("train", 96), ("val", 32)):
        for label in range(10):
            for number in range(size):
                write_picture(folder / split / f"c{label}" / f"{number}.jpg", 96, 96, rng)


def make_pets(folder: Path) -> None:
    rng = np.random.default_rng(2)
    for label in ("cat", "dog", "horse", "mouse"):
        for number in range(160):
            write_picture(folder / f"{label}_{number}.jpg", 128, 128, rng)


def make_masks(folder: Path) -> None:
    from PIL import Image

    rng = np.random.default_rng(3)
    (folder / "masks").mkdir(parents=True)
    for number in range(64):
        write_picture(folder / "imgs" / f"{number}.jpg", 192, 128, rng)
        mask = np.zeros((128, 192), np.uint8)
        mask[32:96, 48 : 60 + number] = 1
        Image.fromarray(mask).save(folder / "masks" / f"{number}.png")


def make_berkeley(folder: Path) -> None:
    rng = np.random.default_rng(4)
    for split, size in (("train", 128), ("test", 40)):
        for number in range(size):
            write_picture(folder / "BSDS300/images" / split / f"{number}.jpg", 320, 320, rng)


def make_coco(folder: Path) -> None:
    rng = np.random.default_rng(5)
    (folder / "annotations").mkdir(parents=True)
    for split, size in (("train", 96), ("val", 32)):
        images, annotations = [], []
        for number in range(size):
            name = f"{number:012d}.jpg"
            write_picture(folder / f"{split}2017" / name, 320, 240, rng)
            images.append({"id": number, "file_name": name, "width": 320, "height": 240})
            for _ in range(int(rng.integers(1, 6))):
                left, top = int(rng.integers(0, 200)), int(rng.integers(0, 140))
                width, height = int(rng.integers(40, 110)), int(rng.integers(40, 90))
                right, bottom = left + width, top + height
                annotations.append({
                    "id": len(annotations) + 1, "image_id": number, "iscrowd": 0, "area": width * height,
                    "category_id": int(rng.choice([1, 2, 3, 5, 17, 18, 44, 62])), "bbox": [left, top, width, height],
                    "segmentation": [[left, top, right, top, right, bottom, left, bottom]],
                })  # fmt: skip
        categories = [{"id": number, "name": f"c{number}"} for number in range(1, 91)]
        content = {"info": {}, "images": images, "annotations": annotations, "categories": categories}
        (folder / "annotations" / f"instances_{split}2017.json").write_text(json.dumps(content))


def make_coco128(folder: Path) -> None:
    rng = np.random.default_rng(6)
    (folder / "labels/train2017").mkdir(parents=True)
    for number in range(128):
        write_picture(folder / "images/train2017" / f"{number:012d}.jpg", 320, 320, rng)
        boxes = rng.random((4, 4)) * 0.3 + 0.3
        lines = [f"{int(rng.integers(0, 80))} " + " ".join(f"{value:.4f}" for value in box) for box in boxes]
        (folder / "labels/train2017" / f"{number:012d}.txt").write_text("\n".join(lines) + "\n")


def make_shakespeare(folder: Path) -> None:
    rng = np.random.default_rng(7)
    folder.mkdir()
    for split, size in (("train", 200_000), ("val", 20_000)):
        rng.integers(0, LETTERS, size).astype(np.uint16).tofile(folder / f"{split}.bin")
    letters = {number: chr(33 + number) for number in range(LETTERS)}
    meta = {"vocab_size": LETTERS, "itos": letters, "stoi": {letter: number for number, letter in letters.items()}}
    (folder / "meta.pkl").write_bytes(pickle.dumps(meta))


def make_wikitext(folder: Path) -> None:
    rng = np.random.default_rng(8)
    for split, words in (("train", 60_000), ("valid", 6_000), ("test", 6_000)):
        write_words(folder / f"{split}.txt", words, rng)


def make_tinystories(folder: Path) -> None:
    rng = np.random.default_rng(9)
    shards = folder / "TinyStories_all_data"
    shards.mkdir(parents=True)
    for number in range(2):
        rng.integers(3, 32_000, 1_000_000).astype(np.uint16).tofile(shards / f"data{number:02d}.bin")


def make_enwik8(folder: Path) -> None:
    folder.mkdir()
    piece = np.random.default_rng(10).integers(32, 127, 1 << 16).astype(np.uint8).tobytes()
    with gzip.open(folder / "enwik8.gz", "wb", compresslevel=1) as out:
        for _ in range(95_000_000 // len(piece) + 1):
            out.write(piece)


def make_cifar_tensors(folder: Path) -> None:
    """The file that hlb-CIFAR10 keeps its data in, on the GPU. It trains 25 times, so there are few pictures."""
    import torch

    folder.mkdir()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(12)
    data = {}
    for split, size in (("train", 8192), ("eval", 2500)):
        labels = torch.randint(0, 10, (size,))
        targets = torch.nn.functional.one_hot(labels, 10).half().to(device)
        data[split] = {"images": torch.randn(size, 3, 32, 32).half().to(device), "targets": targets}
    torch.save(data, folder / "data.pt")


def make_cifar_pictures(folder: Path) -> None:
    """The files that airbench keeps CIFAR-10 in. It trains 25 times, so there are few pictures."""
    import torch

    folder.mkdir()
    torch.manual_seed(15)
    for split, size in (("train", 16_000), ("test", 4000)):
        images = torch.randint(0, 256, (size, 32, 32, 3), dtype=torch.uint8)
        labels = torch.randint(0, 10, (size,))
        torch.save(
            {"images": images, "labels": labels, "classes": [f"c{n}" for n in range(10)]}, folder / f"{split}.pt"
        )


def make_diffusion(folder: Path) -> None:
    """Pictures of one channel in a folder for each label, and the configuration of a short run."""
    from PIL import Image

    rng = np.random.default_rng(16)
    for label in range(10):
        (folder / "images" / str(label)).mkdir(parents=True)
        for number in range(64):
            digit = rng.integers(0, 60, (28, 28)) + label * 15
            Image.fromarray(digit.astype(np.uint8)).save(folder / "images" / str(label) / f"{number}.png")
    config = {
        "dataset_params": {"im_path": str(folder.resolve() / "images")},
        "diffusion_params": {"num_timesteps": 300, "beta_start": 0.0001, "beta_end": 0.02},
        "model_params": {
            "im_channels": 1, "im_size": 28, "down_channels": [32, 64, 128, 256], "mid_channels": [256, 256, 128],
            "down_sample": [True, True, False], "time_emb_dim": 128, "num_down_layers": 2, "num_mid_layers": 2,
            "num_up_layers": 2, "num_heads": 4,
        },
        "train_params": {
            "task_name": "default", "batch_size": 16, "num_epochs": 6, "num_samples": 100, "num_grid_rows": 10,
            "lr": 0.0001, "ckpt_name": "ddpm_ckpt.pth",
        },
    }  # fmt: skip
    (folder / "config.yaml").write_text(json.dumps(config))


def make_sentence_pairs(folder: Path) -> None:
    """STSbenchmark's own columns."""
    rng = np.random.default_rng(18)
    folder.mkdir()
    lines = ["split\tgenre\tdataset\tyear\tsid\tscore\tsentence1\tsentence2\n"]
    for split, size in (("train", 1600), ("dev", 300), ("test", 300)):
        for number in range(size):
            one, two = (" ".join(f"w{word}" for word in rng.integers(0, 500, 12)) for _ in range(2))
            lines.append(f"{split}\tg\td\t2017\t{number}\t{rng.random() * 5:.2f}\t{one}\t{two}\n")
    with gzip.open(folder / "stsbenchmark.tsv.gz", "wt") as out:
        out.writelines(lines)


def make_instructions(folder: Path) -> None:
    rng = np.random.default_rng(14)
    folder.mkdir()
    words = [[" ".join(f"w{number}" for number in rng.integers(0, 500, 12)) for _ in range(2)] for _ in range(640)]
    rows = [{"instruction": instruction, "output": output} for instruction, output in words]
    (folder / "train.json").write_text(json.dumps(rows))


def make_small_pictures(folder: Path) -> None:
    rng = np.random.default_rng(19)
    for number in range(512):
        write_picture(folder / f"c{number % 10}_{number}.png", 32, 32, rng)


def make_bees(folder: Path) -> None:
    rng = np.random.default_rng(20)
    for split, size in (("train", 60), ("val", 30)):
        for label in ("ants", "bees"):
            for number in range(size):
                write_picture(folder / split / label / f"{number}.jpg", 256, 256, rng)


def make_texts(folder: Path) -> None:
    rng = np.random.default_rng(23)
    folder.mkdir()
    for split, size in (("train", 640), ("test", 64)):
        rows = [{"text": " ".join(f"w{number}" for number in rng.integers(0, 500, 40))} for _ in range(size)]
        (folder / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def make_ett(folder: Path) -> None:
    """Hours of a transformer's load and temperature, and what two libraries are imported for, which is not used."""
    folder.mkdir()
    values = np.random.default_rng(24).normal(size=(17_420, 7)).cumsum(axis=0)
    hours = np.datetime64("2016-07-01T00") + np.arange(len(values))
    lines = [
        f"{str(hour).replace('T', ' ')}:00:00," + ",".join(f"{value:.3f}" for value in row)
        for hour, row in zip(hours, values, strict=True)
    ]
    (folder / "ETTh1.csv").write_text("date,HUFL,HULL,MUFL,MULL,LUFL,LULL,OT\n" + "\n".join(lines) + "\n")
    (folder / "sktime").mkdir()
    (folder / "sktime/__init__.py").write_text("")
    (folder / "sktime/datasets.py").write_text("load_from_tsfile_to_dataframe = None\n")
    (folder / "patoolib.py").write_text("")


MAKERS: dict[str, Callable[[Path], None]] = {
    "mnist": make_mnist,
    "mnist1k": make_mnist_small,
    "mnist60k": make_mnist_whole,
    "imagefolder": make_imagefolder,
    "pets": make_pets,
    "masks": make_masks,
    "bsds": make_berkeley,
    "coco": make_coco,
    "coco128": make_coco128,
    "shakespeare_char": make_shakespeare,
    "wikitext": make_wikitext,
    "tinystories": make_tinystories,
    "enwik8": make_enwik8,
    "cifar_tensors": make_cifar_tensors,
    "cifar10_tensors": make_cifar_pictures,
    "diffusion": make_diffusion,
    "sentence_pairs": make_sentence_pairs,
    "tiny_bert": make_sentence_model,
    "vgg19": make_style_model,
    "tiny_llama": make_language_model,
    "reader": make_reader,
    "instructions": make_instructions,
    "font": make_font,
    "torch_home": make_torch_home,
    "hub_home": make_hub_home,
    "pictures32": make_small_pictures,
    "bees": make_bees,
    "texts": make_texts,
    "ett": make_ett,
    **BODIES, **CHOICES, **CLASSICS, **DOCUMENTS, **EXCURSIONS, **FORMATS, **GRAPHS, **NESTED, **RECORDS, **SCENES,
    **SEQUENCES, **JOURNEYS, **SIGHTS, **SIGNALS, **SUBSTITUTES, **TOURS, **TRIALS, **VENTURES, **VISITS,
}  # fmt: skip

FROM_PROGRAMS: dict[str, Callable[[Path, Path], None]] = {
    "checkpoint": make_checkpoint,
    "crnn": make_crnn,
    "denoising": make_denoising,
    "designer": make_designer,
    "exported": make_exported,
    "gpt2_weights": make_gpt2_weights,
    "rounds": make_rounds,
    "sam": make_sam,
    "scene": make_scene,
    "stylist": make_stylist,
    "tasks": make_tasks,
    "transcriber": make_transcriber,
    "triplets": make_triplets,
    "tuned": make_tuned,
}
"""Those that need the clones."""


def make(name: str, target: Path, programs: Path) -> str:
    """One line on what was made. A maker that fails costs only the programs that read its data."""
    folder = target / name
    if folder.exists():
        return f"{name}: kept"
    try:
        if name in FROM_PROGRAMS:
            FROM_PROGRAMS[name](folder, programs)
        else:
            MAKERS[name](folder)
    except Exception as error:
        return f"{name}: {type(error).__name__}: {error}"
    return f"{name}: made"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("target", type=Path)
    parser.add_argument("names", nargs="*", default=[*MAKERS, *FROM_PROGRAMS])
    parser.add_argument("--programs", type=Path, required=True, help="the folder with the clones")
    options = parser.parse_intermixed_args(arguments)
    options.target.mkdir(parents=True, exist_ok=True)
    count = len(options.names)
    with ProcessPoolExecutor() as pool:
        for line in pool.map(make, options.names, [options.target] * count, [options.programs] * count):
            print(line, flush=True)


if __name__ == "__main__":
    main()
