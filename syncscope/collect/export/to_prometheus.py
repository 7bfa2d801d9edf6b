"""Gauges for Prometheus, served over HTTP from a registry of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from syncscope.collect.watch.measures import Measures

LOCALHOST = "127.0.0.1"


class Prometheus:
    def __init__(self, host: str, port: int) -> None:
        from prometheus_client import CollectorRegistry, Gauge, start_http_server

        registry = CollectorRegistry()

        def gauge(name: str, text: str, *labels: str) -> Any:
            return Gauge(f"syncscope_{name}", text, labels, registry=registry)

        self._waits = gauge("waits_per_step", "Waits for the device in a step, lately.", "phase")
        self._share = gauge("phase_share", "Share of the time since the begin.", "phase")
        self._steps = gauge("steps", "Steps since the begin.", "phase")
        self._lines = gauge("lines", "Lines that wait.")
        self._new_lines = gauge("new_lines", "Lines that wait and are not in the baseline.")
        self._cost = gauge("cost", "What counting costs, as a share of the time.")
        self._server: Any = start_http_server(port, addr=host, registry=registry)

    @property
    def port(self) -> int:
        return int(self._server[0].server_port)

    def export(self, measures: Measures) -> None:
        for phase in measures.phases:
            self._share.labels(phase.name).set(phase.share)
            self._steps.labels(phase.name).set(phase.steps)
            if phase.waits_per_step is not None:
                self._waits.labels(phase.name).set(phase.waits_per_step)
        self._lines.set(measures.lines)
        self._new_lines.set(measures.new_lines or 0)
        self._cost.set(measures.cost or 0.0)

    def close(self) -> None:
        server, thread = self._server
        server.shutdown()
        server.server_close()
        thread.join(5)


def make(target: str, rank: int | None) -> Prometheus:
    """``target`` is a port, or ``HOST:PORT``. The port of rank n is n higher."""
    from syncscope.collect.export.exporter import ExportError

    host, _, port = target.rpartition(":")
    if not port.isdecimal() or int(port) > 65535:
        raise ExportError(f"prometheus needs a port, not {target!r}")
    try:
        return Prometheus(host or LOCALHOST, int(port) + (rank or 0 if int(port) else 0))
    except OSError as error:
        raise ExportError(f"prometheus cannot listen at {target}: {error.strerror or error}") from None
