"""Hear when Dynamo begins to trace code."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

from syncscope.collect.imports import ImportWatch
from syncscope.collect.patching import Patches

GRAPH = "torch._dynamo.output_graph"
"""Dynamo makes an ``OutputGraph`` before it traces anything."""


class TraceBegins:
    """Calls ``before()`` each time before Dynamo traces code, on the thread that does, and tells ``failed`` of an error
    of ours. Imports nothing."""

    def __init__(self, before: Callable[[], object], failed: Callable[[Exception], object]) -> None:
        self._before = before
        self._failed = failed
        self._patches = Patches()
        self._imports = ImportWatch(GRAPH, self._imported)
        self._heard: type | None = None

    def open(self, torch: Any) -> None:
        self._patches = Patches(torch)
        self._imports.open()

    def close(self) -> None:
        """Hear of nothing any more. Does nothing the second time."""
        self._imports.close()
        self._patches.restore()
        self._heard = None

    @property
    def certain(self) -> bool:
        """Whether no trace can begin unheard."""
        module = sys.modules.get(GRAPH)
        return module is None or (self._heard is not None and getattr(module, "OutputGraph", None) is self._heard)

    def _imported(self, module: ModuleType) -> None:
        kind = getattr(module, "OutputGraph", None)
        try:
            if isinstance(kind, type):
                self._patches.replace(kind, "__init__", self._make_init)
                self._heard = kind
        except Exception as error:  # the program's import must not fail
            self._failed(error)

    def _make_init(self, original: Any) -> Any:
        def init(*args: Any, **kwargs: Any) -> None:
            try:
                self._before()
            except Exception as error:
                self._failed(error)
            original(*args, **kwargs)

        return init
