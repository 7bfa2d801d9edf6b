"""For transformers: ``Trainer(callbacks=[SyncscopeCallback()])``."""

from __future__ import annotations

import os
from typing import Any

from transformers import TrainerCallback

from syncscope.callbacks.training import Training


class SyncscopeCallback(TrainerCallback):  # type: ignore[misc]
    """Count the waits of the training, with the trainer's own steps; evaluation is told apart.

    ``folder`` gets the count and ``report.json``. With ``profile_at``, windows are recorded from that global step on,
    into the folder ``profile`` inside it. ``options`` are those of ``syncscope.watch``.
    """

    def __init__(
        self, folder: str | os.PathLike[str] = "syncscope-watch", *, profile_at: int | None = None, **options: Any
    ) -> None:
        self._training = Training(folder, profile_at, options)

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._training.begin(state.global_step)

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._training.stepped(state.global_step)

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._training.end()
