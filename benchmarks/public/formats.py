"""More data of random numbers in the public programs' own formats: scenes, shapes, ratings, masks, voices, titles."""

from __future__ import annotations

import json
import sys
import wave
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.public.pictures import write_picture

SCENE_BEGIN = 199_400
"""The step that the scene's checkpoint was made at: ``run_nerf.py`` ends after 200,000."""
SHAPES = ("bathtub", "bed", "chair", "desk", "dresser", "monitor", "night_stand", "sofa", "table", "toilet")


def make_scene(folder: Path, programs: Path) -> None:
    """Views of a scene in Blender's format, and a checkpoint near the last step."""
    import torch
    from PIL import Image

    rng = np.random.default_rng(30)
    for split, size in (("train", 20), ("val", 4), ("test", 4)):
        (folder / split).mkdir(parents=True)
        frames = []
        for number in range(size):
            picture = rng.integers(0, 256, (128, 128, 4)).astype(np.uint8)
            Image.fromarray(picture).save(folder / split / f"r_{number}.png")
            angle = float(rng.random()) * 2 * np.pi
            cos, sin = float(np.cos(angle)), float(np.sin(angle))
            pose = [[cos, 0, sin, 4 * sin], [0, 1, 0, 0], [-sin, 0, cos, 4 * cos], [0, 0, 0, 1]]
            frames.append({"file_path": f"./{split}/r_{number}", "rotation": 0.01, "transform_matrix": pose})
        content = {"camera_angle_x": 0.69, "frames": frames}
        (folder / f"transforms_{split}.json").write_text(json.dumps(content))

    sys.path.insert(0, str(programs / "nerf-pytorch"))
    from run_nerf_helpers import NeRF  # type: ignore[import-not-found]

    torch.manual_seed(30)
    sizes = {"D": 8, "W": 256, "input_ch": 63, "input_ch_views": 27, "output_ch": 5, "skips": [4], "use_viewdirs": True}
    coarse, fine = NeRF(**sizes), NeRF(**sizes)
    optimizer = torch.optim.Adam([*coarse.parameters(), *fine.parameters()], lr=5e-4)
    torch.save({
        "global_step": SCENE_BEGIN, "network_fn_state_dict": coarse.state_dict(),
        "network_fine_state_dict": fine.state_dict(), "optimizer_state_dict": optimizer.state_dict(),
    }, folder / f"{SCENE_BEGIN}.tar")  # fmt: skip


def make_ratings(folder: Path) -> None:
    """What 640 users chose one after the other: a line for each choice."""
    rng = np.random.default_rng(31)
    folder.mkdir()
    lines = [f"{user} {item}\n" for user in range(1, 641) for item in rng.integers(1, 1001, rng.integers(10, 60))]
    (folder / "ratings.txt").write_text("".join(lines))


def make_gowalla(folder: Path) -> None:
    """A line for each of 1050 users, of the items that they chose."""
    rng = np.random.default_rng(32)
    folder.mkdir()
    for split, size in (("train", 20), ("test", 5)):
        rows = [rng.choice(800, size, replace=False) for _ in range(1050)]
        lines = [f"{user} " + " ".join(map(str, row)) + "\n" for user, row in enumerate(rows)]
        (folder / f"{split}.txt").write_text("".join(lines))


def make_modelnet(folder: Path) -> None:
    """Points with normals of ten kinds of shapes."""
    rng = np.random.default_rng(33)
    folder.mkdir()
    (folder / "modelnet10_shape_names.txt").write_text("".join(f"{shape}\n" for shape in SHAPES))
    first = 1
    for split, size in (("train", 24), ("test", 6)):
        names = []
        for shape in SHAPES:
            (folder / shape).mkdir(exist_ok=True)
            for number in range(first, first + size):
                points = rng.normal(size=(512, 6)) * rng.random(6)
                np.savetxt(folder / shape / f"{shape}_{number:04d}.txt", points, fmt="%.5f", delimiter=",")
                names.append(f"{shape}_{number:04d}\n")
        (folder / f"modelnet10_{split}.txt").write_text("".join(names))
        first += size


def make_sentences(folder: Path) -> None:
    """Two sentences a line, and the two commands that BERT-pytorch is installed with."""
    rng = np.random.default_rng(34)
    folder.mkdir()
    for split, size in (("train", 2000), ("test", 400)):
        rows = [[" ".join(f"w{word}" for word in rng.integers(0, 1000, 8)) for _ in range(2)] for _ in range(size)]
        (folder / f"{split}.txt").write_text("".join("\t".join(row) + "\n" for row in rows))
    for name, where in (("bert", "__main__ import train"), ("bert-vocab", "dataset.vocab import build")):
        function = where.split()[-1]
        (folder / name).write_text(f"from bert_pytorch.{where}\n\n{function}()\n")


def make_patches(folder: Path) -> None:
    """Pieces of pictures in low and in high resolution, and whole pictures."""
    import h5py  # type: ignore[import-not-found, import-untyped, unused-ignore]

    rng = np.random.default_rng(35)
    folder.mkdir()
    with h5py.File(folder / "train.h5", "w") as out:
        for name in ("lr", "hr"):
            out[name] = (rng.random((1600, 33, 33)) * 255).astype(np.float32)
    with h5py.File(folder / "eval.h5", "w") as out:
        for name in ("lr", "hr"):
            group = out.create_group(name)
            for number in range(10):
                group[str(number)] = (rng.random((180, 180)) * 255).astype(np.float32)


def make_ijepa(folder: Path) -> None:
    """A configuration of four epochs over the folder of pictures, as its own are."""
    folder.mkdir()
    config = {
        "data": {
            "batch_size": 32, "color_jitter_strength": 0.0, "crop_scale": [0.3, 1.0], "crop_size": 160,
            "image_folder": "imagefolder", "num_workers": 4, "pin_mem": True,
            "root_path": str(folder.resolve().parent), "use_color_distortion": False, "use_gaussian_blur": False,
            "use_horizontal_flip": False,
        },
        "logging": {"folder": ".", "write_tag": "jepa"},
        "mask": {
            "allow_overlap": False, "aspect_ratio": [0.75, 1.5], "enc_mask_scale": [0.85, 1.0], "min_keep": 10,
            "num_enc_masks": 1, "num_pred_masks": 4, "patch_size": 16, "pred_mask_scale": [0.15, 0.2],
        },
        "meta": {
            "copy_data": False, "load_checkpoint": False, "model_name": "vit_tiny", "pred_depth": 6,
            "pred_emb_dim": 192, "read_checkpoint": None, "use_bfloat16": True,
        },
        "optimization": {
            "ema": [0.996, 1.0], "epochs": 4, "final_lr": 0.0002, "final_weight_decay": 0.4, "ipe_scale": 1.0,
            "lr": 0.001, "start_lr": 0.0002, "warmup": 1, "weight_decay": 0.04,
        },
    }  # fmt: skip
    (folder / "config.yaml").write_text(json.dumps(config))


def make_voc(folder: Path) -> None:
    """PASCAL VOC's pictures with their masks."""
    from PIL import Image

    rng = np.random.default_rng(36)
    top = folder / "VOCdevkit/VOC2012"
    (top / "ImageSets/Segmentation").mkdir(parents=True)
    (top / "SegmentationClass").mkdir()
    for split, size in (("train", 80), ("val", 20)):
        names = [f"{split}_{number:06d}" for number in range(size)]
        for name in names:
            write_picture(top / "JPEGImages" / f"{name}.jpg", 160, 128, rng)
            mask = np.full((128, 160), 255, np.uint8)
            mask[8:120, 8:152] = 0
            mask[32:96, 40:120] = rng.integers(1, 21)
            Image.fromarray(mask).save(top / "SegmentationClass" / f"{name}.png")
        (top / f"ImageSets/Segmentation/{split}.txt").write_text("".join(f"{name}\n" for name in names))


def make_kitti(folder: Path) -> None:
    """Pairs of pictures with the flow between them, in the format of KITTI."""
    import cv2  # type: ignore[import-not-found, import-untyped, unused-ignore]

    rng = np.random.default_rng(37)
    top = folder / "training"
    (top / "flow_occ").mkdir(parents=True)
    for number in range(48):
        for picture in (10, 11):
            write_picture(top / f"image_2/{number:06d}_{picture}.png", 320, 192, rng)
        flow = rng.normal(size=(192, 320, 2)) * 5 * 64 + 2**15
        valid = rng.random((192, 320, 1)) < 0.5
        cv2.imwrite(str(top / f"flow_occ/{number:06d}_10.png"), np.dstack([valid, flow[:, :, ::-1]]).astype(np.uint16))


def make_completions(folder: Path) -> None:
    """Tokens of a beginning and of what follows it, a pair a line."""
    rng = np.random.default_rng(38)
    folder.mkdir()
    for split, size in (("train", 640), ("valid", 96)):
        rows = [{name: rng.integers(0, 50_000, 40).tolist() for name in ("context", "completion")} for _ in range(size)]
        (folder / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def make_voices(folder: Path) -> None:
    """Utterances of three seconds by 40 speakers, and pairs of them to be compared."""
    rng = np.random.default_rng(39)
    names: dict[str, list[str]] = {"train": [], "test": []}
    for split, speakers, each in (("train", 40, 12), ("test", 8, 5)):
        for speaker in range(speakers):
            (folder / f"wav/{split}{speaker}").mkdir(parents=True)
            for number in range(each):
                names[split].append(f"{split}{speaker}/{number}.wav")
                with wave.open(str(folder / "wav" / names[split][-1]), "wb") as out:
                    out.setnchannels(1)
                    out.setsampwidth(2)
                    out.setframerate(16_000)
                    out.writeframes((rng.normal(size=50_000) * 3000).astype("<i2").tobytes())
    (folder / "train.txt").write_text("".join(f"{name.split('/')[0]} {name}\n" for name in names["train"]))
    pairs = [(names["test"][one], names["test"][other]) for one, other in rng.integers(0, len(names["test"]), (80, 2))]
    lines = [f"{int(one.split('/')[0] == other.split('/')[0])} {one} {other}\n" for one, other in pairs]
    (folder / "test.txt").write_text("".join(lines) + "".join(f"1 {name} {name}\n" for name in names["test"]))


def make_molecules(folder: Path) -> None:
    """188 graphs with tags of their nodes: of each node a line of its tag, its neighbours' number, and they."""
    rng = np.random.default_rng(40)
    folder.mkdir()
    lines = ["188\n"]
    for number in range(188):
        nodes = int(rng.integers(10, 29))
        lines.append(f"{nodes} {number % 2}\n")
        for node in range(nodes):
            neighbours = [other for other in (node - 1, node + 1) if 0 <= other < nodes]
            lines.append(f"{rng.integers(0, 7)} {len(neighbours)} {' '.join(map(str, neighbours))}\n")
    (folder / "MUTAG.txt").write_text("".join(lines))


def make_tokens(folder: Path) -> None:
    """Two files of tokens with the head that llm.c reads."""
    rng = np.random.default_rng(41)
    folder.mkdir()
    for split, size in (("train", 400_000), ("val", 100_000)):
        head = np.zeros(256, np.int32)
        head[:3] = 20240520, 1, size
        tokens = rng.integers(0, 50_257, size).astype(np.uint16)
        (folder / f"{split}.bin").write_bytes(head.tobytes() + tokens.tobytes())


def make_clouds(folder: Path) -> None:
    """Points of ten kinds of things, in the files of ModelNet40 that h5py reads."""
    import h5py

    rng = np.random.default_rng(42)
    folder.mkdir()
    for split, size in (("train", 320), ("test", 96)):
        with h5py.File(folder / f"ply_data_{split}0.h5", "w") as file:
            file["data"] = rng.normal(size=(size, 1024, 3)).astype(np.float32)
            file["label"] = (np.arange(size) % 10).astype(np.uint8)[:, None]


def make_letters(folder: Path) -> None:
    """A short text: its reader goes over it a hundred times."""
    rng = np.random.default_rng(43)
    folder.mkdir()
    (folder / "text.txt").write_text("".join(chr(97 + letter) for letter in rng.integers(0, 26, 1500)))


def make_titles(folder: Path, train: int = 3200) -> None:
    """Titles of ten subjects: a line each of its characters, a tab and the subject's number."""
    rng = np.random.default_rng(44)
    folder.mkdir()
    for split, size in (("train", train), ("dev", 640), ("test", 640)):
        characters = rng.integers(0x4E00, 0x4E00 + 400, (size, 20))
        lines = ["".join(map(chr, title)) + f"\t{number % 10}\n" for number, title in enumerate(characters)]
        (folder / f"{split}.txt").write_text("".join(lines))
    (folder / "class.txt").write_text("".join(f"subject{number}\n" for number in range(10)))


def make_headlines(folder: Path) -> None:
    """More of them."""
    make_titles(folder, train=10_240)


def make_clicks(folder: Path) -> None:
    """Whether an advertisement was clicked, 13 numbers and 26 names: Criteo's columns."""
    rng = np.random.default_rng(45)
    folder.mkdir()
    numbers, names = rng.integers(0, 100, (30_000, 13)), rng.integers(0, 50, (30_000, 26))
    lines = [
        "\t".join([str(index % 2), *map(str, one), *(f"{name:08x}" for name in other)]) + "\n"
        for index, (one, other) in enumerate(zip(numbers, names, strict=True))
    ]
    (folder / "train.txt").write_text("".join(lines))


FORMATS: dict[str, Callable[[Path], None]] = {
    "ratings": make_ratings,
    "gowalla": make_gowalla,
    "modelnet": make_modelnet,
    "sentences": make_sentences,
    "patches": make_patches,
    "ijepa": make_ijepa,
    "voc": make_voc,
    "kitti": make_kitti,
    "completions": make_completions,
    "voices": make_voices,
    "molecules": make_molecules,
    "tokens": make_tokens,
    "clouds": make_clouds,
    "letters": make_letters,
    "titles": make_titles,
    "headlines": make_headlines,
    "clicks": make_clicks,
}
