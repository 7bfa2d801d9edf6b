"""What fixing a finding is really worth: the recorded steps replayed without it."""

from __future__ import annotations

from syncscope.estimate.estimate import Estimate, estimate

__all__ = ["Estimate", "estimate"]
