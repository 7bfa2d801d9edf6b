"""What fixing a finding is really worth: the recorded steps replayed without it."""

from __future__ import annotations

from syncscope.estimate.estimate import Estimate, Prepared, prepare, worth
from syncscope.estimate.peers import MOST_PEERS, Peer, telling

__all__ = ["MOST_PEERS", "Estimate", "Peer", "Prepared", "prepare", "telling", "worth"]
