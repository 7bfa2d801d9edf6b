"""For Lightning: ``Trainer(callbacks=[SyncscopeCallback()])``."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

from syncscope.callbacks.training import Training

if TYPE_CHECKING:
    from lightning.pytorch import Callback
elif "pytorch_lightning" in sys.modules and "lightning" not in sys.modules:
    from pytorch_lightning import Callback
else:
    try:
        from lightning.pytorch import Callback
    except ImportError:
        from pytorch_lightning import Callback


class SyncscopeCallback(Callback):  # type: ignore[misc]
    """Count the waits of the training, with the trainer's own steps; validation is told apart.

    ``folder`` gets the count and ``report.json``. With ``profile_at``, windows are recorded from that global step on,
    into the folder ``profile`` inside it. ``options`` are those of ``syncscope.watch``.
    """

    def __init__(
        self, folder: str | os.PathLike[str] = "syncscope-watch", *, profile_at: int | None = None, **options: Any
    ) -> None:
        super().__init__()
        self._training = Training(folder, profile_at, options)

    def on_fit_start(self, trainer: Any, pl_module: Any) -> None:
        self._training.begin(trainer.global_step)

    def on_train_batch_end(self, trainer: Any, pl_module: Any, *args: Any, **kwargs: Any) -> None:
        self._training.stepped(trainer.global_step)

    def on_fit_end(self, trainer: Any, pl_module: Any) -> None:
        self._training.end()

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        self._training.end()
