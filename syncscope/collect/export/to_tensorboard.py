"""Scalars for TensorBoard, in a folder of event files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from syncscope.collect.watch.measures import Measures


class TensorBoard:
    def __init__(self, folder: Path) -> None:
        from tensorboard.summary import Writer

        self._writer: Any = Writer(str(folder))

    def export(self, measures: Measures) -> None:
        for name, value in measures.scalars().items():
            self._writer.add_scalar(f"syncscope/{name}", value, measures.step)
        self._writer.flush()

    def close(self) -> None:
        self._writer.close()


def make(target: str, rank: int | None) -> TensorBoard:
    folder = Path(target).absolute()
    return TensorBoard(folder if rank is None else folder / f"rank{rank}")
