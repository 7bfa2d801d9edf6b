"""The collector that ``syncscope.step()`` speaks to. Light: programs import this when nobody records them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from syncscope.collect.collector import Collector

_active: list[Collector] = []


def step() -> None:
    """Say that a step of the program ended. Free when nothing is recording."""
    if _active:
        _active[-1].step()


def begin(collector: Collector) -> None:
    """Make ``collector`` the one that ``step`` speaks to, and let it watch."""
    _active.append(collector)
    collector.open()


def end(collector: Collector) -> None:
    """Close ``collector``."""
    collector.close()
    if collector in _active:
        _active.remove(collector)
