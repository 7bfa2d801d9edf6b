"""Where the figures of a run go while it runs: one module for each kind of receiver, each an optional extra."""

from __future__ import annotations

from syncscope.collect.export.exporter import Exporter, ExportError, Receivers, make_exporter

__all__ = ["ExportError", "Exporter", "Receivers", "make_exporter"]
