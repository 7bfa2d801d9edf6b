"""Notice when the program imports a module, without importing it."""

from __future__ import annotations

import importlib.abc
import importlib.util
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType


class ImportWatch(importlib.abc.MetaPathFinder):
    """Calls ``then(module)`` once, as soon as the program has imported ``name``, or at once where it has already."""

    def __init__(self, name: str, then: Callable[[ModuleType], None]) -> None:
        self._name = name
        self._then = then

    def open(self) -> None:
        module = sys.modules.get(self._name)
        if module is not None:
            self._then(module)
        else:
            sys.meta_path.insert(0, self)

    def close(self) -> None:
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != self._name:
            return None
        self.close()
        spec = importlib.util.find_spec(fullname)
        if spec is not None and spec.loader is not None:
            self._after_loading(spec.loader)
        return spec

    def _after_loading(self, loader: importlib.abc.Loader) -> None:
        load = loader.exec_module

        def exec_module(module: ModuleType) -> None:
            del loader.exec_module  # once only, and the loader is as it was
            load(module)
            self._then(module)

        loader.exec_module = exec_module  # type: ignore[method-assign]
