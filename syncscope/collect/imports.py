"""Notice when the program imports a module, without importing it.

This is loaded in every Python that a recorded program starts, so it imports next to nothing.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.abc import Loader
    from importlib.machinery import ModuleSpec
    from types import ModuleType


class ImportWatch:
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
        from importlib.util import find_spec

        self.close()
        spec = find_spec(fullname)
        if spec is not None and spec.loader is not None:
            self._after_loading(spec.loader)
        return spec

    def _after_loading(self, loader: Loader) -> None:
        load = loader.exec_module
        another = "exec_module" in vars(loader)  # of another watch

        def exec_module(module: ModuleType) -> None:
            if another:
                loader.exec_module = load  # type: ignore[method-assign]
            else:
                del loader.exec_module  # once only, and the loader is as it was
            load(module)
            self._then(module)

        loader.exec_module = exec_module  # type: ignore[method-assign]
