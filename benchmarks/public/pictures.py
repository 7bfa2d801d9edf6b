"""Pictures of random numbers."""

from __future__ import annotations

from pathlib import Path

import numpy as np


def write_picture(path: Path, width: int, height: int, rng: np.random.Generator) -> None:
    from PIL import Image

    path.parent.mkdir(parents=True, exist_ok=True)
    coarse = (rng.random((height // 8 + 1, width // 8 + 1, 3)) * 255).astype(np.uint8)
    Image.fromarray(coarse).resize((width, height)).save(path)
