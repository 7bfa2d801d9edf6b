"""Notice when the program imports a module, without importing it.

This is loaded in every Python that a recorded program starts, so it imports next to nothing.
"""

from __future__ import annotations

import sys
from _thread import get_ident

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
        self._asking: set[tuple[int, str]] = set()
        """Threads that ask the other finders for a name now, which are not to ask here again."""

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
        asking = get_ident(), fullname
        if fullname not in self._names or asking in self._asking:
            return None
        from importlib.util import find_spec

        self._asking.add(asking)
        try:
            spec = find_spec(fullname)
        finally:
            self._asking.discard(asking)
        if spec is not None and spec.loader is not None:
            self._after_loading(spec.loader, fullname)
        return spec

    def _after_loading(self, loader: Loader, name: str) -> None:
        """Tell of ``name`` once ``loader`` has loaded it, if it ever does: libraries ask whether others are there.
        Nothing is told of a loader that cannot be changed."""
        load = loader.exec_module
        another = "exec_module" in getattr(loader, "__dict__", ())  # of another watch

        def exec_module(module: ModuleType) -> None:
            if another:
                loader.exec_module = load  # type: ignore[method-assign]
            else:
                del loader.exec_module  # once only, and the loader is as it was
            wanted = name in self._names
            self._names.discard(name)
            if not self._names:
                self.close()
            load(module)
            if wanted:
                self._then(module)

        try:
            loader.exec_module = exec_module  # type: ignore[method-assign]
        except (AttributeError, TypeError):
            return
