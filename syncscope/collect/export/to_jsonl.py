"""JSON lines: one object for each time, in a file that only grows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from syncscope.collect.watch.measures import Measures


class JsonLines:
    """Appends ``{"seconds": …, "step": …, "train/waits_per_step": …}``."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._path = path

    def export(self, measures: Measures) -> None:
        row = {"seconds": round(measures.seconds, 3), "step": measures.step, **measures.scalars()}
        with self._path.open("ab") as stream:
            stream.write(msgspec.json.encode(row) + b"\n")

    def close(self) -> None:
        pass


def make(target: str, rank: int | None) -> JsonLines:
    path = Path(target).absolute()
    return JsonLines(path if rank is None else path.with_name(f"{path.stem}.rank{rank}{path.suffix}"))
