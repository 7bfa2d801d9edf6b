"""Keep what we put into the program's classes away from what reads these classes.

A class that no module has by its name, as those of a script, is pickled with all that is in it: by cloudpickle, dill,
and whoever has one of them inside (``torch.save(…, pickle_module=dill)``, joblib, the fingerprints of datasets). A
function of ours in it would fail there, or be found where the program is not recorded.

``torch.fx`` replaces the call of all modules while it traces one. A function of ours in the class of a module would go
past that, and the trace would hold what the module does in place of its call.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import ModuleType
from typing import Any

from syncscope.collect.imports import ImportWatch
from syncscope.collect.patching import Patches

PICKLERS = (
    "cloudpickle.cloudpickle", "dill._dill", "joblib.externals.cloudpickle.cloudpickle", "ray.cloudpickle.cloudpickle",
    "pyspark.cloudpickle.cloudpickle",
)  # fmt: skip
"""Modules with a ``Pickler`` that pickles classes with what is in them."""

TRACER = "torch.fx._symbolic_trace"
"""Has the ``Tracer`` of ``torch.fx``."""


class ClassReaders:
    """Calls ``take_out`` before the classes of the program are read, and ``put_in`` when that is over. ``failed`` hears
    of errors of ours.

    Where something was ``compiled``, that goes on for traces of ``torch.fx`` without either: compilers make them, too,
    and would find that classes change.
    """

    def __init__(
        self,
        take_out: Callable[[], object],
        put_in: Callable[[], object],
        failed: Callable[[Exception], object],
        compiled: Callable[[], bool],
    ) -> None:
        self._take_out = take_out
        self._put_in = put_in
        self._failed = failed
        self._compiled = compiled
        self._patches = Patches()
        self._imports = ImportWatch((), self._imported)
        self._lock = threading.Lock()
        self._under_way = 0

    def open(self) -> None:
        self._patches = Patches()
        self._imports = ImportWatch((*PICKLERS, TRACER), self._imported)
        self._imports.open()

    def close(self) -> None:
        """Does nothing the second time."""
        self._imports.close()
        self._patches.restore()

    @property
    def under_way(self) -> bool:
        """Whether classes are being read."""
        return self._under_way > 0

    def _imported(self, module: ModuleType) -> None:
        try:
            if module.__name__ == TRACER:
                self._patches.replace(getattr(module, "Tracer", None), "trace", self._make_trace)
            else:
                self._patches.replace(getattr(module, "Pickler", None), "dump", self._make_read)
        except Exception as error:  # the program's import must not fail
            self._failed(error)

    def _make_trace(self, original: Any) -> Any:
        read = self._make_read(original)

        def trace(*args: Any, **kwargs: Any) -> Any:
            return (original if self._compiled() else read)(*args, **kwargs)

        return trace

    def _make_read(self, original: Any) -> Any:
        def read(*args: Any, **kwargs: Any) -> Any:
            self._turn(1)
            try:
                return original(*args, **kwargs)
            finally:
                self._turn(-1)

        return read

    def _turn(self, by: int) -> None:
        """One begins, or is over. One may begin in the midst of another, and several threads may read at a time."""
        try:
            with self._lock:
                before, self._under_way = self._under_way, self._under_way + by
                if not before:
                    self._take_out()
                elif not self._under_way:
                    self._put_in()
        except Exception as error:
            self._failed(error)
