"""What the public programs want that tell faces apart, and that learn what a robot does with what it sees."""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.public.pictures import write_picture

PEOPLE, PICTURES = 40, 40
EPISODES, MOMENTS, JOINTS = 50, 100, 14


def make_faces(folder: Path) -> None:
    """Pictures of people, pairs to verify, the settings of a short training, and as much of mxnet as reads the pairs.

    The start lends an argument of the schedulers that PyTorch has removed, and an interpolation that SciPy has.
    """
    from PIL import Image

    rng = np.random.default_rng(103)
    for person in range(PEOPLE):
        for number in range(PICTURES):
            write_picture(folder / f"people/p{person}/{number}.jpg", 112, 112, rng)
    pairs = []
    for _ in range(120):
        picture = io.BytesIO()
        Image.fromarray(rng.integers(0, 256, (112, 112, 3)).astype(np.uint8)).save(picture, "jpeg")
        pairs.append(picture.getvalue())
    same = [number % 2 == 0 for number in range(len(pairs) // 2)]
    (folder / "people/lfw.bin").write_bytes(pickle.dumps((pairs, same)))
    (folder / "short.py").write_text(
        "from easydict import EasyDict\n\n"
        "config = EasyDict(\n"
        f"    rec={str((folder / 'people').resolve())!r}, network='r18', output='out', fp16=True, batch_size=64,\n"
        f"    sample_rate=0.3, num_classes=5000, num_image={PEOPLE * PICTURES}, num_epoch=12, warmup_epoch=1,\n"
        "    lr=0.01, verbose=75, val_targets=['lfw'],\n"
        ")\n"
    )
    (folder / "start.py").write_text(
        "import runpy\n\nfrom scipy import interpolate\nfrom torch.optim.lr_scheduler import LRScheduler\n\n"
        "newer, interp1d = LRScheduler.__init__, interpolate.interp1d\n\n\n"
        "def older(self, optimizer, last_epoch=-1, verbose=False):\n    newer(self, optimizer, last_epoch)\n\n\n"
        "def linear(*args, kind='linear', **options):\n"
        "    return interp1d(*args, kind='linear' if kind == 'slinear' else kind, **options)\n\n\n"
        "LRScheduler.__init__, interpolate.interp1d = older, linear\n"
        "runpy.run_path('train_v2.py', run_name='__main__')\n"
    )
    (folder / "mxnet").mkdir()
    (folder / "mxnet/__init__.py").write_text(
        "import io\n\nimport numpy\nfrom PIL import Image\n\n\n"
        "class Array(numpy.ndarray):\n    def asnumpy(self):\n        return numpy.array(self)\n\n\n"
        "class ndarray:\n"
        "    def transpose(data, axes):\n        return numpy.transpose(data, axes)\n\n"
        "    def flip(data, axis):\n        return numpy.flip(data, axis)\n\n\n"
        "class image:\n"
        "    def imdecode(data):\n        return numpy.asarray(Image.open(io.BytesIO(data))).view(Array)\n"
    )


def make_robot(folder: Path) -> None:
    """What a robot of two arms saw and did, and as much of its simulator as a program imports that trains only."""
    import h5py

    rng = np.random.default_rng(104)
    (folder / "episodes").mkdir(parents=True)
    for number in range(EPISODES):
        with h5py.File(folder / f"episodes/episode_{number}.hdf5", "w") as file:
            file.attrs["sim"] = True
            moves = rng.normal(size=(MOMENTS, JOINTS)).cumsum(axis=0).astype(np.float32) / 10
            file["action"], file["observations/qpos"], file["observations/qvel"] = moves, moves, moves
            pictures = rng.integers(0, 256, (MOMENTS, 15, 20, 3)).astype(np.uint8).repeat(8, axis=1).repeat(8, axis=2)
            file.create_dataset(
                "observations/images/top", data=pictures, chunks=(1, *pictures.shape[1:]), compression="lzf"
            )
    stand_in = "embed, version_info = None, (9, 0, 0)\n\n\ndef get_ipython():\n    return None\n"
    (folder / "IPython.py").write_text(stand_in)
    (folder / "dm_control/rl").mkdir(parents=True)
    (folder / "dm_control/suite").mkdir()
    (folder / "dm_control/__init__.py").write_text("mujoco = None\n")
    (folder / "dm_control/rl/__init__.py").write_text("control = None\n")
    (folder / "dm_control/suite/__init__.py").write_text("class base:\n    class Task:\n        pass\n")


SIGHTS: dict[str, Callable[[Path], None]] = {
    "faces": make_faces,
    "robot": make_robot,
}
