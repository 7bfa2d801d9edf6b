"""What an exporter is, which there are, and how a run uses them without being hurt by them."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from syncscope.collect.watch.measures import Measures

KINDS = {
    "tensorboard": "DIR",
    "wandb": "[PROJECT]",
    "prometheus": "[HOST:]PORT",
    "jsonl": "FILE",
}
"""The modules of this package, each with what follows ``=``."""


class ExportError(ValueError):
    """An exporter that cannot be made; ``str()`` is one line."""


class Exporter(Protocol):
    """Sends measures somewhere. May raise whatever it likes: it is then not called again."""

    def export(self, measures: Measures) -> None: ...

    def close(self) -> None: ...


def make_exporter(text: str, rank: int | None = None) -> Exporter:
    """The exporter that ``tensorboard=DIR`` names. ``rank`` keeps those of several ranks apart.

    Raises ``ExportError`` for an unknown name, a missing value or a missing package.
    """
    kind, _, target = text.partition("=")
    if kind not in KINDS:
        raise ExportError(f"{kind!r} is no exporter: choose from {', '.join(KINDS)}")
    if not target and not KINDS[kind].startswith("[P"):
        raise ExportError(f"{kind} needs a value: {kind}={KINDS[kind]}")
    module = importlib.import_module(f"syncscope.collect.export.to_{kind}")
    try:
        exporter: Exporter = module.make(target, rank)
    except ImportError as error:
        raise ExportError(
            f"{kind} needs a package that is missing ({error}): pip install 'syncscope[{kind}]'"
        ) from None
    return exporter


class Receivers:
    """Exporters of one run. One that fails is left out from then on, and ``notes`` says so once."""

    def __init__(self, exporters: Iterable[Exporter]) -> None:
        self.notes: list[str] = []
        self._exporters = list(exporters)

    def __bool__(self) -> bool:
        return bool(self._exporters)

    def export(self, measures: Measures) -> None:
        for exporter in tuple(self._exporters):
            try:
                exporter.export(measures)
            except Exception as error:
                self._drop(exporter, error)

    def close(self) -> None:
        for exporter in tuple(self._exporters):
            try:
                exporter.close()
            except Exception as error:
                self._drop(exporter, error)
        self._exporters.clear()

    def _drop(self, exporter: Exporter, error: Exception) -> None:
        self._exporters.remove(exporter)
        reason = " ".join(str(error).split())
        self.notes.append(
            f"{type(exporter).__name__} failed and gets no more figures ({type(error).__name__}: {reason})."
        )
