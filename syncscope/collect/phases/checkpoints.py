"""Hear of each time that the program saves or loads: with PyTorch, also distributed, or to safetensors."""

from __future__ import annotations

import contextlib
import functools
import inspect
import sys
import threading
from collections.abc import Callable
from types import FrameType, ModuleType
from typing import Any

from syncscope.collect.imports import ImportWatch
from syncscope.collect.phases.thread import FollowedThread
from syncscope.collect.phases.tracker import PhaseTracker
from syncscope.collect.phases.watched_calls import WatchedCalls

DISTRIBUTED = "torch.distributed.checkpoint."
SAVING = {
    "safetensors.torch": ("save_file", "_flatten_as_ptr", "_flatten"),
    f"{DISTRIBUTED}state_dict": ("_get_model_state_dict", "_get_optim_state_dict"),
    f"{DISTRIBUTED}state_dict_saver": ("_save_state_dict",),
}
LOADING = {
    f"{DISTRIBUTED}state_dict": ("_load_model_state_dict", "_load_optim_state_dict"),
    f"{DISTRIBUTED}state_dict_loader": ("_load_state_dict",),
}
"""Functions of modules that save and load, and those inside of them that gather and copy: the program may have imported
``save_file`` or ``get_state_dict`` by name before anything is watched."""


class CheckpointCalls(WatchedCalls):
    """Tells ``tracker`` of each ``torch.save`` and ``torch.load``, of what ``torch.distributed.checkpoint`` gathers,
    saves and loads, and of saves of safetensors, on the thread that is followed.

    A load by a dataset, while the loader ``is_loading``, or of what the training begins with, is no checkpoint of the
    program's.
    """

    def __init__(
        self,
        tracker: PhaseTracker,
        followed: FollowedThread,
        failed: Callable[[Exception], object],
        is_loading: Callable[[], bool],
    ) -> None:
        super().__init__(tracker, followed, failed)
        self._is_loading = is_loading
        self._inside = False
        """One is under way."""
        self._imports = ImportWatch((), self._imported)

    def open(self, torch: Any) -> None:
        super().open(torch)
        for name in ("save", "load"):
            make = functools.partial(self._make_alike, {}, loads=name == "load")
            for module in (torch, torch.serialization):
                self._patches.replace(module, name, make)
        self._imports = ImportWatch(tuple({**SAVING, **LOADING}), self._imported)
        self._imports.open()

    def close(self) -> None:
        self._imports.close()
        super().close()

    def _imported(self, module: ModuleType) -> None:
        try:
            for name in SAVING.get(module.__name__, ()):
                self._patches.replace(module, name, self._make)
            for name in LOADING.get(module.__name__, ()):
                self._patches.replace(module, name, functools.partial(self._make, loads=True))
        except Exception as error:  # the program's import must not fail
            self._failed(error)

    def _make_alike(self, made: dict[int, Any], original: Any, *, loads: bool) -> Any:
        """One function in all places of ``original``: it is pickled by one of them. Programs ask for its arguments, to
        know whether there is a ``weights_only``."""
        if id(original) not in made:
            around = made[id(original)] = self._make(original, loads)
            with contextlib.suppress(TypeError, ValueError):  # the program may have replaced it with anything
                around.__signature__ = inspect.signature(original)
        return made[id(original)]

    def _make(self, original: Any, loads: bool = False) -> Any:
        tracker, followed, thread = self._tracker, self._followed, threading.get_ident

        def around(*args: Any, **kwargs: Any) -> Any:
            inside = self._inside or (loads and (self._is_loading() or tracker.current.kind == "start"))
            if inside or not self._watching or thread() != followed.ident:
                return original(*args, **kwargs)
            self._inside = True
            self._tell(sys._getframe(1))
            try:
                return original(*args, **kwargs)
            finally:
                self._inside = False
                self._tell(None)

        return around

    def _tell(self, frame: FrameType | None) -> None:
        """A save or load from ``frame`` begins; ``None``: it is over."""
        try:
            if frame is not None:
                self._tracker.checkpoint_begins(frame)
            else:
                self._tracker.checkpoint_ends()
        except Exception as error:
            self._failed(error)
