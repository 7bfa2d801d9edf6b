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
    """Calls ``then(module)`` once for each of ``names``, as soon as the program has imported it, or at once where it is
    there."""

    def __init__(self, names: str | Sequence[str], then: Callable[[ModuleType], None]) -> None:
        self._names = {names} if isinstance(names, str) else set(names)
        self._then = then

    def open(self) -> None:
        there = [name for name in self._names if name in sys.modules]
        self._names.difference_update(there)
        if self._names:
            sys.meta_path.insert(0, self)
        for name in there:
            self._then(sys.modules[name])

    def close(self) -> None:
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname not in self._names:
            return None
        from importlib.util import find_spec

        self._names.discard(fullname)  # before the others are asked: they are not to ask here again
        if not self._names:
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
