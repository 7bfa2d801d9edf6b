"""Tell apart what a program does: training, evaluation, generation, rollouts, the end of an epoch, checkpoints."""

from __future__ import annotations

from syncscope.collect.phases.book import Listener
from syncscope.collect.phases.phase import Phase
from syncscope.collect.phases.signals import Signals
from syncscope.collect.phases.tracker import PhaseTracker

__all__ = ["Listener", "Phase", "PhaseTracker", "Signals"]
